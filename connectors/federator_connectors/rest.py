"""A Lance REST namespace: impl ``rest``, with one of two protocols.

``rest.protocol = "lance"`` is the official Lance REST namespace protocol (``/v1/namespace/{id}/...``). ``"general"`` uses the routes
``POST /<operationId>`` of the general Lance namespace spec. All listed tables are Lance tables; namespaces nest to any depth.

Where the specs are silent, or a server differs:

- An empty listing is valid only if the namespace exists after it: pylance's reference server lists a missing namespace as empty.
- A repeated page token is an error, not an endless listing. A 404 without the protocol's error body means that the route does not
  exist; it never proves that an object is absent.
- A table is declared at a given location with RegisterTable, which does not touch storage. If the server only accepts locations
  relative to its root, the path below ``rest.root`` is sent; the last attempt is DeclareTable. A name that exists is refused first (5),
  because some servers answer a second declaration like the first one. The table is then read back: if the server chose another
  location and said so in its response, the declaration is removed and the operation fails (0). A declaration that the response does
  not describe may be another client's: it stays (14). Without a location and without ``rest.root`` the
  server chooses; the routes of ``general`` then need a location.
- ``client.pool-size`` limits all connections of one namespace, as in the Hive spec. A crawl reads two shards at once, with a pool each.
- ``lance``: nothing can be altered. ``general``: properties can be altered, locations cannot. DropTable is sent only with
  ``rest.drop_keeps_data = true``, because the spec does not say that the data stays.
- Credentials that a server returns with a table are not used: tables are opened with ``rest.storage.*``. They are not vended either
  (``vend = "catalog"``), because they allow what the source's principal may do, and not what the role of the federator's does.
- Gravitino's and LanceDB's servers were **not run**, because no package registry has them. In November 2026 Maven Central had
  ``gravitino-api`` 1.1.0, but neither ``gravitino-server`` nor ``lance-rest-server``; LanceDB's is a hosted service. A stub of
  Gravitino's, written after its sources of August 2026 (``tests/stubs/gravitino.py`` names file and lines of each fact), passes the
  contract suite but for two checks: it cannot describe its root, and dropping a namespace that is not empty is code 13. It lists
  the tables of schemas only, so it needs ``rest.depth = 2``; without that, the listings of the root
  and of each catalog count as failed. Its URL ends in ``/lance``. It cannot rename. Its first version, 1.1, listed whole ids
  (``catalog$schema$table``), which are accepted, and sent HTTP statuses as codes, which prove no absence. LanceDB needs
  ``rest.api_key`` and ``rest.header.x-lancedb-database``; a table that it describes without a location is undescribed.

``RestNamespace`` is the class for ``lance_namespace.connect("federator_connectors.rest.RestNamespace", {...})``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, NameRules, read_count
from federator.lance.lazy_facade import lazy_facade_class
from federator_connectors._rest.settings import GENERAL, RestSettings

if TYPE_CHECKING:
    from federator_connectors._rest.catalog import RestCatalog

#: the protocols have no limit for nesting; object ids need one
_MAX_DEPTH = 64


class RestConnector(Connector[RestSettings]):
    """The connector of Lance REST servers."""

    impl = "rest"
    extra = "rest"
    settings_type = RestSettings
    reads_deployments = True
    capabilities = Capabilities(
        min_depth=0,
        max_depth=_MAX_DEPTH,
        levels=("namespace",),
        creates_namespaces_at=frozenset(range(1, _MAX_DEPTH + 1)),
        can_alter=False,
        keeps_properties=False,
        keeps_comment=False,
        listing_filtered=True,
    )

    def capabilities_for(self, settings: RestSettings) -> Capabilities:
        general = settings.protocol == GENERAL
        capabilities = self.capabilities if settings.depth is None else _with_depth(self.capabilities, settings.depth)
        return replace(
            capabilities,
            names=_name_rules("" if general else settings.delimiter),
            namespace_names=_namespace_name_rules("" if general else settings.delimiter),
            writes_tables=settings.drop_keeps_data if general else True,
            can_alter=general,
            alters_namespaces_at=capabilities.creates_namespaces_at if general else frozenset(),
            keeps_properties=settings.returns_properties,
        )

    def min_depth(self, properties: Mapping[str, str]) -> int:
        return read_count(properties, "depth", self.capabilities.min_depth)

    def open(self, source: str, settings: RestSettings) -> RestCatalog:
        """Open the catalog. It connects at the first call."""
        # Imported only here: requests takes a tenth of a second to import, and listing the connectors must be fast.
        from federator_connectors._rest.catalog import RestCatalog

        return RestCatalog(source, settings)


def _with_depth(capabilities: Capabilities, depth: int) -> Capabilities:
    return replace(
        capabilities,
        levels=("namespace",) * depth,
        min_depth=depth,
        max_depth=depth,
        creates_namespaces_at=frozenset(range(1, depth + 1)),
    )


def _name_rules(delimiter: str) -> NameRules:
    # In a URL, a name of one or two dots would be a relative path, and a name with the delimiter would be two names.
    without = f"(?!.*{re.escape(delimiter)})" if delimiter else ""
    return NameRules(pattern=rf"(?s:(?!\.{{1,2}}\Z){without}[^/\x00]+)")


def _namespace_name_rules(delimiter: str) -> NameRules:
    # With the delimiter $$, the namespace a$ and its table b would be a$$$b, which is read as a and $b.
    beginnings = [delimiter[:length] for length in range(1, len(delimiter))]
    misread = [re.escape(text) for text in beginnings if (text + delimiter).startswith(delimiter)]
    rules = _name_rules(delimiter)
    return replace(rules, pattern=rf"{rules.pattern}(?<!{')(?<!'.join(misread)})") if misread else rules


CONNECTOR = RestConnector()
# The class RestNamespace of this module, made at its first use.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "RestNamespace")
