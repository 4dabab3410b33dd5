"""Tokens of the API's callers. Stored is a token's SHA-256, which is enough of a secret's digest where the secret has 256 random bits:
nobody who reads the table can sign in with it, and no token is compared with another one, only digests are looked up.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from federator.connector import StateError
from federator.index import audit_log
from federator.index import tables as t
from federator.index.engine import Index
from federator.model.scopes import Scopes

#: what each of our tokens begins with, so that scanners for leaked secrets know one
PREFIX = "lft_"
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret: who it is in runs and audit, what it may do and see. Times are seconds since the epoch."""

    name: str
    role: str
    scopes: Scopes
    created_at: float
    created_by: str
    expires_at: float | None
    revoked_at: float | None
    revoked_by: str | None

    def state(self, now: float) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def to_json(self, now: float) -> dict[str, Any]:
        return {
            "name": self.name, "role": self.role, "scopes": list(self.scopes.texts), "state": self.state(now),
            "created_at": self.created_at, "created_by": self.created_by, "expires_at": self.expires_at,
            "revoked_at": self.revoked_at, "revoked_by": self.revoked_by,
        }  # fmt: skip


def create(index: Index, name: str, *, role: str, scopes: Scopes, lifetime: float | None, actor: str) -> tuple[str, Token]:
    """Makes a token that lives for ``lifetime`` seconds (None: until it is revoked). Its secret is in the answer and nowhere else.

    Raises StateError for a name that was ever given: what stands in the audit under it is one token's.
    """
    secret, now = PREFIX + secrets.token_urlsafe(_BYTES), time.time()
    expires = now + lifetime if lifetime is not None else None
    row = {
        "name": name, "digest": digest_of_token(secret), "role": role, "scopes": json.dumps(scopes.texts, ensure_ascii=False),
        "created_at": now, "created_by": actor, "expires_at": expires,
    }  # fmt: skip
    with index.write() as connection:
        if _row(connection, name) is not None:
            raise StateError(f"a token called {name!r} is there, or was", hint="choose another name: federator token list")
        connection.execute(insert(t.token), [row])
        detail = {"role": role, "scopes": list(scopes.texts), "expires_at": expires}
        audit_log.append(connection, "token_created", actor=actor, run_id=None, subject=name, detail=detail)
    return secret, Token(name, role, scopes, now, actor, expires, None, None)


def revoke(index: Index, name: str, *, actor: str) -> Token:
    """Ends a token for good. Raises StateError for one that is not there, or was revoked before."""
    with index.write() as connection:
        row = _row(connection, name)
        if row is None:
            raise StateError(f"no token is called {name!r}", hint="federator token list")
        if row["revoked_at"] is not None:
            raise StateError(f"the token {name!r} was revoked before, by {row['revoked_by']}")
        values = {"revoked_at": time.time(), "revoked_by": actor}
        connection.execute(update(t.token).where(t.token.c.name == name).values(values))
        audit_log.append(connection, "token_revoked", actor=actor, run_id=None, subject=name, detail={"role": row["role"]})
        return _token({**row, **values})


def every(index: Index) -> list[Token]:
    """All tokens that were ever made, by name."""
    with index.read() as connection:
        return [_token(row) for row in connection.execute(select(t.token).order_by(t.token.c.name)).mappings()]


def find(index: Index, digest: str) -> Token | None:
    """The token of a digest, in whatever state."""
    with index.read() as connection:
        row = connection.execute(select(t.token).where(t.token.c.digest == digest)).mappings().first()
    return _token(row) if row is not None else None


def digest_of_token(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _row(connection: Connection, name: str) -> RowMapping | None:
    return connection.execute(select(t.token).where(t.token.c.name == name)).mappings().first()


def _token(row: RowMapping | dict[str, Any]) -> Token:
    scopes = Scopes.parse(json.loads(row["scopes"]))
    kept = ("created_at", "created_by", "expires_at", "revoked_at", "revoked_by")
    return Token(row["name"], row["role"], scopes, *(row[name] for name in kept))
