"""A person's own write to a catalog: journal → the one call → a look at what is there now → published.

The caller's role and scopes are checked before this. A write that declares, alters, renames or removes a table holds its lock
(``table_locks``), a rename those of both names. The intent is durable before the call and its outcome after it, with an audit event in
the same transaction. Nothing is repeated.

What was written is looked at directly and becomes the source's next revision at once; while a crawl holds the source's lease, which may
take minutes, the write does not wait for it: the answer says so (``Written.published``), a look at the object finds it here already
(``federator.index.late``), and it is published, after another look, when the lease is free. If this process ends before that, the next
crawl finds it.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import RowMapping

from federator import logs
from federator.audit.seal import seal_batch
from federator.connector import (
    Catalog,
    CatalogError,
    FederatorError,
    Internal,
    InvalidInput,
    NamespaceNotFound,
    PermissionDenied,
    TableAlreadyExists,
    Unauthenticated,
    Unsupported,
)
from federator.connector.operation import operation
from federator.connector.options import masked
from federator.index import DatabaseError, Index, audit_log, deployment, journal, late, listing, revisions
from federator.index.leases import LeaseHeld, hold
from federator.index.observed import Observed, publish_observed
from federator.model import Kind, Path, TableRecord, canonical_json, parent, parse_key, path_key
from federator.registry import connector
from federator.settings import Settings
from federator.sync.identities import check_identity
from federator.sync.table_locks import TableLocks

if TYPE_CHECKING:
    from federator.connector.namespace import CatalogNamespace

T = TypeVar("T")

#: seconds that a write waits for its source's lease before it leaves publishing to later
PATIENCE = 1.0
_RETRY = 1.0
_LONGEST_RETRY = 60.0
#: an open intent of a person's write older than this belongs to a process that is gone
_DEAD_AFTER = 3600.0
#: a person's writes belong to no mirror
NO_MIRROR = ""
#: actions that hold the locks of the tables that they touch
_LOCKING = frozenset({"declare_table", "register_table", "alter_table", "rename_table", "deregister_table", "drop_table"})
_DECLARING = frozenset({"declare_table", "register_table"})
# These say nothing of what is there.
_TELL_NOTHING = (Unsupported, InvalidInput, PermissionDenied, Unauthenticated)
_log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class Touched:
    """An object that a write may have changed: ``path`` is from the source's root."""

    path: Path
    is_table: bool = True


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody asked for: ``action`` on the object at ``path``, from the source's root; ``request`` is what the audit keeps."""

    actor: str
    source: str
    action: str
    path: Path
    touched: Sequence[Touched]
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """A write that was made. ``published`` is False while the index does not say so yet."""

    answer: T
    op_id: str
    published: bool


