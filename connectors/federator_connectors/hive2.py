"""Hive Metastore 2, or the default catalog of a later one: paths are (database, table). Impl ``hive2``, and ``hive``."""

from __future__ import annotations

from collections.abc import Mapping

from federator.connector import Capabilities, Catalog, Connector, NameRules
from federator.connector.lazy import lazy_namespace
from federator_connectors._hive.settings import HiveSettings, pool_size


class Hive2Connector(Connector[HiveSettings]):
    """Impl ``hive2``; its keys may also have the prefix ``hive.``, as its spec writes them."""

    impl = "hive2"
    settings_type = HiveSettings
    extra = "hive"
    capabilities = Capabilities(
        min_depth=1,
        max_depth=1,
        levels=("database",),
        # Table names may have 256 characters, but one rule holds for all levels, and databases have 128.
        names=NameRules(pattern="[A-Za-z0-9_]+", max_length=128, folds_case=True),
        creates_namespaces_at=frozenset({1}),
        # 2.3.10 compares expected parameters, earlier releases ignore them, and no answer tells which one this is.
        conditional_write=False,
        makes_location=True,
    )

    def open(self, source: str, settings: HiveSettings) -> Catalog:
        from federator_connectors._hive.catalog import HiveCatalog

        return HiveCatalog(source, settings, levels=1)

    def configure(self, properties: Mapping[str, str], *, where: str = "") -> HiveSettings:
        prefix = "hive" if any(key.startswith("hive.") for key in properties) else self.impl
        return self.settings_type.from_properties(prefix, properties, where=where)

    def concurrency(self, properties: Mapping[str, str]) -> int:
        return pool_size(properties)


CONNECTOR = Hive2Connector()

__getattr__ = lazy_namespace(__name__, CONNECTOR, "Hive2Namespace")
