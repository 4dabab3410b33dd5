"""Recovery of direct writes: find the outcome of a write whose process died before it recorded one.

The lease of the process (``writer_lease``) shows that it is dead: it can be taken. Then the object is observed in its catalog, under
the table's lock. The outcome is recorded and audited, unless another process has done so, and the object is published. The intent of
a living process is left alone, however slow it is. So is one whose catalog does not respond, until the next run or write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from federator import logs
from federator.apply.outcome import OutcomeState
from federator.apply.publication import AffectedObject
from federator.apply.store_journal import DirectJournal, DirectOutcome
from federator.apply.table_locks import LOCKING_ACTIONS, TableLocks
from federator.apply.write_path import resolve_intent
from federator.apply.writer_lease import WriterLease
from federator.connector import Catalog, FederatorError
from federator.lance.facade_mapping import namespace_to_properties
from federator.model import Path, canonical_location, parse_path_key
from federator.runtime.text import first_line
from federator.store import Index, journal
from federator.store.journal import StoredIntent
from federator.store.leases import WRITER_PREFIX, LeaseHeld, acquire_lease, delete_lease, list_lapsed_leases

#: the stored code of a write whose outcome nobody recorded, and whose effect the catalog does not show
INTERRUPTED = "interrupted"
#: actions of which a catalog may keep an unfinished entry (``Catalog.remove_unfinished``)
DECLARING = frozenset({"declare_table", "register_table"})
_ENDED = "its process ended before the outcome was recorded"
_log = logs.get_logger(__name__)


@dataclass(frozen=True)
class DirectRecovery:
    """Resolves the open direct writes of dead processes, for one ``actor``.

    ``open_catalog`` opens a source for objects in some namespaces, and checks its identity. ``publish`` observes and publishes the
    objects of an operation. ``own`` is the lease of this process's writes, if it makes any.
    """

    index: Index
    actor: str
    locks: TableLocks
    open_catalog: Callable[[str, Collection[Path]], AbstractContextManager[Catalog]]
    publish: Callable[[str, str, Sequence[AffectedObject]], object]
    own: WriterLease | None = None

    def resolve(self, sources: Collection[str]) -> None:
        """Resolve the open direct writes of dead processes into sources."""
        with self.index.read() as connection:
            intents = journal.list_open_direct_writes(connection, sources)
        if self.own is not None:
            intents = [intent for intent in intents if not self.own.is_in_progress(intent.op_id)]
        for writer in dict.fromkeys(_writer(intent) for intent in intents):
            of_writer = [intent for intent in intents if _writer(intent) == writer]
            if self.own is not None and writer == self.own.name:
                self._resolve_all(of_writer)
                continue
            try:
                with acquire_lease(self.index, writer):
                    self._resolve_all(of_writer)
            except LeaseHeld:
                continue

    def delete_leases(self) -> None:
        """Delete the leases of dead processes that have no open writes."""
        lapsed = list_lapsed_leases(self.index, WRITER_PREFIX)
        with self.index.read() as connection:
            needed = journal.list_open_writers(connection) if lapsed else set()
        for name in lapsed:
            if name not in needed:
                delete_lease(self.index, name)

    def _resolve_all(self, intents: Sequence[StoredIntent]) -> None:
        for intent in intents:
            try:
                outcome = self._resolve(intent)
            except FederatorError as error:
                message = first_line(error)
                _log.warning("direct write is not yet resolved", op=intent.op_id, source=intent.target_source, error=message)
                continue
            if outcome is None:
                continue
            _log.info("direct write resolved", op=intent.op_id, source=intent.target_source, state=outcome.state.value)
            if affected := _list_affected(intent):
                self.publish(intent.target_source, intent.op_id, affected)

    def _resolve(self, intent: StoredIntent) -> DirectOutcome[Any] | None:
        """Record the outcome of a write, and return it. None if another process has recorded it. Raise CatalogError."""
        path, affected = parse_path_key(intent.target_path), _list_affected(intent)
        tables = [target.path for target in affected if target.is_table]
        lock = (
            self.locks.hold(intent.target_source, path, *tables, wait=0.0)
            if intent.action in LOCKING_ACTIONS
            else nullcontext()
        )
        with lock:
            with self.index.read() as connection:
                if not journal.is_open(connection, intent.op_id):
                    return None
            return resolve_intent(DirectJournal(self.index, self.actor), intent, partial(self._observe, intent, affected))

    def _observe(self, intent: StoredIntent, affected: Sequence[AffectedObject]) -> DirectOutcome[Any]:
        if not affected:
            message = f"{_ENDED}; check the newest version of the table"
            return DirectOutcome(OutcomeState.FAILED, INTERRUPTED, message)
        with self.open_catalog(intent.target_source, {target.path[:-1] for target in affected}) as catalog:
            paths = [catalog.canonical_path(target.path) for target in affected]
            if intent.action in DECLARING:
                catalog.remove_unfinished(paths[0], intent.op_id)
            judge = _JUDGES.get(intent.action)
            if judge is not None and judge(catalog, paths, intent.change.get("request", {})):
                return DirectOutcome(OutcomeState.DONE, message=f"{_ENDED}; the catalog shows its effect")
        return DirectOutcome(OutcomeState.FAILED, INTERRUPTED, f"{_ENDED}; the catalog does not show its effect")


def _writer(intent: StoredIntent) -> str:
    # Intents of earlier versions name no writer. All processes are stopped for an upgrade, so no process has them.
    return intent.writer or f"{WRITER_PREFIX}{intent.op_id}"


def _list_affected(intent: StoredIntent) -> list[AffectedObject]:
    """Return the objects of the catalog that a write may have changed; none for a write of a table's data."""
    affected = intent.change.get("affected")
    if affected is None:
        return [AffectedObject(parse_path_key(intent.target_path), not intent.action.endswith("_namespace"))]
    return [AffectedObject(parse_path_key(key), is_table) for key, is_table in affected]


