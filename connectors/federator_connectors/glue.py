"""AWS Glue Data Catalog: impl ``glue``.

Paths are ``(account, database, table)`` for the root catalog, for which ``(database, table)`` is accepted as well, and
``(catalog, ..., database, table)`` for the catalogs inside it, to any depth. Names are lower case: Glue folds those of databases
and tables, and its reference (GetCatalog) wants those of catalogs so; an older catalog in mixed case is found in any case.

Where the Lance Glue spec is silent, or the service differs:

- The root's children are the account's own catalog, named by its number, and its child catalogs. A service without GetCatalogs
  (an older API-compatible metastore) has the root catalog only, named by ``catalog_id`` or by STS.
- CreateNamespace of one level makes a catalog, of more levels a database; Glue cannot create a catalog inside a catalog. A name
  that a database of the root has already is refused, since ``(database, table)`` would then mean the catalog.
- DropNamespace, and OVERWRITE, which begins with it: Glue drops a database with all its tables, also those that its listing left out.
  So the listing must be empty twice in a row, and the request must confirm it with
  ``context={"header.x-federator-confirm": "cascades"}``; with ``glue.drop_cascades = "confirmed"`` no request has to. CASCADE is
  unsupported.
- Denied access is code 16, as the spec has it; the code 15 does not occur.
- Listings leave out what Lake Formation hides (``listing_filtered``).
- Reads are retried in botocore's adaptive mode, writes are sent once whatever the machine's AWS settings say; ``limit.*`` counts
  retries too.
- Glue has no call to rename a table: RenameTable is unsupported.

``GlueNamespace`` is the class for ``lance_namespace.connect("federator_connectors.glue.GlueNamespace", {...})``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, NameRules
from federator.connector.lazy import lazy_namespace
from federator_connectors._glue.settings import GlueSettings

if TYPE_CHECKING:
    from federator_connectors._glue.catalog import GlueCatalog

# Glue names no limit to the nesting of catalogs; a CatalogId, which holds the names above, has at most 255 characters.
_DEEPEST = 32


class GlueConnector(Connector[GlueSettings]):
    """The adapter of AWS Glue."""

    impl = "glue"
    extra = "glue"
    settings_type = GlueSettings
    capabilities = Capabilities(
        min_depth=1,
        max_depth=_DEEPEST,
        levels=("catalog", "database"),
        nested="catalog",
        # The service's "single-line string", less the slash, which would be another level in ARNs and in default locations.
        # CreateCatalog takes fewer: at most 64 characters without dots or backslashes, which Glue itself refuses.
        names=NameRules(
            pattern=r"[\t\x20-\x2e\x30-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+", max_length=255, folds_case=True
        ),
        creates_namespaces_at=frozenset(range(1, _DEEPEST + 1)),
        alters_namespaces_at=frozenset(range(1, _DEEPEST + 1)),
        conditional_write=True,
        listing_filtered=True,
        cascade=False,
        drop_cascades=True,
        property_key_length=255,
        property_value_length=512_000,
    )

    def preload(self) -> None:
        import federator_connectors._glue.catalog  # noqa: F401

    def open(self, source: str, settings: GlueSettings) -> GlueCatalog:
        """Connects with the first call."""
        # boto3 costs a third of a second to import, which listing the connectors should not.
        from federator_connectors._glue.catalog import GlueCatalog

        return GlueCatalog(source, settings)

    def configure(self, properties: Mapping[str, str], *, where: str = "") -> GlueSettings:
        settings = super().configure(properties, where=where)
        settings.check(f"{where}{self.impl}.")
        return settings


CONNECTOR = GlueConnector()

__getattr__ = lazy_namespace(__name__, CONNECTOR, "GlueNamespace")
