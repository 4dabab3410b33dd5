"""The deployment fingerprint: an index belongs to one place, and a clone of it started elsewhere writes to no mirror's target.

The index keeps a random fingerprint and the place where it was confirmed. The place is what the configuration says
(``[instance] fingerprint``), else what a copy of the database does not share: docs/adr/0007-deployment-fingerprint.md.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, text
from sqlalchemy.exc import DBAPIError

from federator.connector import ConfigError, StateError
from federator.connector.options import resolve
from federator.index import audit_log
from federator.index import tables as t
from federator.index.engine import Index
from federator.model import digest_of
from federator.settings import InstanceSettings

# Keys of the table ``deployment``.
_FINGERPRINT, _PLACE, _LEFT, _INSTANCE = "fingerprint", "place", "left_instance", "instance"
_KEYS = (_FINGERPRINT, _PLACE, _LEFT, _INSTANCE)
_MACHINE_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_CLAIM = text("INSERT INTO deployment (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING")
_POSTGRESQL = """
SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()), current_schema()
FROM pg_control_system()
"""


@dataclass(frozen=True, slots=True)
class Deployment:
    """An index's fingerprint, the place where it was confirmed (None: not yet), the place where it is open now, the instance id
    that it gave up when it became another, and the one that its mirrors write into ownership markers (None: no run had one yet)."""

    fingerprint: str
    confirmed: str | None
    here: str
    left: str | None = None
    instance: str | None = None

    @property
    def cloned(self) -> bool:
        return self.confirmed is not None and self.confirmed != self.here

    def given_up(self, instance: InstanceSettings) -> bool:
        """Whether the configured instance id is the one that it left to the index that it came from."""
        return self.left is not None and self.left == instance.id

    def renamed(self, instance: InstanceSettings) -> bool:
        """Whether the configured instance id differs from the one in the ownership markers."""
        return None not in (self.instance, instance.id) and self.instance != instance.id


def read(index: Index, instance: InstanceSettings) -> Deployment:
    """What the index says of itself. Raises StateError where its place cannot be told, ConfigError for a missing variable."""
    here = _place(index, instance)
    with index.read() as connection:
        return _of(connection, here)


def claim(index: Index, instance: InstanceSettings) -> None:
    """Records the index's place and instance id at its first run; later values are left to ``confirm`` and ``rotate``."""
    here = _place(index, instance)
    with index.read() as connection:
        known = _of(connection, here)
    first = {_PLACE: here} if known.confirmed is None else {}
    if known.instance is None and instance.id is not None and not (known.cloned or known.given_up(instance)):
        first[_INSTANCE] = instance.id
    if first:
        with index.write() as connection:
            # Two first runs at once: one of them is the first.
            connection.execute(_CLAIM, [{"key": key, "value": value} for key, value in first.items()])


def check_original(index: Index, instance: InstanceSettings) -> None:
    """Raises StateError in a clone: only the index that was confirmed for its place writes to what is mirrored."""
    found = read(index, instance)
    if found.cloned:
        raise StateError(
            f"this index is a clone: it belongs to {found.confirmed}, and was opened at {found.here}; mirrors are not written to",
            hint="federator instance confirm if it moved here, federator instance rotate if the other goes on",
        )
    if found.given_up(instance):
        raise StateError(
            f"this index was given a new fingerprint, and the instance {found.left!r} belongs to the one that it came from",
            hint="choose a new [instance] id",
        )
    _check_id(found, instance)


def check_instance_id(index: Index, instance: InstanceSettings) -> None:
    """Raises StateError if the [instance] id was changed: mirrors would take their own declarations for somebody else's.

    A clone may plan under an id of its own: ``check_original`` keeps it from writing.
    """
    found = read(index, instance)
    if not found.cloned:
        _check_id(found, instance)


