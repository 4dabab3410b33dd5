"""A Lance REST namespace: impl ``rest``, over one of two protocols.

``rest.protocol = "lance"`` is the official Lance REST namespace protocol (``/v1/namespace/{id}/...``), ``"general"`` the routes
``POST /<operationId>`` of the general Lance namespace spec. What a server lists are Lance tables; namespaces nest to any depth.

Where the texts are silent, or a server differs:

- An empty listing counts only if the namespace is seen to exist after it: pylance's reference server lists a missing namespace as
  empty.
- A page token that repeats is an error, not an endless listing. A 404 without the protocol's error body says that the route is
  not there, never that the object is gone.
- A table is declared at a given location by RegisterTable, which touches no storage; where the server takes only locations
  relative to its root, by one below ``rest.root``; else by DeclareTable. It is read back: a server that chose another place is
  refused, and its declaration taken back. Without a location and without ``rest.root`` the server chooses.
- ``lance``: nothing can be altered. ``general``: properties can, locations cannot; DropTable is sent only with
  ``rest.drop_keeps_data = true``, since the text does not say that the data stays.
- Credentials that a server hands out with a table are not kept: ``rest.storage.*`` opens the tables.

``RestNamespace`` is the class for ``lance_namespace.connect("federator_connectors.rest.RestNamespace", {...})``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from federator.connector import Capabilities, Connector, NameRules
from federator.connector.lazy import lazy_namespace
from federator_connectors._rest.settings import GENERAL, RestSettings

if TYPE_CHECKING:
    from federator_connectors._rest.catalog import RestCatalog

#: the protocols know no limit to nesting; identifiers of callers need one
_DEEPEST = 64


class RestConnector(Connector[RestSettings]):
    """The adapter of Lance REST servers."""

    impl = "rest"
    extra = "rest"
    settings_type = RestSettings
    capabilities = Capabilities(
        min_depth=0,
        max_depth=_DEEPEST,
        levels=("namespace",),
        creates_namespaces_at=frozenset(range(1, _DEEPEST + 1)),
        can_alter=False,
        keeps_properties=False,
        keeps_comment=False,
        listing_filtered=True,
    )

    def capabilities_of(self, settings: RestSettings) -> Capabilities:
        general = settings.protocol == GENERAL
        return replace(
            self.capabilities,
            names=_names("" if general else settings.delimiter),
            writes_tables=settings.drop_keeps_data if general else True,
            can_alter=general,
            alters_namespaces_at=self.capabilities.creates_namespaces_at if general else frozenset(),
            keeps_properties=settings.returns_properties,
        )

    def open(self, source: str, settings: RestSettings) -> RestCatalog:
        """Connects with the first call."""
        # requests costs a tenth of a second to import, which listing the connectors should not.
        from federator_connectors._rest.catalog import RestCatalog

        return RestCatalog(source, settings)

    def configure(self, properties: Any, *, where: str = "") -> RestSettings:
        settings = super().configure(properties, where=where)
        settings.check(f"{where}{self.impl}.")
        return settings


def _names(delimiter: str) -> NameRules:
    # A name that is only dots would be a step in the URL's path; one with the delimiter would be two.
    without = f"(?!.*{re.escape(delimiter)})" if delimiter else ""
    return NameRules(pattern=rf"(?s)(?!\.{{1,2}}\Z){without}[^/\x00]+")


CONNECTOR = RestConnector()
__getattr__ = lazy_namespace(__name__, CONNECTOR, "RestNamespace")
