"""Sessions of people who signed in with a browser, stored as SHA-256 digests of their secrets, like tokens.

A session stores the mapped claims, not the role: a mapping that is removed from the configuration counts for open sessions, too.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, delete, insert, or_, select, update

from federator.model.audit_kinds import AuditKind
from federator.store import audit_log, requests
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.field_types import Timestamp
from federator.store.tokens import token_digest

_BYTES = 32
#: characters of the id of a session: the begin of its digest, which is of no use without the secret
_ID_LENGTH = 16


def principal_name(name: str) -> str:
    """Return the name of a person's principal, which is the actor of the person's requests."""
    return f"oidc:{name}"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Times in seconds, and the number of sessions of one person."""

    lifetime: float
    idle_timeout: float
    max_sessions: int


@dataclass(frozen=True, slots=True)
class Session:
    """A session without its secret. ``name``, ``role_values`` and ``scopes`` are those of the provider's claims. Times are seconds
    since the epoch. ``authenticated_at``: when the person entered credentials at the provider; None if the provider did not tell."""

    name: str
    role_values: tuple[str, ...]
    scopes: tuple[str, ...]
    created_at: float
    used_at: float
    expires_at: float
    authenticated_at: float | None = None


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session in a list. ``id`` names it; it is no credential. Times are seconds since the epoch."""

    id: str
    name: str
    created_at: Timestamp
    used_at: Annotated[Timestamp, Field(description="time of a request; up to a minute before the last one")]
    expires_at: Timestamp


def create_session(
    index: Index, name: str, *, role_values: Sequence[str], scopes: Sequence[str], limits: SessionLimits,
    now: float, replaced: str | None, actor: str, detail: Mapping[str, Any], authenticated_at: float | None = None,
) -> str:  # fmt: skip
    """Create a session, record the sign-in in the audit log, and return the session's secret, which is not stored.

    The person's other sessions lose the claims that this sign-in does not have. Ended sessions and the one with the secret ``replaced``
    are deleted, and the oldest ones of the person beyond the limit.
    """
    secret, s = secrets.token_urlsafe(_BYTES), t.session.c
    row = {
        "digest": token_digest(secret), "name": name, "role_values": json.dumps(list(role_values), ensure_ascii=False),
        "scopes": json.dumps(list(scopes), ensure_ascii=False), "created_at": now, "used_at": now,
        "expires_at": now + limits.lifetime, "authenticated_at": authenticated_at,
    }  # fmt: skip
    with index.write() as connection:
        ended = or_(s.expires_at <= now, s.used_at <= now - limits.idle_timeout)
        connection.execute(
            delete(t.session).where(ended if replaced is None else or_(ended, s.digest == token_digest(replaced)))
        )
        own = select(s.digest).where(s.name == name).order_by(s.created_at.desc(), s.digest).offset(limits.max_sessions - 1)
        if surplus := list(connection.execute(own).scalars()):
            connection.execute(delete(t.session).where(s.digest.in_(surplus)))
        for other in connection.execute(select(s.digest, s.role_values, s.scopes).where(s.name == name)).all():
            left = {"role_values": _keep(other.role_values, role_values), "scopes": _keep(other.scopes, scopes)}
            connection.execute(update(t.session).where(s.digest == other.digest).values(left))
        connection.execute(insert(t.session), [row])
        audit_log.append_event(
            connection, AuditKind.SIGNED_IN, actor=actor, run_id=None, subject=name,
            detail={**detail, "expires_at": row["expires_at"], "ended_sessions": len(surplus)},
        )  # fmt: skip
    return secret


def find_session(index: Index, secret: str, *, now: float, idle_timeout: float) -> Session | None:
    """Return the session with a secret. None if there is none, or if it has ended."""
    with index.read() as connection:
        row = connection.execute(select(t.session).where(t.session.c.digest == token_digest(secret))).mappings().first()
    if row is None or row["expires_at"] <= now or row["used_at"] <= now - idle_timeout:
        return None
    return Session(
        row["name"], tuple(json.loads(row["role_values"])), tuple(json.loads(row["scopes"])),
        row["created_at"], row["used_at"], row["expires_at"], row["authenticated_at"],
    )  # fmt: skip


def record_use(index: Index, secret: str, *, now: float) -> None:
    """Set the time of the last request of a session."""
    with index.write() as connection:
        connection.execute(update(t.session).where(t.session.c.digest == token_digest(secret)).values(used_at=now))


def delete_session(index: Index, secret: str, *, actor: str) -> None:
    """End a session and record it in the audit log. A session that does not exist is not recorded."""
    with index.write() as connection:
        row = connection.execute(select(t.session.c.name).where(t.session.c.digest == token_digest(secret))).first()
        if row is not None:
            connection.execute(delete(t.session).where(t.session.c.digest == token_digest(secret)))
            _append(connection, AuditKind.SIGNED_OUT, actor, row.name)


def list_sessions(index: Index, *, now: float, idle_timeout: float | None, name: str | None = None) -> list[OpenSession]:
    """List the sessions that have not ended, of a person or of all, by name and time of the sign-in."""
    s = t.session.c
    conditions = [s.expires_at > now]
    conditions += [s.used_at > now - idle_timeout] if idle_timeout is not None else []
    conditions += [s.name == name] if name is not None else []
    query = select(t.session).where(*conditions).order_by(s.name, s.created_at, s.digest)
    with index.read() as connection:
        return [
            OpenSession(session_id(row["digest"]), row["name"], row["created_at"], row["used_at"], row["expires_at"])
            for row in connection.execute(query).mappings()
        ]


def revoke_sessions(index: Index, name: str, *, actor: str, id: str | None = None) -> int:  # noqa: A002
    """End a session of a person, or all of them, and record it in the audit log. Return their number; 0 is not recorded.

    With all of them, what the person has queued for the worker is cancelled.
    """
    s = t.session.c
    with index.write() as connection:
        digests = connection.execute(select(s.digest).where(s.name == name)).scalars().all()
        ended = [digest for digest in digests if id in (None, session_id(digest))]
        if id is None:
            requests.cancel_all_queued(connection, actor=principal_name(name))
        if ended:
            connection.execute(delete(t.session).where(s.digest.in_(ended)))
            audit_log.append_event(
                connection, AuditKind.SESSIONS_REVOKED, actor=actor, run_id=None, subject=name,
                detail={"sessions": sorted(map(session_id, ended))},
            )  # fmt: skip
    return len(ended)


def session_id(digest: str) -> str:
    """Return the id of the session with a digest."""
    return digest[:_ID_LENGTH]


def record_refusal(index: Index, *, actor: str, reason: str, address: str | None = None, unrecorded: int = 0) -> None:
    """Record in the audit log that the service refused a sign-in. ``unrecorded``: the number of refusals since the last record."""
    detail = {"reason": reason, "address": address, "unrecorded": unrecorded}
    with index.write() as connection:
        _append(connection, AuditKind.SIGN_IN_REFUSED, actor, actor, **{key: value for key, value in detail.items() if value})


def _keep(texts: str, claims: Sequence[str]) -> str:
    return json.dumps([text for text in json.loads(texts) if text in claims], ensure_ascii=False)


def _append(connection: Connection, kind: AuditKind, actor: str, subject: str, **detail: object) -> None:
    audit_log.append_event(connection, kind, actor=actor, run_id=None, subject=subject, detail=detail)
