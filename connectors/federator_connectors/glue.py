"""AWS Glue Data Catalog: impl ``glue``.

Paths are ``(account, database, table)`` for the root catalog, which also accepts ``(database, table)``. Catalogs inside the root
catalog have ``(catalog, ..., database, table)``, to any depth. Names are in lower case: Glue folds the names of databases and tables,
and its reference (GetCatalog) requires lower case for catalogs. An older catalog in mixed case is found in any case.

Where the Lance Glue spec is silent, or the service differs:

- The children of the root namespace are the account's own catalog, named by the account number, and its child catalogs. A service
  without GetCatalogs (an older API-compatible metastore) has only the root catalog, named by ``catalog_id`` or by STS.
- ``IncludeRoot`` is sent to GetCatalogs only without ``ParentCatalogId``, because the service refuses both together; the spec has both.
- CreateNamespace creates a catalog for a path of one level, and a database for more levels. Glue cannot create a catalog inside a
  catalog. The name of an existing database of the root catalog is refused, because ``(database, table)`` would then mean the catalog.
- DropNamespace, and OVERWRITE, which starts with it: Glue drops a database with all its tables, also those that its listing omitted.
  The listing must therefore be empty twice in a row, and the request must confirm the drop with
  ``context={"header.x-federator-confirm": "cascades"}``. With ``glue.drop_cascades = "confirmed"`` no confirmation is needed. CASCADE
  is unsupported.
- The Java client of ``lance-namespace-impls``, which lance-spark uses, declares tables without ``TableType``, with
  ``managed_by=storage``. They are tables like others: Glue deletes no table's data. Without both, a table is not listed.
- The owner of a namespace is the parameter ``database.owner``: Glue has no field for it.
- Denied access has code 16, as in the spec; code 15 does not occur. DescribeTable also returns the properties, with ``table_type``.
- Listings omit objects that Lake Formation hides (``listing_filtered``).
- Reads are retried in botocore's adaptive mode. Writes are sent once, whatever the machine's AWS settings are. ``limit.*`` counts
  retries, too. ``client.pool-size`` limits the concurrent requests to Glue of one namespace, however many callers it has; reads and
  writes have connections of their own, because their timeouts differ.
- With ``vend = "catalog"``, credentials for a table's files come from Lake Formation: ``GetTemporaryGlueTableCredentials`` with the
  table's ARN, ``SELECT`` for readers, and also ``INSERT`` and ``DELETE`` for writers. The source's role needs these permissions on the
  whole table and ``lakeformation:GetDataAccess``, the location must be registered, and the account must allow external engines full
  table access. No permission types are sent as supported: Lance cannot filter columns or cells. It was not run on AWS.
- Glue has no call to rename a table: RenameTable is unsupported.

``GlueNamespace`` is the class for ``lance_namespace.connect("federator_connectors.glue.GlueNamespace", {...})``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, NameRules
from federator.lance.lazy_facade import lazy_facade_class
from federator_connectors._glue.settings import GlueSettings

if TYPE_CHECKING:
    from federator_connectors._glue.catalog import GlueCatalog

# Glue documents no limit for the nesting of catalogs. A CatalogId, which contains the names of the parents, has at most 255
# characters.
_MAX_DEPTH = 32


class GlueConnector(Connector[GlueSettings]):
    """The connector of AWS Glue."""

    impl = "glue"
    extra = "glue"
    settings_type = GlueSettings
    capabilities = Capabilities(
        min_depth=1,
        max_depth=_MAX_DEPTH,
        levels=("catalog", "database"),
        nested="catalog",
        # The service's "single-line string" without the slash, which would add a level in ARNs and in default locations.
        # CreateCatalog accepts less, at most 64 characters without dots or backslashes; Glue itself refuses other names.
        names=NameRules(
            pattern=r"[\t\x20-\x2e\x30-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+", max_length=255, folds_case=True
        ),
        creates_namespaces_at=frozenset(range(1, _MAX_DEPTH + 1)),
        alters_namespaces_at=frozenset(range(1, _MAX_DEPTH + 1)),
        listing_filtered=True,
        cascade=False,
        drop_cascades=True,
        vends_credentials=True,
        property_key_length=255,
        property_value_length=512_000,
    )

    def preload_imports(self) -> None:
        import federator_connectors._glue.catalog  # noqa: F401

    def open(self, source: str, settings: GlueSettings) -> GlueCatalog:
        """Open the catalog. It connects at the first call."""
        # Imported only here: boto3 takes a third of a second to import, and listing the connectors must be fast.
        from federator_connectors._glue.catalog import GlueCatalog

        return GlueCatalog(source, settings)


CONNECTOR = GlueConnector()
# The class GlueNamespace of this module, made at its first use.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "GlueNamespace")
