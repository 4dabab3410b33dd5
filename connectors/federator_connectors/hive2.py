"""Hive Metastore 2, or the default catalog of a later one: paths are (database, table). Impl ``hive2``, and ``hive``."""

from __future__ import annotations

from collections.abc import Mapping

from federator.connector.lazy import lazy_namespace
from federator_connectors._hive.connector import HiveConnector, hive_capabilities
from federator_connectors._hive.settings import HiveSettings


class Hive2Connector(HiveConnector):
    """Two levels. Its keys may also have the prefix ``hive.``, the impl's other name."""

    impl = "hive2"
    capabilities = hive_capabilities("database")

    def configure(self, properties: Mapping[str, str], *, where: str = "") -> HiveSettings:
        prefix = "hive" if any(key.startswith("hive.") for key in properties) else self.impl
        return self.settings_type.from_properties(prefix, properties, where=where)


CONNECTOR = Hive2Connector()

__getattr__ = lazy_namespace(__name__, CONNECTOR, "Hive2Namespace")