class Writer:
    """Carries out people's writes over one index; safe for threads. Connections to catalogs are kept until ``close``."""

    def __init__(self, index: Index, settings: Settings) -> None:
        self._index = index
        self._settings = settings
        self._faces: dict[str, CatalogNamespace] = {}
        self._opening = threading.Lock()
        self._publishing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._later: dict[str, threading.Thread] = {}
        self._closed = threading.Event()
        self._swept = False
        self.locks = TableLocks(index)

    def write(self, order: Order, call: Callable[[CatalogNamespace], T], *, locked: bool = False) -> Written[T]:
        """Makes the call through the catalog's face, and what belongs around it. ``locked``: the caller holds the table's lock.

        Raises ConcurrentModification, before anything is done, where another write to the table is in progress for long;
        CatalogError as the catalog meant it, but for its refusal of our own sign-in, which is PermissionDenied here;
        StateError in a clone of an index; IdentityChanged where another catalog answers than the index knows.
        """
        deployment.check_original(self._index, self._settings.instance)
        self._sweep()
        face = self.face(order.source)
        with face.lent() as catalog:
            check_identity(self._index, catalog, [parent(order.path)] if order.path else ())
        tables = [each.path for each in order.touched if each.is_table]
        lock = nullcontext() if locked or order.action not in _LOCKING else self.locks.hold(order.source, order.path, *tables)
        failure: FederatorError | None = None
        with lock:
            op_id = self._intend(order)
            try:
                with operation(op_id):
                    answer = self._call(order, call, face)
            except FederatorError as error:
                failure = error
            self._settle(order, op_id, failure)
        if failure is not None:
            if not isinstance(failure, _TELL_NOTHING):
                # The index may know less than the catalog: a name that is taken, a call whose answer got lost.
                self._follow(_with_dropped(order, failure), op_id, face)
            raise _ours(order.source, failure) from failure
        return Written(answer, op_id, self._follow(order, op_id, face))

    def _call(self, order: Order, call: Callable[[CatalogNamespace], T], face: CatalogNamespace) -> T:
        try:
            return _made(call, face)
        except TableAlreadyExists:
            if order.action not in _DECLARING or not self._remove_unfinished(order, face):
                raise
            return _made(call, face)

    def _remove_unfinished(self, order: Order, face: CatalogNamespace) -> bool:
        """Remove the unfinished declaration of an earlier direct write to the table. Return False if there is none.

        That write is over, since this one holds the table's lock. An entry of any other operation is left alone.
        """
        with face.lent() as catalog:
            path = catalog.canonical_path(order.path)
            op_id = catalog.observe(path).unfinished
            if op_id is None:
                return False
            with self._index.read() as connection:
                known = journal.is_direct_write(connection, op_id, NO_MIRROR, order.source)
            return known and catalog.remove_unfinished(path, op_id)

    def record(self, order: Order, act: Callable[[], T]) -> tuple[T, str]:
        """Journals and audits what changes no catalog, a table's data; returns its answer and the id that both know it by.

        Raises what ``act`` raises, and StateError in a clone of an index.
        """
        deployment.check_original(self._index, self._settings.instance)
        self._sweep()
        op_id = self._intend(order)
        try:
            answer = act()
        except FederatorError as error:
            self._settle(order, op_id, error)
            raise
        self._settle(order, op_id, None)
        return answer, op_id

    def face(self, source: str) -> CatalogNamespace:
        """The official face of a configured source. Raises ConfigError."""
        with self._opening:
            if source not in self._faces:
                # The Lance packages cost 0.7 s to import, which only who writes has to pay.
                from federator.connector.namespace import namespace_class

                spec = self._settings.source(source).spec
                found = connector(spec.impl)
                settings = found.configure(spec.properties, where=f"[sources.{source}] ")
                self._faces[source] = namespace_class(found, "SourceNamespace").of(source, settings)
            return self._faces[source]

    def close(self) -> None:
        """Ends what publishes later, and closes connections."""
        self._closed.set()
        for thread in list(self._later.values()):
            thread.join()
        for face in self._faces.values():
            face.close()

    # Before and after the call.

    def _intend(self, order: Order) -> str:
        op_id = f"{int(time.time() * 1000):011x}-{uuid.uuid4().hex[:8]}"
        change = {"action": order.action, "reason": f"asked for by {order.actor}", "request": masked(dict(order.request))}
        row = {
            "op_id": op_id, "run_id": op_id, "plan": "", "mirror": NO_MIRROR, "seq": 0, "action": order.action,
            "target_source": order.source, "target_path": path_key(order.path), "origin_path": None,
            "change": _storable(change), "saved": None,
        }  # fmt: skip
        with self._index.write() as connection:
            journal.intend(connection, row)
        return op_id

    def _settle(self, order: Order, op_id: str, error: FederatorError | None) -> None:
        code = str(error.code) if isinstance(error, CatalogError) else None
        state, message = ("failed", error.message) if error is not None else ("done", None)
        detail = {
            "action": order.action, "request": dict(order.request), "state": state, "code": code, "message": message,
            "op_id": op_id,
        }  # fmt: skip
        with self._index.write() as connection:
            journal.settle(connection, op_id, state, code=code, message=message)
            subject = path_key((order.source, *order.path))
            # Sealed in the same transaction: there may be no run that does it soon.
            audit_log.lock_chain(connection)
            audit_log.append(connection, "own_write", actor=order.actor, run_id=op_id, subject=subject, detail=detail)
            seal_batch(connection)

    def _sweep(self) -> None:
        """Settles, once, what a process that is gone left open: the next crawl shows what became of it."""
        if self._swept:
            return
        self._swept = True
        before = time.time() - _DEAD_AFTER
        with self._index.read() as connection:
            dead = [row for row in journal.open_intents(connection, NO_MIRROR) if row["intent_at"] < before]
        over = [row for row in dead if row["action"] not in _DECLARING or self._undone(row)]
        if over:
            with self._index.write() as connection:
                for row in over:
                    message = "its process ended before it knew; the next crawl shows what is there"
                    journal.settle(connection, row["op_id"], "failed", code="interrupted", message=message)
                    detail = {"action": row["action"], "state": "failed", "code": "interrupted", "op_id": row["op_id"]}
                    subject = f"{row['target_source']}${row['target_path']}"
                    audit_log.append(connection, "own_write", actor="api", run_id=row["op_id"], subject=subject, detail=detail)

    def _undone(self, row: RowMapping) -> bool:
        """Remove the unfinished declaration of an intent. Return False if the catalog does not answer: the intent stays open."""
        source, path = row["target_source"], parse_key(row["target_path"])
        if source not in self._settings.sources:
            return True
        try:
            with self.face(source).lent() as catalog:
                catalog.remove_unfinished(catalog.canonical_path(path), row["op_id"])
        except FederatorError as error:
            _log.warning("an interrupted write is not resolved yet", source=source, error=_first_line(error))
            return False
        return True

    # What is there now, in the index.

    def _follow(self, order: Order, op_id: str, face: CatalogNamespace) -> bool:
        """Looks at what was touched and publishes it; returns whether the index knows it now. The write itself stands either way."""
        source = order.source
        try:
            with self._publishing[source]:
                if not late.waiting(self._index, source):
                    with suppress(LeaseHeld):
                        self._publish(source, op_id, face, order.touched, wait=PATIENCE)
                        return True
                late.put(self._index, source, self._look(face, order.touched))
                self._publish_later(source, op_id)
        except (FederatorError, DatabaseError) as error:
            _log.warning("what was written is not in the index", source=source, error=_first_line(error))
        return False

    def _publish(self, source: str, op_id: str, face: CatalogNamespace, touched: Sequence[Touched], *, wait: float) -> None:
        settings = self._settings.source(source)
        revisions.register(self._index, source, settings.impl, settings.digest)
        with hold(self._index, f"source:{source}", wait=wait) as lease:
            # Looked at with the lease held, so that nobody's newer evidence is replaced by this.
            looks = self._look(face, touched)
            publish_observed(self._index, lease, source, op_id, [*looks, *self._gone_below(source, looks)])

    def _look(self, face: CatalogNamespace, touched: Sequence[Touched]) -> list[Observed]:
        """As ``look``, if the catalog that answers is the one that the index knows."""
        with face.lent() as catalog:
            check_identity(self._index, catalog, {parent(one.path) for one in touched})
        return look(face, touched)

    def _gone_below(self, source: str, looks: Sequence[Observed]) -> list[Observed]:
        """What a namespace that is gone held."""
        dropped = [seen for seen in looks if seen.record is None and not seen.is_table]
        with self._index.read() as connection:
            return [
                Observed(path, None, seen.at, is_table)
                for seen in dropped
                for path, is_table in listing.below(connection, source, seen.path)
            ]

    def _publish_later(self, source: str, op_id: str) -> None:
        """Called, as all that touches ``_later``, with the source's lock."""
        if source not in self._later:
            thread = threading.Thread(target=self._catch_up, args=(source, op_id), name=f"publish {source}", daemon=True)
            self._later[source] = thread
            thread.start()

    def _catch_up(self, source: str, op_id: str) -> None:
        """Publishes what waits as soon as nobody holds the lease, after another look."""
        pause = _RETRY
        while not self._closed.wait(pause):
            try:
                with self._publishing[source]:
                    waits = late.waiting(self._index, source)
                    touched = [Touched(seen.path, seen.is_table) for seen in waits]
                    self._publish(source, op_id, self.face(source), touched, wait=0.0)
                    late.drop(self._index, source, waits)
                    del self._later[source]
                    return
            except LeaseHeld:
                pause = _RETRY
            except (FederatorError, DatabaseError) as error:
                pause = min(2 * pause, _LONGEST_RETRY)
                _log.warning("what was written is not published yet", source=source, error=_first_line(error))