Judge = Callable[[Catalog, Sequence[Path], dict[str, Any]], bool]


def _is_declared(catalog: Catalog, paths: Sequence[Path], request: dict[str, Any]) -> bool:
    """Any table at the requested location satisfies the request, since a declaration by a user is not owned."""
    record, location = catalog.observe(paths[0]).record, request.get("location")
    return record is not None and (not location or record.canonical == canonical_location(location))


def _is_renamed(catalog: Catalog, paths: Sequence[Path], _: dict[str, Any]) -> bool:
    return catalog.observe(paths[0]).is_absent and catalog.observe(paths[-1]).record is not None


def _is_absent(catalog: Catalog, paths: Sequence[Path], _: dict[str, Any]) -> bool:
    return catalog.observe(paths[0]).is_absent


def _is_altered(catalog: Catalog, paths: Sequence[Path], request: dict[str, Any]) -> bool:
    record = catalog.observe(paths[0]).record
    return record is not None and _has_changes(record.properties, request)


def _is_created(catalog: Catalog, paths: Sequence[Path], request: dict[str, Any]) -> bool:
    """A namespace that exists does not show that it was replaced."""
    return str(request.get("mode", "")).lower() != "overwrite" and catalog.find_namespace(paths[0]) is not None


def _is_dropped(catalog: Catalog, paths: Sequence[Path], _: dict[str, Any]) -> bool:
    return catalog.find_namespace(paths[0]) is None


def _is_namespace_altered(catalog: Catalog, paths: Sequence[Path], request: dict[str, Any]) -> bool:
    record = catalog.find_namespace(paths[0])
    return record is not None and _has_changes(namespace_to_properties(record), request)


def _has_changes(properties: Any, request: dict[str, Any]) -> bool:
    updates, removals = request.get("updates") or {}, request.get("removals") or []
    return all(properties.get(key) == value for key, value in updates.items()) and properties.keys().isdisjoint(removals)


#: whether the catalog shows the effect of an action. DropTable is not among them: the catalog does not show if its data is deleted.
_JUDGES: dict[str, Judge] = {
    "declare_table": _is_declared,
    "register_table": _is_declared,
    "rename_table": _is_renamed,
    "deregister_table": _is_absent,
    "alter_table": _is_altered,
    "create_namespace": _is_created,
    "drop_namespace": _is_dropped,
    "alter_namespace": _is_namespace_altered,
}
