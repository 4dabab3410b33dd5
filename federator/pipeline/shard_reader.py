"""Shard reader: read the shards of one crawl task with a deadline, without Spark.

A shard that fails, hangs or dies becomes failed coverage of its namespaces. It is never an empty list and never a failed job. This
also holds for errors in a connector.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from federator.connector import Catalog, CatalogError, FederatorError, Shard, SourceSpec
from federator.connector.call_metrics import PROCESS_METER, CallMeter
from federator.connector.errors import Internal
from federator.connector.native_errors import as_federator_error
from federator.model import ROOT, Coverage, Path, Record, failed_evidence, fold_digest
from federator.pipeline.deadlines import DeadlineExceeded, iterate_with_deadline
from federator.planning.crawls import READ_BY_NAME
from federator.planning.identity import IdentityReading
from federator.planning.incremental import NamedTables
from federator.registry import open_catalog

Item = Record | Coverage | IdentityReading


@dataclass(frozen=True, slots=True)
class CrawlTask:
    """Some shards, or the error of the planning. ``identities`` were read during the planning.

    ``tasks`` is the number of the crawl's tasks, which share the source's call limits.
    """

    number: int
    shards: tuple[Shard | NamedTables, ...] = ()
    error: FederatorError | None = None
    identities: tuple[IdentityReading, ...] = ()
    tasks: int = 1


def plan_crawl_tasks(
    spec: SourceSpec, concurrency: int, deadline: float, meter: CallMeter = PROCESS_METER, *, only: Sequence[Path] | None = None,
    tables: Sequence[NamedTables] = (),
) -> list[CrawlTask]:  # fmt: skip
    """Split a source's crawl, or that of the namespaces ``only`` and of ``tables``, into at most ``concurrency`` tasks.

    A source that does not respond becomes one task with its error.
    """

    def plan() -> Iterator[tuple[Sequence[Shard | NamedTables], tuple[IdentityReading, ...]]]:
        with open_catalog(spec, meter) as catalog:
            involved = None if only is None else [*only, *(named.namespace for named in tables)]
            before = IdentityReading(catalog.identity(involved))
            shards: list[Shard | NamedTables] = [
                *(catalog.plan_shards() if only is None else catalog.plan_shards_for(only)),
                *tables,
            ]
            # Read the identity again: behind a load balancer, a later request may reach another catalog.
            yield shards, (before, IdentityReading(catalog.identity()))

    try:
        ((shards, identities),) = iterate_with_deadline(plan, deadline)
    except Exception as error:  # noqa: BLE001 - any error concerns only this source
        return [CrawlTask(0, error=as_federator_error(spec.name, error))]
    if not shards:
        return [CrawlTask(0, error=Internal(f"{spec.name}: the connector planned no shards, not even for the root"))]
    tasks = min(concurrency, len(shards))
    return [
        CrawlTask(number, tuple(shards[number::tasks]), identities=() if number else identities, tasks=tasks)
        for number in range(tasks)
    ]


def read_crawl_task(spec: SourceSpec, task: CrawlTask, deadline: float, meter: CallMeter = PROCESS_METER) -> Iterator[Item]:
    """Yield the records and coverage of a task, and the identities of its connections before and after.

    ``deadline`` (seconds) applies to each shard. ``meter`` counts the calls.
    """
    if task.error is not None:
        yield _failed_coverage(spec.name, ROOT, task.error)
        return
    yield from task.identities
    catalog: Catalog | None = None
    try:
        for shard in task.shards:
            try:
                if catalog is None:
                    catalog = open_catalog(spec, meter, processes=task.tasks)
                    yield read_identity(catalog, deadline)
            except Exception as error:  # noqa: BLE001 - as for a shard
                yield from (
                    _failed_coverage(spec.name, namespace, as_federator_error(spec.name, error))
                    for namespace in shard.namespaces
                )
                continue
            hangs = yield from read_shard(catalog, shard, deadline)
            if hangs:
                # The old connection still waits for a response, which must not be taken for one to the next shard.
                catalog = None
                meter.record_call(spec.name, "read", deadline, {str(DeadlineExceeded.code): 1})
        if catalog is not None:
            yield read_identity(catalog, deadline)
    finally:
        if catalog is not None:
            # An error while closing does not affect what was read.
            with suppress(Exception):
                catalog.close()


def read_shard(catalog: Catalog, shard: Shard | NamedTables, deadline: float) -> Generator[Item, None, bool]:
    """Yield one shard's items. If the shard fails, its namespaces without coverage get a failed one.

    Return whether the catalog is still busy with the shard.
    """
    covered: set[object] = set()
    try:
        for item in iterate_with_deadline(lambda: _read_items(catalog, shard), deadline):
            if isinstance(item, Coverage):
                covered.add(item.namespace)
            yield item
    except Exception as error:  # noqa: BLE001 - any failure of a shard becomes failed coverage
        for namespace in shard.namespaces:
            if namespace not in covered:
                yield _failed_coverage(catalog.source, namespace, as_federator_error(catalog.source, error))
        return isinstance(error, DeadlineExceeded)
    return False


def _read_items(catalog: Catalog, shard: Shard | NamedTables) -> Iterator[Record | Coverage]:
    if isinstance(shard, NamedTables):
        return _read_named_tables(catalog, shard)
    return catalog.read_shard(shard)


def _read_named_tables(catalog: Catalog, named: NamedTables) -> Iterator[Record | Coverage]:
    """Yield the tables, then carried coverage with their number.

    An expected table that the catalog does not describe is gone if a listing of names omits it, too. The whole namespace is read
    instead if such a table is an origin, because only its complete listing counts as a miss, or if the table is still listed.
    """
    try:
        tables = catalog.describe_tables(named.namespace, named.names)
        missing = named.expected - {table.path[-1] for table in tables}
        reads_whole = bool(missing) and not missing.isdisjoint({*named.origins, *catalog.list_tables(named.namespace)})
    except CatalogError:
        # A crawl of the namespace says which table is the reason, and reads the others.
        reads_whole = True
    if reads_whole:
        for shard in catalog.plan_shards_for([named.namespace]):
            yield from catalog.read_shard(shard)
        return
    yield from tables
    digest = fold_digest(table.digest for table in tables)
    yield Coverage(catalog.source, named.namespace, READ_BY_NAME, READ_BY_NAME, len(tables), digest)


def read_identity(catalog: Catalog, deadline: float, namespaces: Collection[Path] | None = ()) -> IdentityReading:
    """Read the catalog's identity on a connection, in at most ``deadline`` seconds. A failure is part of the result."""
    try:
        (identity,) = iterate_with_deadline(lambda: iter([catalog.identity(namespaces)]), deadline)
    except Exception as error:  # noqa: BLE001 - as for a shard
        return IdentityReading(error=str(as_federator_error(catalog.source, error)))
    return IdentityReading(identity)


def _failed_coverage(source: str, namespace: tuple[str, ...], error: FederatorError) -> Coverage:
    code = error.code if isinstance(error, CatalogError) else Internal.code
    evidence = failed_evidence(code, str(error))
    return Coverage(source, namespace, presence=evidence, detail=evidence)
