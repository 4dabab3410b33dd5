"""Unity Catalog: impl ``unity``.

Paths are ``(catalog, schema, table)``, always with three levels. The children of the root are the catalogs that the source's
principal may see, or only the configured catalog.

Where the Lance Unity spec is silent, or a server differs:

- The specs have two versions: the older one has one fixed catalog and timeouts in seconds, the newer one all catalogs and timeouts in
  milliseconds under the same names. Here timeouts are in seconds, and ``connect_timeout_ms`` and ``read_timeout_ms`` in
  milliseconds. ``federator doctor`` warns of seconds that must be meant as milliseconds. Defaults are those of the older version: the
  newer one waits five minutes for a response, and has ``root = /tmp/lance``, which any user of the machine can write to.
- The principal of a source has a fixed ``auth_token``, or ``client_id`` and ``client_secret`` (OAuth M2M of Databricks): tokens are
  fetched from ``token_url`` and renewed. The form is that of Databricks's documentation, tested with a token
  endpoint that Authlib serves; it was **not run** on Databricks.
- DropNamespace with CASCADE deregisters the Lance tables one by one and drops the empty schema. The spec's ``force=true`` is never
  sent: it would also drop managed tables, volumes and models with their data, including objects created after the last listing.
- A table's ownership marker is stored in its properties. Where the server refuses such properties, as Databricks does, it is stored
  in the table's comment. A server that refuses the property ``table_type`` cannot mark Lance tables: DeclareTable fails with code 0.
- CreateTable and ``federator declare`` declare a table with the columns of its data. DeclareTable has no columns in the protocol,
  so clients that declare and then write (``lance.write_dataset``) leave none.
- A table with the only column ``__placeholder_id``, as ``lance-namespace-impls`` declares it, is described without columns.
- A column's type is the nearest type of Spark, or Arrow's own text if Spark has none (times of day, decimals of more than 38
  digits). Where Spark's type says less (``array<float>`` for a vector, ``bigint`` for ``uint32``, timestamps that are not of
  microseconds), Arrow's type is in the metadata of ``type_json``, and DescribeTable returns it. 0.6.0 returned each recorded
  ``type_json`` as it was sent; none had such metadata. Lost are metadata of fields, dictionaries (DescribeTable names the type of
  their values) and parameters of extension types; a table with such an extension type, or with nested names that contain ``": "``,
  is described without columns. In the protocol a timestamp has neither unit nor time zone.
- A mirror declares a table with the columns that the origin's catalog has. They are not updated, because tables cannot be altered; a
  recreate declares the newer ones.
- Tables cannot be altered (the API has no such call). Catalogs cannot be created or dropped: an identifier of one level is InvalidInput
  (13) there. A catalog can be described, although the spec's DescribeNamespace needs two levels.
- ``database.owner`` of a new schema is set by a second request (PATCH), as Databricks documents it; it was not run against Databricks.
  No recording of the open-source server 0.6.0 sets an owner. A server that does not keep it: code 0, and no schema is left.
- A table without a location goes below ``root``. The storage root of a schema is reserved for tables that the server manages.
- New names follow the open-source server: letters, digits, ``_``, ``@`` and ``-``.
- A file's location is percent-encoded where a URI requires it. A table whose location in an object store has such characters is
  refused, because ``%20`` is part of a key there.
- With authorization, no table's location may equal, contain or lie inside that of another table of the metastore. So with a token
  configured, mirrors between two sources of one endpoint are refused in their plan, unless they replace the location.
- Concurrent declarations of one name would break it in the server. They wait for each other, in one process and between the processes
  of one index, also through several sources with the same ``endpoint``: runs, commands and direct writes take the lock of the table.
  Upper case in the host, the default port and additional slashes do not matter. Processes with different indexes do not exclude each
  other, nor do sources that have different names of one host: write to a server through one index.
- With ``vend = "catalog"``, credentials for a table's files come from ``POST /temporary-table-credentials`` with the table's id and
  ``READ`` or ``READ_WRITE``. The source's principal needs the permission for it; on Databricks, that is ``EXTERNAL USE SCHEMA``, and
  the metastore must allow external access. The form is that of the API's document; it was run against the tests' own server only.
- Listings omit objects that the source's principal may not see (``listing_filtered``).

``UnityNamespace`` is the class for ``lance_namespace.connect("federator_connectors.unity.UnityNamespace", {...})``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, LocationRules, NameRules
from federator.lance.lazy_facade import lazy_facade_class
from federator_connectors._http.settings import canonicalize_url
from federator_connectors._unity.settings import LOCATIONS, UnitySettings

if TYPE_CHECKING:
    from federator_connectors._unity.catalog import UnityCatalog

_CRAWL_CONCURRENCY = 4


class UnityConnector(Connector[UnitySettings]):
    """The connector of Unity Catalog."""

    impl = "unity"
    extra = "unity"
    settings_type = UnitySettings
    capabilities = Capabilities(
        min_depth=2,
        max_depth=2,
        levels=("catalog", "schema"),
        names=NameRules(pattern=r"[A-Za-z0-9_@-]+", max_length=255),
        locations=LocationRules(LOCATIONS),
        creates_namespaces_at=frozenset({2}),
        alters_namespaces_at=frozenset({2}),
        can_alter=False,
        keeps_columns=True,
        listing_filtered=True,
        vends_credentials=True,
    )

    def open(self, source: str, settings: UnitySettings) -> UnityCatalog:
        """Open the catalog. It connects at the first call."""
        # Imported only here: requests takes 60 ms to import, and listing the connectors must be fast.
        from federator_connectors._unity.catalog import UnityCatalog

        return UnityCatalog(source, settings)

    def capabilities_for(self, settings: UnitySettings) -> Capabilities:
        """Return the capabilities. With a token, each location of the server's metastore belongs to one table."""
        server = canonicalize_url(settings.endpoint)
        locations = LocationRules(LOCATIONS, exclusive_in=server if settings.has_token else None)
        return replace(self.capabilities, locations=locations, declarations_race_in=server)

    def preload_imports(self) -> None:
        import stamina  # noqa: F401

        import federator_connectors._unity.catalog  # noqa: F401

    def crawl_concurrency(self, properties: Mapping[str, str]) -> int:  # noqa: ARG002
        return _CRAWL_CONCURRENCY


CONNECTOR = UnityConnector()
# The class UnityNamespace of this module, made at its first use.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "UnityNamespace")
