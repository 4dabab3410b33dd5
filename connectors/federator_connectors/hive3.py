"""Hive Metastore 3 and 4, with catalogs: paths are (catalog, database, table). Impl ``hive3``."""

from __future__ import annotations

from federator.connector.lazy import lazy_namespace
from federator_connectors._hive.connector import HiveConnector, hive_capabilities


class Hive3Connector(HiveConnector):
    """Three levels."""

    impl = "hive3"
    capabilities = hive_capabilities("catalog", "database")


CONNECTOR = Hive3Connector()

__getattr__ = lazy_namespace(__name__, CONNECTOR, "Hive3Namespace")
