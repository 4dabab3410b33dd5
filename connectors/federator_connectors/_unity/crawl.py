"""The crawl: the catalog and its schemas are listed while the shards are cut, tables by whole pages inside the shards.

A listing of tables names its schema, and the server answers SCHEMA_NOT_FOUND where that is gone: so each page is itself a look at
the schema, the first one before the listing and the last one after it, and no call beyond the pages is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from federator.connector import CatalogError, NamespaceNotFound, Shard
from federator.model import COMPLETE, ROOT, Coverage, NamespaceRecord, Path, Record, failed, fold_digest, skipped
from federator_connectors._unity import records
from federator_connectors._unity.api import UnityApi
from federator_connectors._unity.errors import CatalogNotFound

_SCHEMAS_PER_SHARD = 10
#: Databricks leaves out the list where nothing is to list; so does a response that lost it
UNPROVEN_EMPTY = "unproven empty: a response without a list proves neither that something is there nor that nothing is"


@dataclass(frozen=True)
class Survey:
    """The payload of the first shard: the catalog, its schemas, and the coverage of what holds them."""

    rows: tuple[Record | Coverage, ...]


def shards(source: str, catalog: str, api: UnityApi) -> list[Shard]:
    """One shard with the namespaces, then the schemas in shards.

    Raises CatalogError where the catalog itself cannot be read; a failed listing of its schemas is a failed Coverage.
    """
    top = records.catalog_record(source, api.catalog(catalog))
    schemas: list[NamespaceRecord] = []
    error: CatalogError | None = None
    omitted: list[str] = []
    try:
        for schema in api.schemas(catalog, omitted=lambda: omitted.append(catalog)):
            schemas.append(records.schema_record(source, catalog, schema))  # noqa: PERF401 - what came before a failure is kept
    except CatalogError as failure:
        error = failure
    rows: list[Record | Coverage] = [top, _coverage(source, ROOT, [top.digest]), *schemas]
    rows.append(_coverage(source, (catalog,), [schema.digest for schema in schemas], error, unproven=bool(omitted)))
    paths = [schema.path for schema in schemas]
    parts = (tuple(paths[start : start + _SCHEMAS_PER_SHARD]) for start in range(0, len(paths), _SCHEMAS_PER_SHARD))
    return [Shard((ROOT, (catalog,)), Survey(tuple(rows))), *(Shard(part) for part in parts)]


def read(source: str, shard: Shard, api: UnityApi) -> Iterator[Record | Coverage]:
    """See ``Catalog.read``."""
    if isinstance(shard.payload, Survey):
        yield from shard.payload.rows
        return
    for schema in shard.namespaces:
        yield from _tables(source, schema, api)


def _tables(source: str, schema: Path, api: UnityApi) -> Iterator[Record | Coverage]:
    digests: list[str] = []
    error: CatalogError | None = None
    omitted: list[Path] = []
    try:
        for table in api.tables(schema, omitted=lambda: omitted.append(schema)):
            kind = records.kind_of(table)
            if kind is not None:
                record = records.table_record(source, schema, table, kind)
                digests.append(record.digest)
                yield record
    except CatalogError as failure:
        error = failure
    yield _coverage(source, schema, digests, error, unproven=bool(omitted))


def _coverage(
    source: str, namespace: Path, digests: Sequence[str], error: CatalogError | None = None, *, unproven: bool = False
) -> Coverage:
    evidence = failed(error.code, error.message) if error else skipped(UNPROVEN_EMPTY) if unproven else COMPLETE
    # A server that lost the configured catalog itself proves nothing gone: it may be another server, or an empty database.
    found = not isinstance(error, NamespaceNotFound) or isinstance(error, CatalogNotFound)
    return Coverage(source, namespace, evidence, evidence, len(digests), fold_digest(digests), found)
