"""Reading one shard with a deadline: what happens inside a crawl task, without Spark.

A shard that fails, hangs or dies ends as failed Coverage of its namespaces; it is never an empty list and never a failed job.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from federator.connector import Catalog, CatalogError, FederatorError, ServiceUnavailable, Shard, SourceSpec
from federator.connector.errors import Internal
from federator.model import ROOT, Coverage, Record, failed
from federator.registry import open_catalog

Item = Record | Coverage
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Slot:
    """What one crawl task reads: some shards, or the error that planning met instead."""

    number: int
    shards: tuple[Shard, ...] = ()
    error: FederatorError | None = None


def slots(spec: SourceSpec, concurrency: int) -> list[Slot]:
    """Cuts a source's crawl into at most ``concurrency`` slots. A source that does not answer becomes one slot with its error."""
    try:
        with open_catalog(spec) as catalog:
            shards = list(catalog.shards())
    except FederatorError as error:
        return [Slot(0, error=error)]
    dealt = [tuple(shards[number::concurrency]) for number in range(concurrency)]
    return [Slot(number, hand) for number, hand in enumerate(dealt) if hand]


def read_slot(spec: SourceSpec, slot: Slot, deadline: float) -> Iterator[Item]:
    """The records and Coverage of a slot. ``deadline`` (seconds) bounds each shard."""
    if slot.error is not None:
        yield _failure(spec.name, ROOT, slot.error)
        return
    try:
        catalog = open_catalog(spec)
    except FederatorError as error:
        for shard in slot.shards:
            yield from (_failure(spec.name, namespace, error) for namespace in shard.namespaces)
        return
    try:
        for shard in slot.shards:
            yield from read_shard(catalog, shard, deadline)
    finally:
        catalog.close()


def read_shard(catalog: Catalog, shard: Shard, deadline: float) -> Iterator[Item]:
    """One shard's items. Namespaces that had no Coverage when the shard broke get a failed one."""
    covered: set[object] = set()
    try:
        for item in _bounded(lambda: catalog.read(shard), deadline):
            if isinstance(item, Coverage):
                covered.add(item.namespace)
            yield item
    except FederatorError as error:
        for namespace in shard.namespaces:
            if namespace not in covered:
                yield _failure(catalog.source, namespace, error)


def _failure(source: str, namespace: tuple[str, ...], error: FederatorError) -> Coverage:
    code = error.code if isinstance(error, CatalogError) else Internal.code
    evidence = failed(code, str(error))
    return Coverage(source, namespace, presence=evidence, detail=evidence)


def _bounded(read: Callable[[], Iterator[Item]], deadline: float) -> Iterator[Item]:
    # A client that hangs in a system call cannot be interrupted from outside: it keeps its thread, and the shard goes on without it.
    handed: queue.Queue[list[Item] | BaseException | None] = queue.Queue(maxsize=8)
    abandoned = threading.Event()

    def hand_over(what: list[Item] | BaseException | None) -> None:
        while not abandoned.is_set():
            try:
                handed.put(what, timeout=1.0)
            except queue.Full:
                continue
            return

    def fill() -> None:
        try:
            items = read()
            while chunk := list(islice(items, _CHUNK)):
                hand_over(chunk)
        except BaseException as error:  # noqa: BLE001 - handed over to the reading thread, which raises it
            hand_over(error)
        else:
            hand_over(None)

    end = time.monotonic() + deadline
    threading.Thread(target=fill, daemon=True).start()
    try:
        while True:
            try:
                chunk = handed.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise ServiceUnavailable(f"reading took longer than the deadline of {deadline:g} s") from None
            if chunk is None:
                return
            if isinstance(chunk, BaseException):
                raise chunk
            yield from chunk
    finally:
        abandoned.set()
