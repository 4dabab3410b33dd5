"""Apache Polaris, its generic tables of format ``lance``: impl ``polaris``.

Paths are ``(catalog, namespace, ..., table)``, namespaces nested to any depth. Seen with Polaris 1.4.1.

Where the Lance Polaris spec is silent, or a real server differs:

- The levels of a namespace are joined by the unit separator (``%1F``) in requests, not by ``.``: a real server answers 404 to
  the latter, and names may hold dots. Children are listed by ``?parent=``; names come back as the children's own.
- The root's children are the catalogs, listed by the management API. A principal who may not do that names them in
  ``polaris.catalogs``; then nothing proves that another catalog is gone. Describing a catalog gives its properties; creating and
  dropping one is left to Polaris's administrators.
- LIST names generic tables of every format, so that each is asked for its own: ListTables costs a request per table. A table
  that the principal may not read is listed, since it may be one. ``format`` is compared in any case.
- A missing namespace or catalog is a missing table to who reads or removes one (4), as Polaris itself says, and a missing
  namespace (1) to who declares one or lists. A 404 that is not in Polaris's words is no absence, but Internal (18).
- From 1.6 on Polaris refuses names with white space at their ends or one of ``/ \\ : * ? " < > | # +`` or a backtick, with 400 (13).
- The property ``doc`` of a declared table becomes its description, too. The server refuses properties that start with
  ``polaris.``.
- Generic tables cannot be altered: ``can_alter`` is false. CASCADE and ``load_detailed_metadata`` are unsupported (0).
- Grants on a table go with it when it is deleted to be declared anew: a table that has some, or whose grants this principal may
  not list, is not.
- Only reading requests are sent again. A fetched token that is refused is fetched anew, once.

``PolarisNamespace`` is the class for ``lance_namespace.connect("federator_connectors.polaris.PolarisNamespace", {...})``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federator.connector import Capabilities, Connector, NameRules
from federator.connector.lazy import lazy_namespace
from federator_connectors._polaris.settings import PolarisSettings

if TYPE_CHECKING:
    from federator_connectors._polaris.catalog import PolarisCatalog

# Polaris names no limit to the nesting; an identifier of a hundred levels is a mistake.
_DEEPEST = 100


class PolarisConnector(Connector[PolarisSettings]):
    """The adapter of Apache Polaris."""

    impl = "polaris"
    extra = "polaris"
    settings_type = PolarisSettings
    capabilities = Capabilities(
        min_depth=2,
        max_depth=_DEEPEST,
        levels=("catalog", "namespace"),
        # The length is that of the management API's model of a catalog. Control characters include the separator of levels, and
        # dots alone would be folded out of an address.
        names=NameRules(pattern=r"(?!\.{1,2}$)[^\x00-\x1f\x7f\ud800-\udfff]+", max_length=256),
        creates_namespaces_at=frozenset(range(2, _DEEPEST + 1)),
        alters_namespaces_at=frozenset(range(2, _DEEPEST + 1)),
        can_alter=False,
        cascade=False,
    )

    def open(self, source: str, settings: PolarisSettings) -> PolarisCatalog:
        """Connects with the first call."""
        # requests costs a tenth of a second to import, which listing the connectors should not.
        from federator_connectors._polaris.catalog import PolarisCatalog

        return PolarisCatalog(source, settings)

    def preload(self) -> None:
        import stamina  # noqa: F401

        import federator_connectors._polaris.catalog  # noqa: F401

    def configure(self, properties: Mapping[str, str], *, where: str = "") -> PolarisSettings:
        settings = super().configure(properties, where=where)
        settings.check(f"{where}{self.impl}.")
        return settings


CONNECTOR = PolarisConnector()

__getattr__ = lazy_namespace(__name__, CONNECTOR, "PolarisNamespace")
