"""Finds connectors: by entry point in the group ``federator.connectors``, or by dotted path ``package.module:CONNECTOR``."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from federator.connector import Capabilities, Catalog, ConfigError, Connector, SourceSpec
from federator.connector.calls import METER, Counted, Meter

GROUP = "federator.connectors"


def impls() -> list[str]:
    """The names of the installed connectors, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@cache
def connector(impl: str) -> Connector[Any]:
    """The connector of an impl. Raises ConfigError that lists what there is, or names the extra that is missing."""
    try:
        found = _load(impl)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the connector {impl!r} needs the module {error.name!r}",
            hint=f"pip install 'lance-federator[{impl.rstrip('23')}]'",
        ) from error
    if not isinstance(found, Connector):
        raise ConfigError(
            f"{impl!r} is not a connector", hint="a dotted path names an instance of federator.connector.Connector"
        )
    return found


def _load(impl: str) -> object:
    if ":" in impl:
        module, _, name = impl.partition(":")
        return getattr(importlib.import_module(module), name, None)
    for point in entry_points(group=GROUP):
        if point.name == impl:
            return point.load()
    raise ConfigError(
        f"no connector is called {impl!r}", hint=f"one of {', '.join(impls())}, or a dotted path package.module:NAME"
    )


def capabilities(spec: SourceSpec) -> Capabilities:
    """What a configured source can do; secret references are resolved in this process. Raises ConfigError."""
    found = connector(spec.impl)
    return found.capabilities_of(found.configure(spec.properties, where=f"[sources.{spec.name}] "))


def open_catalog(spec: SourceSpec, meter: Meter = METER) -> Catalog:
    """Opens a configured source; its secret references are resolved in this process. Its calls are counted by ``meter``.

    Raises ConfigError, CatalogError.
    """
    found = connector(spec.impl)
    return Counted(found.open(spec.name, found.configure(spec.properties, where=f"[sources.{spec.name}] ")), meter)
