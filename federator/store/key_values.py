"""Named text values in the table ``deployment``."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, delete, insert, select, text

from federator.store import tables as t
from federator.store.engine import Index

# Two processes may race; the insert ignores an existing key, so the first one wins.
_CLAIM = text("INSERT INTO deployment (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING")


def get_value(connection: Connection, key: str) -> str | None:
    return connection.execute(select(t.deployment.c.value).where(t.deployment.c.key == key)).scalar()


def set_value(connection: Connection, key: str, value: str | None) -> None:
    """Store a value. None deletes it."""
    connection.execute(delete(t.deployment).where(t.deployment.c.key == key))
    if value is not None:
        connection.execute(insert(t.deployment), [{"key": key, "value": value}])


def claim_value(connection: Connection, key: str, value: str) -> str:
    """Store a value unless the key has one. Return the stored value."""
    connection.execute(_CLAIM, [{"key": key, "value": value}])
    return get_value(connection, key) or value


def read_key(index: Index, name: str) -> bytes:
    """Return the key of 32 random bytes of this name. The first process that asks creates it, and all processes share it."""
    with index.read() as connection:
        stored = get_value(connection, name)
    if stored is None:
        with index.write() as connection:
            stored = claim_value(connection, name, secrets.token_hex(32))
    return bytes.fromhex(stored)
