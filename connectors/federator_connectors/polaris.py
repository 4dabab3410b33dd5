"""Apache Polaris, generic tables of format ``lance``: impl ``polaris``.

Paths are ``(catalog, namespace, ..., table)``, with namespaces nested to any depth. Tested with Polaris 1.4.1.

Where the Lance Polaris spec is silent, or a real server differs:

- Requests join the levels of a namespace with the unit separator (``%1F``), not with ``.``: a real server answers 404 to the
  latter, and names may contain dots. Children are listed with ``?parent=``, and only their last level is used as name.
- The children of the root are the catalogs, listed with the management API. If the principal may not list them, set
  ``polaris.catalogs``; other catalogs are then never proven absent. Describing a catalog returns its properties,
  although the spec's DescribeNamespace needs two levels. Catalogs can only be created and dropped by Polaris's administrators.
- Polaris lists generic tables of all formats, so ListTables sends one request per table to read its format. A table that the
  principal may not read is listed, because it may be a Lance table. ``format`` is compared without regard to case.
- For a read or a removal of a table, a missing namespace or catalog is a missing table (4), as in Polaris itself. For a declaration
  and for listings it is a missing namespace (1). A 404 without Polaris's error format does not prove absence: it is Internal (18).
- Which names Polaris refuses (13) depends on its version: since 1.5 those with ``/`` and with white space at an end, since 1.6 also
  those with ``: # * +``. In catalogs with FILE storage, 1.4.1 refuses namespaces with a space, a backtick or one of
  ``\\ [ ] { } | " < > ^``. A mirror learns the rule from the first refusal: its next plans refuse such names (``name_not_allowed``)
  for 30 days.
- The property ``doc`` of a declared table also becomes its description. The server refuses properties that start with ``polaris.``.
- Generic tables cannot be altered: ``can_alter`` is false. CASCADE and ``load_detailed_metadata`` are unsupported (0).
- An Iceberg table or a view has its name exclusively. It is no table of this connector, but a foreign object if it is observed.
- A recreate would lose the grants on a table. A table with grants, or whose grants cannot be listed, is not recreated. One grant on
  any generic table keeps Polaris from listing the grants of its catalog role.
- A namespace is described with Polaris's own names of properties and with those of the other Lance specs: `location` and
  `database.location-uri`, `comment` and `database.description`, `owner` and `database.owner`.
- No credentials come from Polaris for a generic table: ``storage-access-configs`` was an empty list in every recorded response of
  1.4.1, and the Lance spec describes none. ``vend = "catalog"`` is refused in the configuration.
- Only reading requests are sent again. If a fetched token is refused, a new one is fetched once.

``PolarisNamespace`` is the class for ``lance_namespace.connect("federator_connectors.polaris.PolarisNamespace", {...})``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, NameRules
from federator.lance.lazy_facade import lazy_facade_class
from federator_connectors._iceberg.settings import NATIVE_PROPERTY_NAMES
from federator_connectors._polaris.settings import REFUSED_NAMES, PolarisSettings

if TYPE_CHECKING:
    from federator_connectors._polaris.catalog import PolarisCatalog

# Polaris documents no limit for the nesting; a path with more than a hundred levels is an error.
_MAX_DEPTH = 100


class PolarisConnector(Connector[PolarisSettings]):
    """The connector of Apache Polaris."""

    impl = "polaris"
    extra = "polaris"
    settings_type = PolarisSettings
    native_property_names = NATIVE_PROPERTY_NAMES
    capabilities = Capabilities(
        min_depth=2,
        max_depth=_MAX_DEPTH,
        levels=("catalog", "namespace"),
        # The maximum length is that of the management API's model of a catalog. Control characters include the separator of levels.
        # A name of one or two dots would be removed when the URL is normalised.
        names=NameRules(pattern=r"(?!\.{1,2}$)[^\x00-\x1f\x7f\ud800-\udfff]+", max_length=256, refusals=REFUSED_NAMES),
        creates_namespaces_at=frozenset(range(2, _MAX_DEPTH + 1)),
        alters_namespaces_at=frozenset(range(2, _MAX_DEPTH + 1)),
        can_alter=False,
        cascade=False,
    )

    def open(self, source: str, settings: PolarisSettings) -> PolarisCatalog:
        """Open the catalog. It connects at the first call."""
        # Imported only here: requests takes a tenth of a second to import, and listing the connectors must be fast.
        from federator_connectors._polaris.catalog import PolarisCatalog

        return PolarisCatalog(source, settings)

    def preload_imports(self) -> None:
        import stamina  # noqa: F401

        import federator_connectors._polaris.catalog  # noqa: F401


CONNECTOR = PolarisConnector()
# The class PolarisNamespace of this module, made at its first use.
__getattr__ = lazy_facade_class(__name__, CONNECTOR, "PolarisNamespace")
