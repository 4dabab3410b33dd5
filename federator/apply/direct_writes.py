"""Direct writes: a principal's own write to a catalog, with lock, journal and publication.

Role and scopes are checked before. A write that declares, alters, renames or removes a table holds its lock (``table_locks``); a
rename holds those of both names. ``write_path`` makes the one call between intent and outcome. No call is repeated, except a
declaration after an unfinished entry was removed. ``publication`` observes and publishes the written objects afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from federator.apply.direct_recovery import DECLARING, DirectRecovery
from federator.apply.outcome import OutcomeState
from federator.apply.publication import AffectedObject, Publisher
from federator.apply.source_identity import check_identity
from federator.apply.store_journal import DirectJournal, DirectOutcome
from federator.apply.table_locks import LOCKING_ACTIONS, TableLocks
from federator.apply.write_path import carry_out
from federator.apply.writer_lease import WriterLease
from federator.connector import (
    Catalog,
    CatalogError,
    FederatorError,
    Internal,
    InvalidInput,
    PermissionDenied,
    TableAlreadyExists,
    Unauthenticated,
    Unsupported,
)
from federator.connector.operation import new_operation_id, require_permission
from federator.connector.options import mask_secrets
from federator.model import Path, TableRecord, parent_path, path_key
from federator.registry import get_connector, parse_connector_settings
from federator.settings import Settings
from federator.store import Index, deployment, journal
from federator.store.journal import NO_MIRROR, StoredIntent
from federator.views import datasets

if TYPE_CHECKING:
    from federator.lance.facade import CatalogNamespace

T = TypeVar("T")

# These errors reveal nothing about the object, so it is not observed.
_UNINFORMATIVE_ERRORS = (Unsupported, InvalidInput, PermissionDenied, Unauthenticated)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A requested write: ``action`` on the object at ``path``, from the source's root.

    ``request`` is the content for the audit event.
    """

    actor: str
    source: str
    action: str
    path: Path
    affected: Sequence[AffectedObject]
    request: Mapping[str, Any] = field(default_factory=dict)

    def to_intent(self, op_id: str, writer: str) -> StoredIntent:
        """Return the intent of this write. ``writer`` is the lease of its process."""
        change = {
            "action": self.action, "reason": f"requested by {self.actor}", "actor": self.actor,
            "request": mask_secrets(dict(self.request)),
            "affected": [[path_key(item.path), item.is_table] for item in self.affected],
        }  # fmt: skip
        return StoredIntent(
            op_id=op_id, run_id=op_id, plan="", mirror=NO_MIRROR, seq=0, action=self.action, target_source=self.source,
            target_path=path_key(self.path), change=change, writer=writer,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WriteResult(Generic[T]):
    """The result of a completed write. ``published`` is False while it is not in the index."""

    response: T
    op_id: str
    published: bool


class DirectWriter:
    """Makes direct writes over one index. Safe for threads. Catalog connections stay open until ``close``."""

    def __init__(self, index: Index, settings: Settings) -> None:
        self._index = index
        self._settings = settings
        self._facades: dict[str, CatalogNamespace] = {}
        self._opening = threading.Lock()
        self._publisher = Publisher(index, settings, lambda source: self.facade(source).borrow_catalog())
        self._lease = WriterLease(index)
        self.locks = TableLocks(index, settings)
        self._recovery = DirectRecovery(index, "api", self.locks, self._open_known, self._publisher.publish, self._lease)

    def write(self, request: WriteRequest, call: Callable[[CatalogNamespace], T], *, locked: bool = False) -> WriteResult[T]:
        """Make the call through the catalog's facade, with lock, intent, outcome, audit event and publication.

        ``locked`` says that the principal's request already holds the table's lock. Raise ConcurrentModification, before anything
        is done, if another write to the table is in progress for too long. Raise the catalog's CatalogError, but PermissionDenied
        if the catalog refuses this service's own credentials. Raise StateError in a clone of an index, and IdentityChanged if
        another catalog responds than the index knows.
        """
        self._prepare(request.source)
        facade = self.facade(request.source)
        # Only to check the identity of the catalog: the call below opens its own connection.
        with (
            self._translate_refusal(request.source),
            self._open_known(request.source, [parent_path(request.path)] if request.path else ()),
        ):
            pass
        tables = [affected.path for affected in request.affected if affected.is_table]
        lock = (
            nullcontext()
            if locked or request.action not in LOCKING_ACTIONS
            else self.locks.hold(request.source, request.path, *tables)
        )
        with lock:
            op_id, outcome = self._carry_out(request, lambda: self._call(request, call, facade))
        error = outcome.error
        if error is None:
            published = self._publisher.publish(request.source, op_id, request.affected)
            return WriteResult(cast(T, outcome.response), op_id, published)
        if not isinstance(error, _UNINFORMATIVE_ERRORS):
            # The index may be older than the catalog: the error may be a name that is taken, or a call whose response was lost.
            self._publisher.publish(request.source, op_id, [*request.affected, *_dropped_objects(error)])
        with self._translate_refusal(request.source):
            raise error

    @contextmanager
    def _translate_refusal(self, source: str) -> Iterator[None]:
        """Re-raise Unauthenticated as PermissionDenied: code 16 would blame the principal's own token.

        The source's credentials may have expired and been replaced since its facade was made, so the next call makes another one.
        """
        try:
            yield
        except Unauthenticated as error:
            with self._opening:
                facade = self._facades.pop(source, None)
            if facade is not None:
                facade.close()
            refused = f"{source}: the catalog refuses this service's own credentials: {error.message}"
            raise PermissionDenied(refused, hint=error.hint) from error

    def record_data_write(self, request: WriteRequest, write_data: Callable[[], T]) -> tuple[T, str]:
        """Record and audit a write of a table's data, which changes no catalog. Return its response and its operation id.

        Raise what ``write_data`` raises, and StateError in a clone of an index.
        """
        self._prepare(request.source)
        op_id, outcome = self._carry_out(request, write_data)
        if outcome.error is not None:
            raise outcome.error
        return cast(T, outcome.response), op_id

    def facade(self, source: str) -> CatalogNamespace:
        """Return the Lance facade of a configured source. Raise ConfigError."""
        with self._opening:
            if source not in self._facades:
                # Importing the Lance packages takes 0.7 s, so only processes that write do it.
                from federator.lance.facade import facade_class

                spec = self._settings.source(source).spec
                facade = facade_class(get_connector(spec.impl), "SourceNamespace")
                self._facades[source] = facade.for_source(source, parse_connector_settings(spec), self._list_declaring)
            return self._facades[source]

    def close(self) -> None:
        """Stop pending publications, give up the lease and close connections."""
        self._publisher.close()
        self._lease.close()
        for facade in self._facades.values():
            facade.close()

    def _list_declaring(self, location: str) -> frozenset[str]:
        return datasets.list_declaring_tables(self._index, location, self._settings.location_aliases)

    @contextmanager
    def _open_known(self, source: str, namespaces: Collection[Path]) -> Iterator[Catalog]:
        with self.facade(source).borrow_catalog() as catalog:
            check_identity(self._index, catalog, namespaces)
            yield catalog

    def _prepare(self, source: str) -> None:
        """Check that this index may write, and resolve the open writes of dead processes into the source."""
        deployment.require_original(self._index, self._settings.instance)
        self._recovery.resolve([source])

    def _carry_out(self, request: WriteRequest, call: Callable[[], T]) -> tuple[str, DirectOutcome[T]]:
        def attempt() -> DirectOutcome[T]:
            try:
                # Checked here too, because not every write is a request of a connector.
                require_permission()
                return DirectOutcome(OutcomeState.DONE, response=call())
            except FederatorError as error:
                code = str(error.code) if isinstance(error, CatalogError) else None
                return DirectOutcome(OutcomeState.FAILED, code, error.message, error=error)

        op_id = new_operation_id()
        with self._lease.write(op_id) as lease:
            intent = request.to_intent(op_id, lease.name)
            return op_id, carry_out(DirectJournal(self._index, request.actor, lease), intent, attempt)

    def _call(self, request: WriteRequest, call: Callable[[CatalogNamespace], T], facade: CatalogNamespace) -> T:
        try:
            return _call_facade(call, facade)
        except TableAlreadyExists:
            if request.action not in DECLARING or not self._remove_unfinished(request, facade):
                raise
            return _call_facade(call, facade)

    def _remove_unfinished(self, request: WriteRequest, facade: CatalogNamespace) -> bool:
        """Remove the unfinished declaration of an earlier direct write to the table. Return False if there is none.

        The earlier write has ended, because this one holds the table's lock. The entry of any other operation is left alone.
        """
        with facade.borrow_catalog() as catalog:
            path = catalog.canonical_path(request.path)
            op_id = catalog.observe(path).unfinished
            if op_id is None:
                return False
            with self._index.read() as connection:
                is_direct = journal.has_intent(connection, op_id, NO_MIRROR, request.source)
            return is_direct and catalog.remove_unfinished(path, op_id)


def _dropped_objects(error: FederatorError) -> list[AffectedObject]:
    """Return the objects that a cascade had dropped before it failed."""
    dropped = error.dropped if isinstance(error, CatalogError) else ()
    return [AffectedObject(record.path, isinstance(record, TableRecord)) for record in dropped]


def _call_facade(call: Callable[[CatalogNamespace], T], facade: CatalogNamespace) -> T:
    """Call the Lance facade and return its response. Re-raise the FederatorError that caused a LanceNamespaceError."""
    import lance_namespace

    try:
        return call(facade)
    except lance_namespace.LanceNamespaceError as error:
        if isinstance(error.__cause__, FederatorError):
            raise error.__cause__ from None
        raise Internal(str(error)) from error
