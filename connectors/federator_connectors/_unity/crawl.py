"""The crawl of a Unity catalog.

Planning lists the catalog and its schemas. The shards list the tables of the schemas. Each page of a table listing also proves that
the schema exists, because the server returns SCHEMA_NOT_FOUND if it does not. The first page proves it before the listing and the
last page after it, so no further call is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from federator.connector import CatalogError, Shard
from federator.connector.crawl import CoverageBuilder, consecutive_shards
from federator.model import ROOT, Coverage, Path, Record
from federator_connectors._unity import records
from federator_connectors._unity.client import Native, UnityClient
from federator_connectors._unity.errors import CatalogNotFound

_SCHEMAS_PER_SHARD = 10
# Evidence of a response without a list: Databricks omits an empty list, but a truncated response has no list either
_UNPROVEN_EMPTY = "unproven empty: a response without a list proves neither presence nor absence"


@dataclass(frozen=True)
class NamespaceRows:
    """The payload of the first shard: the catalogs, their schemas, and the coverage of their parents."""

    rows: tuple[Record | Coverage, ...]


class _UnityCoverage(CoverageBuilder):
    def __init__(self, source: str, namespace: Path, *, configured: bool) -> None:
        super().__init__(source, namespace)
        self._configured = configured

    def fail(self, error: CatalogError) -> None:
        super().fail(error)
        # If the configured catalog itself is missing, no schema is proven absent: the server may be another one, or its database
        # empty.
        self.found = self.found or (self._configured and isinstance(error, CatalogNotFound))

    def skip_listing(self) -> None:
        self.skip(_UNPROVEN_EMPTY)


def plan_shards(source: str, catalogs: Sequence[Native], api: UnityClient, *, configured: bool) -> list[Shard]:
    """Return one shard with the catalogs and their schemas, then shards with the schemas.

    A failed listing of a catalog's schemas becomes a failed Coverage. ``configured``: the configuration names the only catalog.
    """
    catalog_records = [records.catalog_record(source, native) for native in catalogs]
    rows: list[Record | Coverage] = list(CoverageBuilder(source, ROOT).read(catalog_records))
    schemas: list[Path] = []
    for path in (record.path for record in catalog_records):
        coverage = _UnityCoverage(source, path, configured=configured)
        natives = api.iter_schemas(path[0], omitted=coverage.skip_listing)
        children = list(coverage.collect(records.schema_record(source, path[0], native) for native in natives))
        rows += [*children, coverage.build()]
        schemas += [child.path for child in children]
    shards = consecutive_shards(schemas, _SCHEMAS_PER_SHARD)
    return [Shard((ROOT, *(record.path for record in catalog_records)), NamespaceRows(tuple(rows))), *shards]


def read_shard(source: str, shard: Shard, api: UnityClient, *, configured: bool) -> Iterator[Record | Coverage]:
    """Read one shard, see ``Catalog.read_shard``."""
    if isinstance(shard.payload, NamespaceRows):
        yield from shard.payload.rows
        return
    for schema in shard.namespaces:
        coverage = _UnityCoverage(source, schema, configured=configured)
        natives = api.iter_tables(schema, omitted=coverage.skip_listing)
        kinds = ((native, records.table_kind(native)) for native in natives)
        yield from coverage.read(records.table_record(source, schema, native, kind) for native, kind in kinds if kind)
