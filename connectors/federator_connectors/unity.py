"""Unity Catalog: impl ``unity``.

Paths are ``(catalog, schema, table)``, three levels always; the catalog is the configured one, and the root's only child.

Where the Lance Unity spec is silent, or a server differs:

- DropNamespace with CASCADE deregisters the Lance tables one by one and drops the empty schema. The spec's ``force=true`` is never
  sent: it would take managed tables, volumes and models with it, data included, also such as were made after the last look.
- A table's ownership mark lives in its properties; in its comment where the server refuses such properties, as Databricks does.
  Without the property ``table_type`` a table would not be known as Lance: such a server is refused by DeclareTable, with code 0.
- Tables cannot be altered (the API has no such call), and a namespace of the root cannot be created or dropped.
- A table without a location goes below ``root``; the storage root of a schema is for the tables that the server manages.
- New names follow the open-source server: letters, digits, ``_``, ``@`` and ``-``.
- Listings leave out what the principal may not see (``listing_filtered``).

``UnityNamespace`` is the class for ``lance_namespace.connect("federator_connectors.unity.UnityNamespace", {...})``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, NameRules
from federator.connector.lazy import lazy_namespace
from federator_connectors._unity.settings import UnitySettings

if TYPE_CHECKING:
    from federator_connectors._unity.catalog import UnityCatalog

_READERS = 4


class UnityConnector(Connector[UnitySettings]):
    """The adapter of Unity Catalog."""

    impl = "unity"
    extra = "unity"
    settings_type = UnitySettings
    capabilities = Capabilities(
        min_depth=2,
        max_depth=2,
        levels=("catalog", "schema"),
        names=NameRules(pattern=r"[A-Za-z0-9_@-]+", max_length=255),
        creates_namespaces_at=frozenset({2}),
        alters_namespaces_at=frozenset({2}),
        can_alter=False,
        listing_filtered=True,
    )

    def open(self, source: str, settings: UnitySettings) -> UnityCatalog:
        """Connects with the first call."""
        # requests costs 60 ms to import, which listing the connectors should not.
        from federator_connectors._unity.catalog import UnityCatalog

        return UnityCatalog(source, settings)

    def configure(self, properties: Mapping[str, str], *, where: str = "") -> UnitySettings:
        settings = super().configure(properties, where=where)
        settings.check_tls(f"{where}{self.impl}.")
        return settings

    def preload(self) -> None:
        import stamina  # noqa: F401

        import federator_connectors._unity.catalog  # noqa: F401

    def concurrency(self, properties: Mapping[str, str]) -> int:  # noqa: ARG002
        return _READERS


CONNECTOR = UnityConnector()

__getattr__ = lazy_namespace(__name__, CONNECTOR, "UnityNamespace")