def look(face: CatalogNamespace, touched: Sequence[Touched]) -> list[Observed]:
    """A direct look at some objects, each as the index keeps it. Raises CatalogError.

    A name that something other than a Lance table has is left to the crawl, which knows what to make of it.
    """
    found: list[Observed] = []
    with face.lent() as catalog:
        for one in touched:
            at = time.time()
            path = catalog.canonical_path(one.path)
            if not one.is_table:
                found.append(_namespace(catalog, path, at))
                continue
            seen = catalog.observe(path)
            if seen.foreign is None and (seen.record is None or seen.record.kind is Kind.TABLE):
                found.append(Observed(path, seen.record, at, is_table=True))
    return found


def _with_dropped(order: Order, error: FederatorError) -> Order:
    """The order with what a cascade had removed before it was stopped."""
    dropped = error.dropped if isinstance(error, CatalogError) else ()
    return replace(order, touched=[*order.touched, *(Touched(each.path, isinstance(each, TableRecord)) for each in dropped)])


def _namespace(catalog: Catalog, path: Path, at: float) -> Observed:
    try:
        return Observed(path, catalog.describe_namespace(path), at, is_table=False)
    except NamespaceNotFound:
        return Observed(path, None, at, is_table=False)


def _made(call: Callable[[CatalogNamespace], T], face: CatalogNamespace) -> T:
    """The call's answer; what it raises as ours again, which the official face's errors have as their cause."""
    import lance_namespace

    try:
        return call(face)
    except lance_namespace.LanceNamespaceError as error:
        if isinstance(error.__cause__, FederatorError):
            raise error.__cause__ from None
        raise Internal(str(error)) from error


def _ours(source: str, error: FederatorError) -> FederatorError:
    """A catalog that does not know *us* has not refused the caller's token: 16 is only that."""
    if isinstance(error, Unauthenticated):
        return PermissionDenied(f"{source}: the catalog refuses this service's own sign-in: {error.message}")
    return error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _storable(value: Any) -> str:
    return canonical_json(value).encode("utf-8", "replace").decode()
