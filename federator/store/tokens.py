"""API tokens of principals, stored as SHA-256 digests.

A secret has 256 random bits, so SHA-256 is enough: nobody who reads the table can sign in with a digest. Tokens are looked up by their
digest and never compared with each other.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from federator.connector import ConfigError, StateError
from federator.model.audit_kinds import AuditKind
from federator.model.scopes import Scopes
from federator.store import audit_log, requests
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.failures import UnknownId

#: prefix of every token, by which scanners for leaked secrets recognise it
PREFIX = "lft_"
_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. ``name`` is the actor in runs and audit events. Times are seconds since the epoch."""

    name: str
    role: str
    scopes: Scopes
    created_at: float
    created_by: str
    expires_at: float | None
    revoked_at: float | None
    revoked_by: str | None

    def state(self, now: float) -> str:
        """Return ``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def to_json(self, now: float) -> dict[str, Any]:
        return {
            "name": self.name, "role": self.role, "scopes": list(self.scopes.texts), "state": self.state(now),
            "created_at": self.created_at, "created_by": self.created_by, "expires_at": self.expires_at,
            "revoked_at": self.revoked_at, "revoked_by": self.revoked_by,
        }  # fmt: skip


def require_valid_name(name: str) -> None:
    """Raise ConfigError for a name that no token can have."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a valid token name", hint="use up to 100 letters, digits and . _ @ -")


def create_token(
    index: Index, name: str, *, role: str, scopes: Scopes, lifetime: float | None, actor: str
) -> tuple[str, ApiToken]:
    """Create a token and return its secret with it. The secret is not stored.

    ``lifetime`` is in seconds; None: the token is valid until it is revoked. Raise StateError if the name was ever used: all audit
    events with a name must belong to one token.
    """
    secret, now = PREFIX + secrets.token_urlsafe(_BYTES), time.time()
    row: dict[str, Any] = {
        "name": name, "digest": token_digest(secret), "role": role, "scopes": json.dumps(scopes.texts, ensure_ascii=False),
        "created_at": now, "created_by": actor, "expires_at": now + lifetime if lifetime is not None else None,
        "revoked_at": None, "revoked_by": None,
    }  # fmt: skip
    with index.write() as connection:
        if _find_row(connection, name) is not None:
            raise StateError(
                f"the name {name!r} was already used for a token",
                hint="choose another name; federator token list shows the used ones",
            )
        connection.execute(insert(t.token), [row])
        detail = {"role": role, "scopes": list(scopes.texts), "expires_at": row["expires_at"]}
        audit_log.append_event(connection, AuditKind.TOKEN_CREATED, actor=actor, run_id=None, subject=name, detail=detail)
    return secret, _token_from_row(row)


def revoke_token(index: Index, name: str, *, actor: str) -> ApiToken:
    """Revoke a token permanently, and cancel what it has queued. Raise StateError if it does not exist or is already revoked."""
    with index.write() as connection:
        row = _find_row(connection, name)
        if row is None:
            raise UnknownId(f"there is no token {name!r}", hint="federator token list shows the tokens")
        if row["revoked_at"] is not None:
            raise StateError(f"the token {name!r} was already revoked by {row['revoked_by']}")
        values = {"revoked_at": time.time(), "revoked_by": actor}
        connection.execute(update(t.token).where(t.token.c.name == name).values(values))
        requests.cancel_all_queued(connection, actor=principal_name(name))
        audit_log.append_event(
            connection, AuditKind.TOKEN_REVOKED, actor=actor, run_id=None, subject=name, detail={"role": row["role"]}
        )
        return _token_from_row({**row, **values})


def principal_name(name: str) -> str:
    """Return the name of a token's principal, which is the actor of its requests."""
    return f"token:{name}"


def list_tokens(index: Index) -> list[ApiToken]:
    """List all tokens, also expired and revoked ones, by name."""
    with index.read() as connection:
        return [_token_from_row(row) for row in connection.execute(select(t.token).order_by(t.token.c.name)).mappings()]


def find_token(index: Index, digest: str) -> ApiToken | None:
    """Return the token with a digest, whatever its state. None if there is none."""
    with index.read() as connection:
        row = connection.execute(select(t.token).where(t.token.c.digest == digest)).mappings().first()
    return _token_from_row(row) if row is not None else None


def token_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _find_row(connection: Connection, name: str) -> RowMapping | None:
    return connection.execute(select(t.token).where(t.token.c.name == name)).mappings().first()


def _token_from_row(row: RowMapping | dict[str, Any]) -> ApiToken:
    columns = ("name", "role", "created_at", "created_by", "expires_at", "revoked_at", "revoked_by")
    return ApiToken(scopes=Scopes.parse(json.loads(row["scopes"])), **{name: row[name] for name in columns})
