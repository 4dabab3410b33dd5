"""Reading one shard with a deadline: what happens inside a crawl task, without Spark.

A shard that fails, hangs or dies ends as failed Coverage of its namespaces; it is never an empty list and never a failed job.
That holds for a connector's own mistakes too.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from federator.connector import Catalog, CatalogError, FederatorError, ServiceUnavailable, Shard, SourceSpec
from federator.connector.calls import METER, Meter
from federator.connector.edge import of_connector
from federator.connector.errors import Internal
from federator.model import ROOT, Coverage, Path, Record, failed
from federator.planning.identity import IdentityReading
from federator.registry import open_catalog

Item = Record | Coverage | IdentityReading
_T = TypeVar("_T")
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Slot:
    """What one crawl task reads: some shards, or the error that planning met instead; ``identities`` were read while planning."""

    number: int
    shards: tuple[Shard, ...] = ()
    error: FederatorError | None = None
    identities: tuple[IdentityReading, ...] = ()


def slots(
    spec: SourceSpec, concurrency: int, deadline: float, meter: Meter = METER, *, only: Sequence[Path] | None = None
) -> list[Slot]:
    """Cuts a source's crawl, or that of ``only`` some namespaces, into at most ``concurrency`` slots.

    A source that does not answer becomes one slot with its error.
    """

    def cut() -> Iterator[tuple[Sequence[Shard], tuple[IdentityReading, ...]]]:
        with open_catalog(spec, meter) as catalog:
            before = IdentityReading(catalog.identity(only))
            shards = catalog.shards() if only is None else catalog.shards_of(only)
            # Behind a load balancer the next request may reach another catalog.
            yield shards, (before, IdentityReading(catalog.identity()))

    try:
        ((shards, identities),) = _bounded(cut, deadline)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this source's alone
        return [Slot(0, error=of_connector(spec.name, error))]
    if not shards:
        return [Slot(0, error=Internal(f"{spec.name}: the connector names nothing to read, not even the root"))]
    dealt = [tuple(shards[number::concurrency]) for number in range(concurrency)]
    return [Slot(number, hand, identities=() if number else identities) for number, hand in enumerate(dealt) if hand]


def read_slot(spec: SourceSpec, slot: Slot, deadline: float, meter: Meter = METER) -> Iterator[Item]:
    """The records and Coverage of a slot, and the identities that its connections had before and after.

    ``deadline`` (seconds) bounds each shard; ``meter`` counts the calls.
    """
    if slot.error is not None:
        yield _failure(spec.name, ROOT, slot.error)
        return
    yield from slot.identities
    catalog: Catalog | None = None
    try:
        for shard in slot.shards:
            try:
                if catalog is None:
                    catalog = open_catalog(spec, meter)
                    yield read_identity(catalog, deadline)
            except Exception as error:  # noqa: BLE001 - as for a shard
                yield from (_failure(spec.name, namespace, of_connector(spec.name, error)) for namespace in shard.namespaces)
                continue
            hangs = yield from read_shard(catalog, shard, deadline)
            if hangs:
                # Its connection is still waited on: what arrives there late must not be taken for an answer to the next shard.
                catalog = None
                meter.count(spec.name, "read", deadline, {str(_TooLong.code): 1})
        if catalog is not None:
            yield read_identity(catalog, deadline)
    finally:
        if catalog is not None:
            # A connection that broke in the meantime changes nothing about what was read.
            with suppress(Exception):
                catalog.close()


def read_shard(catalog: Catalog, shard: Shard, deadline: float) -> Generator[Item, None, bool]:
    """One shard's items. Namespaces that had no Coverage when the shard broke get a failed one.

    Returns whether the catalog is still busy with it.
    """
    covered: set[object] = set()
    try:
        for item in _bounded(lambda: catalog.read(shard), deadline):
            if isinstance(item, Coverage):
                covered.add(item.namespace)
            yield item
    except Exception as error:  # noqa: BLE001 - a failed shard is a row of Coverage, whatever failed
        for namespace in shard.namespaces:
            if namespace not in covered:
                yield _failure(catalog.source, namespace, of_connector(catalog.source, error))
        return isinstance(error, _TooLong)
    return False


def read_identity(catalog: Catalog, deadline: float, namespaces: Collection[Path] | None = ()) -> IdentityReading:
    """Read which catalog answers on a connection, in at most ``deadline`` seconds. A failure is part of the result."""
    try:
        (identity,) = _bounded(lambda: iter([catalog.identity(namespaces)]), deadline)
    except Exception as error:  # noqa: BLE001 - as for a shard
        return IdentityReading(error=str(of_connector(catalog.source, error)))
    return IdentityReading(identity)


class _TooLong(ServiceUnavailable):
    """The deadline passed, and the reading goes on in its thread."""


def _failure(source: str, namespace: tuple[str, ...], error: FederatorError) -> Coverage:
    code = error.code if isinstance(error, CatalogError) else Internal.code
    evidence = failed(code, str(error))
    return Coverage(source, namespace, presence=evidence, detail=evidence)


def answer(spec: SourceSpec, question: Callable[[Catalog], _T], deadline: float) -> _T:
    """What a source answers to one question. Raises FederatorError, whatever fails, and after ``deadline`` seconds."""

    def asked() -> Iterator[_T]:
        with open_catalog(spec) as catalog:
            yield question(catalog)

    try:
        (answered,) = _bounded(asked, deadline)
    except FederatorError:
        raise
    except Exception as error:  # noqa: BLE001 - as for a shard
        raise of_connector(spec.name, error) from None
    return answered


def _bounded(read: Callable[[], Iterator[_T]], deadline: float) -> Iterator[_T]:
    # A client that hangs in a system call cannot be interrupted from outside: it keeps its thread, and the shard goes on without it.
    reader = _Reader(read)
    end = time.monotonic() + deadline
    threading.Thread(target=reader.run, daemon=True).start()
    try:
        while True:
            try:
                chunk = reader.handed.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise _TooLong(f"reading took longer than the deadline of {deadline:g} s") from None
            if chunk is None:
                return
            if isinstance(chunk, BaseException):
                raise chunk
            yield from chunk
    finally:
        reader.abandoned.set()


class _Reader(Generic[_T]):
    """Reads in a thread of its own: chunks of items are handed over, then the error that ended it or None."""

    def __init__(self, read: Callable[[], Iterator[_T]]) -> None:
        self._read = read
        self.handed: queue.Queue[list[_T] | BaseException | None] = queue.Queue(maxsize=8)
        self.abandoned = threading.Event()

    def run(self) -> None:
        chunk: list[_T] = []
        end: BaseException | None = None
        try:
            for item in self._read():
                chunk.append(item)
                # A Coverage ends a namespace, which must not share the fate of the next one.
                if len(chunk) >= _CHUNK or isinstance(item, Coverage):
                    self._hand_over(chunk)
                    chunk = []
                if self.abandoned.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - handed over to the reading thread, which raises it
            end = error
        self._hand_over(chunk)
        self._hand_over(end)

    def _hand_over(self, what: list[_T] | BaseException | None) -> None:
        while not self.abandoned.is_set():
            try:
                self.handed.put(what, timeout=1.0)
            except queue.Full:
                continue
            return
