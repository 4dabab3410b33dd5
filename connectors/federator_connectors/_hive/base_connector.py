"""Base class of the Hive connectors ``hive2`` and ``hive3``.

This module imports neither thrift nor hmsclient, so that listing the connectors is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from federator.connector import Capabilities, Catalog, Connector, NameRules, read_count
from federator_connectors._hive.settings import DEFAULT_POOL, HiveSettings


def build_capabilities(*levels: str) -> Capabilities:
    """Return the capabilities of a metastore. ``levels`` are the names of the levels above its tables, the database last."""
    depth = len(levels)
    return Capabilities(
        min_depth=depth,
        max_depth=depth,
        levels=levels,
        names=NameRules(pattern="[A-Za-z0-9_]+", max_length=256, folds_case=True),
        namespace_names=NameRules(pattern="[A-Za-z0-9_]+", max_length=128, folds_case=True),
        creates_namespaces_at=frozenset(range(1, depth + 1)),
        # Only databases have properties; the levels above them are catalogs.
        alters_namespaces_at=frozenset({depth}),
        plain_namespaces_at=frozenset(range(1, depth)),
        # Only metastores with DbNotificationListener have a change feed; on the others the feed calls raise Unsupported.
        change_feed=True,
    )


class HiveConnector(Connector[HiveSettings]):
    """A connector to a Hive metastore. Subclasses set ``impl`` and ``capabilities`` (``build_capabilities``)."""

    settings_type = HiveSettings
    extra: ClassVar[str | None] = "hive"

    def preload_imports(self) -> None:
        import federator_connectors._hive.catalog  # noqa: F401

    def capabilities_for(self, settings: HiveSettings) -> Capabilities:
        return replace(self.capabilities, listing_filtered=settings.listing_filtered)

    def open(self, source: str, settings: HiveSettings) -> Catalog:
        """Open the catalog. It connects at the first call."""
        from federator_connectors._hive.catalog import HiveCatalog

        return HiveCatalog(source, settings, levels=self.capabilities.max_depth)

    def crawl_concurrency(self, properties: Mapping[str, str]) -> int:
        """Return the size of the connection pool: each shard uses one connection."""
        return read_count(properties, "client.pool-size", DEFAULT_POOL)
