"""The deployment fingerprint, which keeps a clone of the index from writing to mirror targets.

An index belongs to one site. The index stores a random fingerprint and the site where it was confirmed. The configuration may name the
site (``[instance] fingerprint``). Otherwise the site is derived from facts that a copy of the database does not share:
docs/adr/0007-deployment-fingerprint.md.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from federator.connector import ConfigError, StateError
from federator.connector.options import resolve_reference
from federator.model import digest_of
from federator.model.audit_kinds import AuditKind
from federator.settings import InstanceSettings
from federator.store import audit_log
from federator.store import tables as t
from federator.store.engine import Index
from federator.store.key_values import claim_value, set_value

# Keys in the table ``deployment``.
_FINGERPRINT, _SITE, _LEFT, _INSTANCE = "fingerprint", "place", "left_instance", "instance"
_KEYS = (_FINGERPRINT, _SITE, _LEFT, _INSTANCE)
_MACHINE_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_POSTGRESQL = """
SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()), current_schema()
FROM pg_control_system()
"""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The fingerprint of an index, its sites and its instance ids."""

    fingerprint: str
    #: the site where the index was confirmed; None before its first run
    confirmed_site: str | None
    #: the site where the index is open now
    current_site: str
    #: the instance id that the index left to its original when its fingerprint was rotated
    released_instance: str | None = None
    #: the instance id in the ownership markers of its mirrors; None if no run had one yet
    instance: str | None = None

    @property
    def is_clone(self) -> bool:
        return self.confirmed_site is not None and self.confirmed_site != self.current_site

    def has_released(self, instance: InstanceSettings) -> bool:
        """Return whether the configured instance id belongs to the index that this one was copied from."""
        return self.released_instance is not None and self.released_instance == instance.id

    def is_renamed(self, instance: InstanceSettings) -> bool:
        """Return whether the configured instance id differs from the one in the ownership markers."""
        return None not in (self.instance, instance.id) and self.instance != instance.id


def read_deployment(index: Index, instance: InstanceSettings) -> Deployment:
    """Return the deployment of the index. Raise StateError if its site cannot be determined, ConfigError for a missing variable."""
    current_site = _current_site(index, instance)
    with index.read() as connection:
        return _load(connection, current_site)


def read_fingerprint(connection: Connection) -> str:
    """Return the fingerprint of the index."""
    return str(connection.execute(select(t.deployment.c.value).where(t.deployment.c.key == _FINGERPRINT)).scalar_one())


def claim_site(index: Index, instance: InstanceSettings) -> None:
    """Record the site and the instance id of the index at its first run.

    Only ``confirm_site`` and ``rotate_fingerprint`` change them later.
    """
    current_site = _current_site(index, instance)
    with index.read() as connection:
        known = _load(connection, current_site)
    first = {_SITE: current_site} if known.confirmed_site is None else {}
    if known.instance is None and instance.id is not None and not (known.is_clone or known.has_released(instance)):
        first[_INSTANCE] = instance.id
    if first:
        with index.write() as connection:
            for key, value in first.items():
                claim_value(connection, key, value)


def require_original(index: Index, instance: InstanceSettings) -> None:
    """Raise StateError in a clone: only an index at its confirmed site may write to mirror targets."""
    deployment = read_deployment(index, instance)
    if deployment.is_clone:
        raise StateError(
            f"this index is a clone: it belongs to {deployment.confirmed_site}, but it was opened at {deployment.current_site}; "
            "a clone does not write to mirror targets",
            hint="federator instance confirm if it moved here, federator instance rotate if the original stays in use",
        )
    if deployment.has_released(instance):
        raise StateError(
            f"the fingerprint of this index was rotated, so the instance id {deployment.released_instance!r} belongs to the index "
            "that it was copied from",
            hint="choose a new [instance] id",
        )
    _check_id(deployment, instance)


def check_instance_id(index: Index, instance: InstanceSettings) -> None:
    """Raise StateError if the [instance] id was changed: mirrors would no longer recognise their own declarations.

    A clone may plan with its own id, because ``require_original`` keeps it from writing.
    """
    deployment = read_deployment(index, instance)
    if not deployment.is_clone:
        _check_id(deployment, instance)


