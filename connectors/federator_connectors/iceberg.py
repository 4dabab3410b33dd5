"""Iceberg REST catalogs: impl ``iceberg``.

Paths are ``(warehouse, namespace, ..., table)``, with namespaces nested to any depth. Tested with Apache Iceberg's own server, the
``RESTCatalogServlet`` of 1.11.0 over a ``JdbcCatalog``, and with Nessie 0.99.0, which is a source only
([why](../how-to/iceberg.md#nessie)). **Not run**: Snowflake Open Catalog, Lakekeeper, BigLake, OneLake, AWS Glue's and S3 Tables'
Iceberg endpoints ([iceberg.md](../how-to/iceberg.md)).

A Lance table is represented by a *companion*: an Iceberg table with one column ``dummy``, the property ``table_type=lance``, and the
Lance table's location. Where the Lance Iceberg spec is silent, or the real server differs:

- The companion's metadata files are not inside the Lance directory, but beside it in ``_iceberg/<name>``, with Iceberg's property
  ``write.metadata.path``. Before a process declares the first table of a warehouse, it tests the server: it creates an Iceberg table
  ``federator_drop_test`` at a new location in ``_iceberg/``, looks where the server put it and its metadata, and drops and purges it. A
  server that ignores the property, or assigns a location of its own, is refused (0) and has written nothing into the Lance directory.
  So the server must allow to drop tables. Each later companion is compared, too. If the server puts one elsewhere, the companion is
  dropped again. It stays if the server deletes the files of dropped tables and its location may have a written Lance table. Companions
  of other clients may have ``metadata/`` inside the Lance directory; they are read.
- A location with a level named ``_iceberg``, ``.`` or ``..`` is refused (13): a companion's metadata would be inside a Lance table.
- The federator deregisters with ``purgeRequested=false``. Before a process deregisters the first written table of a warehouse, it makes
  a *drop test*: it creates and drops an Iceberg table ``federator_drop_test`` in that table's namespace, in ``_iceberg/`` beside the
  table, and lists whether the metadata that the server wrote is still there. If not, no written table is deregistered (0). If the
  process is killed or a response is lost, this table stays until the next write in the namespace or the drop of the namespace. Its
  files stay.
- A table in a store that cannot be listed with ``storage.*`` cannot be tested and is not deregistered (0). ``keeps_files = true`` or
  ``false`` states what the server's documentation says. It replaces the test, unless this process saw data deleted.
- A companion with rows of an Iceberg client is not deregistered (0): nothing else would lead to these rows.
- Before and after each deregistration, the table's location is listed with ``storage.*``, which takes a second or more for an object
  store. If the data was deleted, this is an error (18).
- A warehouse without a ``prefix`` in ``/v1/config`` has URLs without one, as in Iceberg's specification; the Lance spec would use the
  warehouse's name, which the real server does not accept. An ``overrides`` value takes precedence. The ``uri`` there is used only if
  the endpoint is below it, as for a branch of Nessie.
- Listings may omit what the source's principal may not see (``listing_filtered``), as those of Nessie with authorization do.
- A table without a location goes below its namespace's location, which the real server gives every namespace; the Lance spec has
  ``{root}/{warehouse}/{namespace}/{table}``. Here that is the default of a namespace without a location, with ``.lance`` at its end.
- The levels of a namespace are joined with ``%1F``, or with the server's ``namespace-separator``. Names of namespaces have no periods:
  Iceberg's own server keeps ``a.b`` as two levels.
- Servers do not list their warehouses. Without ``iceberg.warehouses``, the root has no listing and no crawl. Other warehouses are
  never proven absent.
- The real server creates namespaces without parents, and tables in namespaces that do not exist. The federator checks the parent first.
- Servers list tables without properties, so ListTables sends one request per table. Other Iceberg tables and views are foreign: their
  names are taken, and they are never changed.
- A namespace is described with Iceberg's names of properties and with those of the other Lance specs: `location` and
  `database.location-uri`, `comment` and `database.description`, `owner` and `database.owner`.
- The doc of a table is the property ``comment``. ``write.metadata.path`` and ``write.parquet.compression-codec``, which Iceberg's
  library adds, belong to the companion and are not shown.
- An update is one commit that requires the table's UUID. A rename is one call within a warehouse, which compares nothing: if another
  table had taken the name, that is reported (14). A server whose endpoints lack the call is refused (0). CASCADE is unsupported (0).
  DropNamespace of a missing namespace is code 1, as in all connectors.
- Some servers refuse names with ``/ \\ %`` in a URL (Jetty 12 does by default), but not in the request that creates them. Such a name
  is tested first, and its refusal is code 13. Mirrors learn it from the first refusal. ListTables includes such a name of another
  client, Lance or not.

``IcebergNamespace`` is the class for ``lance_namespace.connect("federator_connectors.iceberg.IcebergNamespace", {...})``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, NameRules
from federator.lance.lazy_facade import lazy_facade_class
from federator_connectors._iceberg.settings import NATIVE_PROPERTY_NAMES, REFUSED_NAMES, IcebergSettings

if TYPE_CHECKING:
    from federator_connectors._iceberg.catalog import IcebergCatalog

# Iceberg has no limit for the nesting; a path with more than a hundred levels is an error.
_MAX_DEPTH = 100


class IcebergConnector(Connector[IcebergSettings]):
    """The connector of Iceberg REST catalogs."""

    impl = "iceberg"
    extra = "iceberg"
    settings_type = IcebergSettings
    native_property_names = NATIVE_PROPERTY_NAMES
    capabilities = Capabilities(
        min_depth=2,
        max_depth=_MAX_DEPTH,
        levels=("warehouse", "namespace"),
        # Control characters include the separator of levels. A name of one or two dots would be removed when the URL is normalised.
        names=NameRules(pattern=r"(?!\.{1,2}$)[^\x00-\x1f\x7f\ud800-\udfff]+", max_length=255, refusals=(REFUSED_NAMES,)),
        namespace_names=NameRules(pattern=r"[^.\x00-\x1f\x7f\ud800-\udfff]+", max_length=255, refusals=(REFUSED_NAMES,)),
        creates_namespaces_at=frozenset(range(2, _MAX_DEPTH + 1)),
        alters_namespaces_at=frozenset(range(2, _MAX_DEPTH + 1)),
        cascade=False,
        listing_filtered=True,
    )

    def open(self, source: str, settings: IcebergSettings) -> IcebergCatalog:
        """Open the catalog. It connects at the first call. Raise ConfigError for signatures without credentials."""
        # Imported only here: requests takes a tenth of a second to import, and listing the connectors must be fast.
        from federator_connectors._iceberg.catalog import IcebergCatalog

        return IcebergCatalog(source, settings)

    def preload_imports(self) -> None:
        import stamina  # noqa: F401

        import federator_connectors._iceberg.catalog  # noqa: F401


CONNECTOR = IcebergConnector()
# The class IcebergNamespace of this module, made at its first use.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "IcebergNamespace")
