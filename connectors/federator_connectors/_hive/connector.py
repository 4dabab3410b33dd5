"""What the connectors of both versions are made of; imports neither thrift nor hmsclient, so that listing connectors is quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from federator.connector import Capabilities, Catalog, ConfigError, Connector, NameRules
from federator_connectors._hive.settings import HiveSettings, pool_size


def hive_capabilities(*levels: str) -> Capabilities:
    """What a metastore with these levels above its tables can do."""
    depth = len(levels)
    return Capabilities(
        min_depth=depth,
        max_depth=depth,
        levels=levels,
        names=NameRules(pattern="[A-Za-z0-9_]+", max_length=256, folds_case=True),
        namespace_names=NameRules(pattern="[A-Za-z0-9_]+", max_length=128, folds_case=True),
        creates_namespaces_at=frozenset(range(1, depth + 1)),
        alters_namespaces_at=frozenset({depth}),
        plain_namespaces_at=frozenset(range(1, depth)),
        # 2.3.10 and 4.x compare expected parameters, 3.1.3 and earlier 2.3 take them and ignore them, and no answer tells which.
        conditional_write=False,
        # Where the server has the listener; the others say Unsupported.
        change_feed=True,
    )


class HiveConnector(Connector[HiveSettings]):
    """A metastore whose tables have as many levels above them as ``capabilities`` says."""

    settings_type = HiveSettings
    extra: ClassVar[str | None] = "hive"

    def preload(self) -> None:
        import federator_connectors._hive.catalog  # noqa: F401

    def open(self, source: str, settings: HiveSettings) -> Catalog:
        try:
            from federator_connectors._hive.catalog import HiveCatalog
        except ModuleNotFoundError as error:
            hint = f"pip install 'lance-federator[{self.extra}]'"
            raise ConfigError(f"the connector {self.impl!r} needs the module {error.name!r}", hint=hint) from error
        return HiveCatalog(source, settings, levels=self.capabilities.max_depth)

    def concurrency(self, properties: Mapping[str, str]) -> int:
        return pool_size(properties)