def _check_id(deployment: Deployment, instance: InstanceSettings) -> None:
    if deployment.is_renamed(instance):
        raise StateError(
            f"[instance] id is {instance.id!r}, but the declarations of this index are marked {deployment.instance!r}, so none would "
            "count as owned",
            hint=f"set [instance] id back to {deployment.instance!r}; or run federator instance confirm, then declarations marked "
            f"{deployment.instance!r} are kept and refused as not_ours",
        )


def confirm_site(index: Index, instance: InstanceSettings, *, actor: str) -> Deployment:
    """Record the current site as the site of the index: the index was moved, and no process uses the old copy."""
    current_site = _current_site(index, instance)
    with index.write() as connection:
        before = _load(connection, current_site)
        set_value(connection, _SITE, current_site)
        set_value(connection, _LEFT, None)
        set_value(connection, _INSTANCE, instance.id)
        _append_audit_event(connection, AuditKind.INSTANCE_CONFIRMED, actor, instance, before)
        return _load(connection, current_site)


def rotate_fingerprint(index: Index, instance: InstanceSettings, *, actor: str) -> Deployment:
    """Give the index a new fingerprint, so that it becomes a deployment of its own. Its instance id stays with the original."""
    current_site = _current_site(index, instance)
    with index.write() as connection:
        before = _load(connection, current_site)
        set_value(connection, _FINGERPRINT, uuid.uuid4().hex)
        set_value(connection, _SITE, current_site)
        set_value(connection, _LEFT, before.released_instance if instance.id is None else instance.id)
        set_value(connection, _INSTANCE, None)
        _append_audit_event(connection, AuditKind.INSTANCE_ROTATED, actor, instance, before)
        return _load(connection, current_site)


def _append_audit_event(
    connection: Connection, kind: AuditKind, actor: str, instance: InstanceSettings, before: Deployment
) -> None:
    after = _load(connection, before.current_site)
    detail = {
        "before": before.confirmed_site, "place": after.confirmed_site, "was": before.fingerprint, "fingerprint": after.fingerprint,
        "was_instance": before.instance,
    }  # fmt: skip
    audit_log.append_event(connection, kind, actor=actor, run_id=None, subject=instance.id or "", detail=detail)


def _load(connection: Connection, current_site: str) -> Deployment:
    d = t.deployment.c
    values: dict[str, str] = {row.key: row.value for row in connection.execute(select(d.key, d.value).where(d.key.in_(_KEYS)))}
    return Deployment(values[_FINGERPRINT], values.get(_SITE), current_site, values.get(_LEFT), values.get(_INSTANCE))


def _current_site(index: Index, instance: InstanceSettings) -> str:
    if instance.fingerprint is not None:
        configured = resolve_reference(instance.fingerprint, where="[instance] fingerprint").strip()
        if not configured:
            raise ConfigError("[instance] fingerprint: is empty", hint="any text that no other deployment has")
        return f"the fingerprint {configured}"
    return _file_site(index.file) if index.file is not None else _server_site(index)


def _file_site(file: Path) -> str:
    file = file.resolve()
    machine = next(filter(None, map(_machine_id, _MACHINE_FILES)), None)
    # Most containers have no machine id. Then the file's number identifies it: a copy is another file.
    return f"{file} on machine {machine}" if machine else f"{file}, file number {file.stat().st_ino}"


def _machine_id(file: Path) -> str | None:
    try:
        machine = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    # A digest, since the manual page of machine-id asks to keep the id itself confidential.
    return digest_of(["lance-federator", machine])[:12] if machine and machine != "uninitialized" else None


def _server_site(index: Index) -> str:
    url = index.engine.url
    try:
        with index.read() as connection:
            server, database, schema = connection.exec_driver_sql(_POSTGRESQL).one()
    except DBAPIError as error:
        first_line = (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
        raise StateError(
            f"the database server could not be identified: {first_line}",
            hint='name the deployment: [instance] fingerprint = "..."',
        ) from None
    # A copy of a whole server keeps its identifiers but has another address.
    return f"database {database} of server {server}, schema {schema}, at {url.host or 'this host'}:{url.port or 5432}/{url.database}"
