"""Hive Metastore 3 and 4, with catalogs: paths are (catalog, database, table)."""

from __future__ import annotations

from collections.abc import Mapping

from federator.connector import Capabilities, Catalog, Connector, NameRules
from federator.connector.lazy import lazy_namespace
from federator_connectors._hive.settings import HiveSettings, pool_size


class Hive3Connector(Connector[HiveSettings]):
    """Impl ``hive3``."""

    impl = "hive3"
    settings_type = HiveSettings
    extra = "hive"
    capabilities = Capabilities(
        min_depth=2,
        max_depth=2,
        levels=("catalog", "database"),
        # Table names may have 256 characters, but one rule holds for all levels, and databases have 128.
        names=NameRules(pattern="[A-Za-z0-9_]+", max_length=128, folds_case=True),
        creates_namespaces_at=frozenset({1, 2}),
        # 3.1.3 takes expected parameters and ignores them, and no answer tells a server that compares from one that does not.
        conditional_write=False,
        makes_location=True,
    )

    def open(self, source: str, settings: HiveSettings) -> Catalog:
        from federator_connectors._hive.catalog import HiveCatalog

        return HiveCatalog(source, settings, levels=2)

    def concurrency(self, properties: Mapping[str, str]) -> int:
        return pool_size(properties)


CONNECTOR = Hive3Connector()

__getattr__ = lazy_namespace(__name__, CONNECTOR, "Hive3Namespace")
