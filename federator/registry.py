"""Connector registry: finds connectors by entry point (group ``federator.connectors``), or by dotted path
``package.module:CONNECTOR``."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from federator.connector import Capabilities, Catalog, ConfigError, Connector, SourceSpec
from federator.connector.call_metrics import PROCESS_METER, CallMeter, MeteredCatalog

GROUP = "federator.connectors"
#: the environment variable with the impls that Spark's worker daemon imports before it forks
PRELOAD = "FEDERATOR_PRELOAD"


def list_impls() -> list[str]:
    """Return the names of the installed connectors, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@cache
def get_connector(impl: str) -> Connector[Any]:
    """Return the connector of an impl. Raise ConfigError with the known impls, or with the missing extra."""
    try:
        connector = _load(impl)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the connector {impl!r} needs the module {error.name!r}",
            hint=f"pip install 'lance-federator[{impl.rstrip('23')}]'",
        ) from error
    if not isinstance(connector, Connector):
        raise ConfigError(
            f"{impl!r} is not a connector", hint="a dotted path names an instance of federator.connector.Connector"
        )
    return connector


def extra_of(impl: str) -> str | None:
    """Return the extra with the libraries of an impl. None: the core is enough, or the impl is a dotted path."""
    name = impl.rstrip("23")
    return name if ":" not in impl and name != "dir" else None


def _load(impl: str) -> object:
    if ":" in impl:
        module, _, name = impl.partition(":")
        return getattr(importlib.import_module(module), name, None)
    for point in entry_points(group=GROUP):
        if point.name == impl:
            return point.load()
    raise ConfigError(
        f"unknown connector: {impl!r}", hint=f"use one of {', '.join(list_impls())}, or a dotted path package.module:NAME"
    )


def source_capabilities(spec: SourceSpec) -> Capabilities:
    """Return the capabilities of a configured source. Secret references are resolved in this process. Raise ConfigError."""
    connector = get_connector(spec.impl)
    return connector.capabilities_for(connector.parse_settings(spec.properties, where=f"[sources.{spec.name}] "))


def open_catalog(spec: SourceSpec, meter: CallMeter = PROCESS_METER) -> Catalog:
    """Open a configured source. Secret references are resolved in this process, and ``meter`` counts the calls.

    Raise ConfigError or CatalogError.
    """
    connector = get_connector(spec.impl)
    settings = connector.parse_settings(spec.properties, where=f"[sources.{spec.name}] ")
    return MeteredCatalog(connector.open_catalog(spec.name, settings), meter)
