"""Hive Metastore 2, and the default catalog of later versions: impls ``hive2`` and ``hive``.

Paths are ``(database, table)``.

Where the Lance Hive spec is silent, or a real metastore differs:

- A declared table has ``EXTERNAL=TRUE``, which is read back: without it a metastore makes a managed table, whose data it may delete.
- ``lance-namespace-impls`` declares tables without it, with ``managed_by=storage``; until 0.2.0, its Java client set only an input
  format of Lance. They are listed and described, read-only, with this reason. With ``storage_managed = "origins"`` mirrors copy
  them, too. Nothing here changes or deregisters them, and CASCADE refuses their database. Other managed tables are not
  listed, and describing them is InvalidInput (13).
- A table is declared in two calls, so that the metastore creates no directory. CASCADE deregisters one table after the other.
- A database without a location gets one below ``root``; without ``root`` the metastore chooses one in its warehouse, as a working
  directory of this process would be of no use to it. A table is declared at its database's location, because other engines look
  for it there. ``default_location = "root"`` is the layout of the newer text for both; then ``root`` is the working directory by
  default, as in the texts.
- A filter hook (``metastore.filter.hook``) works on the server only in Hive 4, if ``metastore.server.filter.enabled`` is true, and
  only on listings: a mirror reads a hidden table by its name, and its copy stays (``still_there``). In Hive 2 and 3, the hook
  belongs to Java's client, so this source sees all tables. Set ``listing_filtered = true`` for a metastore of another vendor that
  also hides tables from reads: the guard ``emptied_namespace`` then holds a plan if all tables of a namespace become absent at once.
  If it hides single tables, their copies are deregistered within the limits of the other guards.
- ``client.pool-size`` limits all connections of one namespace, not those of each concurrent call. A write is never repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

from federator.lance.lazy_facade import lazy_facade_class
from federator_connectors._hive.base_connector import HiveConnector, build_capabilities
from federator_connectors._hive.settings import HiveSettings


class Hive2Connector(HiveConnector):
    """Paths have two levels. Configuration keys may also have the prefix ``hive.``, the other name of the impl."""

    impl = "hive2"
    capabilities = build_capabilities("database")

    def parse_settings(self, properties: Mapping[str, str], *, where: str = "") -> HiveSettings:
        prefix = "hive" if any(key.startswith("hive.") for key in properties) else self.impl
        return self.settings_type.from_properties(prefix, properties, where=where)


CONNECTOR = Hive2Connector()
# The class Hive2Namespace of this module, made at its first use.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "Hive2Namespace")