def _check_id(found: Deployment, instance: InstanceSettings) -> None:
    if found.renamed(instance):
        raise StateError(
            f"[instance] id is {instance.id!r}, and the declarations of this index are marked {found.instance!r}: none would count as "
            "owned",
            hint=f"set [instance] id back to {found.instance!r}; or federator instance confirm, and what is marked {found.instance!r} "
            "stays as it is, refused as not_ours",
        )


def confirm(index: Index, instance: InstanceSettings, *, actor: str) -> Deployment:
    """Makes this the index's place, wherever it was before: it moved, and nothing writes from there any more."""
    here = _place(index, instance)
    with index.write() as connection:
        before = _of(connection, here)
        _set(connection, _PLACE, here)
        _set(connection, _LEFT, None)
        _set(connection, _INSTANCE, instance.id)
        _audit(connection, "instance_confirmed", actor, instance, before)
        return _of(connection, here)


def rotate(index: Index, instance: InstanceSettings, *, actor: str) -> Deployment:
    """Makes this another deployment with a fingerprint of its own, which leaves the configured instance id to the first one."""
    here = _place(index, instance)
    with index.write() as connection:
        before = _of(connection, here)
        _set(connection, _FINGERPRINT, uuid.uuid4().hex)
        _set(connection, _PLACE, here)
        _set(connection, _LEFT, before.left if instance.id is None else instance.id)
        _set(connection, _INSTANCE, None)
        _audit(connection, "instance_rotated", actor, instance, before)
        return _of(connection, here)


def _audit(connection: Connection, kind: str, actor: str, instance: InstanceSettings, before: Deployment) -> None:
    after = _of(connection, before.here)
    detail = {
        "before": before.confirmed, "place": after.confirmed, "was": before.fingerprint, "fingerprint": after.fingerprint,
        "was_instance": before.instance,
    }  # fmt: skip
    audit_log.append(connection, kind, actor=actor, run_id=None, subject=instance.id or "", detail=detail)


def _of(connection: Connection, here: str) -> Deployment:
    d = t.deployment.c
    values: dict[str, str] = {row.key: row.value for row in connection.execute(select(d.key, d.value).where(d.key.in_(_KEYS)))}
    return Deployment(values[_FINGERPRINT], values.get(_PLACE), here, values.get(_LEFT), values.get(_INSTANCE))


def _set(connection: Connection, key: str, value: str | None) -> None:
    connection.execute(delete(t.deployment).where(t.deployment.c.key == key))
    if value is not None:
        connection.execute(insert(t.deployment), [{"key": key, "value": value}])


def _place(index: Index, instance: InstanceSettings) -> str:
    if instance.fingerprint is not None:
        configured = resolve(instance.fingerprint, where="[instance] fingerprint").strip()
        if not configured:
            raise ConfigError("[instance] fingerprint: is empty", hint="any text that no other deployment has")
        return f"the fingerprint {configured}"
    return _file_place(index.file) if index.file is not None else _server_place(index)


def _file_place(file: Path) -> str:
    file = file.resolve()
    machine = next(filter(None, map(_machine_id, _MACHINE_FILES)), None)
    # Without a machine's id, as in most containers, the file itself has to tell: a copy is another file.
    return f"{file} on machine {machine}" if machine else f"{file}, file number {file.stat().st_ino}"


def _machine_id(file: Path) -> str | None:
    try:
        found = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    # Never the id itself: its manual page asks to keep it from others.
    return digest_of(["lance-federator", found])[:12] if found and found != "uninitialized" else None


def _server_place(index: Index) -> str:
    url = index.engine.url
    try:
        with index.read() as connection:
            server, database, schema = connection.exec_driver_sql(_POSTGRESQL).one()
    except DBAPIError as error:
        first = (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
        raise StateError(
            f"the database does not say which one it is: {first}",
            hint='give the deployment a name: [instance] fingerprint = "..."',
        ) from None
    # A copy of a whole server keeps its numbers, and answers at another address.
    return f"database {database} of server {server}, schema {schema}, at {url.host or 'this host'}:{url.port or 5432}/{url.database}"
