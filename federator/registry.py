"""Connector registry: finds connectors by entry point (group ``federator.connectors``), or by dotted path
``package.module:CONNECTOR``."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from federator.connector import Capabilities, Catalog, ConfigError, Connector, ConnectorSettings, SourceSpec
from federator.connector.call_metrics import PROCESS_METER, CallMeter
from federator.connector.opened_catalog import OpenedCatalog
from federator.connector.options import MAX_REQUESTS_KEY, read_count

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
            hint=f"pip install 'lance-federator[{extra_of(impl)}]'" if extra_of(impl) else None,
        ) from error
    if not isinstance(connector, Connector):
        raise ConfigError(
            f"{impl!r} is not a connector", hint="a dotted path names an instance of federator.connector.Connector"
        )
    return connector


def extra_of(impl: str) -> str | None:
    """Return the extra with the libraries of an impl. None: the core is enough, or the impl is a dotted path."""
    # hive2 and hive3 share an extra.
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


def parse_connector_settings(spec: SourceSpec) -> ConnectorSettings:
    """Return the settings of a configured source, of its connector's own type. Secret references are resolved in this process.

    Raise ConfigError with the source's section, also if a reference cannot be resolved.
    """
    settings: ConnectorSettings = get_connector(spec.impl).parse_settings(spec.properties, where=f"[sources.{spec.name}] ")
    return settings


def read_root(spec: SourceSpec) -> str | None:
    """Return the configured storage root of a source as a URI; None if it has none. No secret is resolved.

    Raise ConfigError if the root cannot be known.
    """
    connector = get_connector(spec.impl)
    root: str | None = connector.settings_type.read_root(connector.impl, spec.properties)
    return root


def crawl_concurrency(spec: SourceSpec) -> int:
    """Return how many tasks may read a source at once: each of them makes one request or more at a time."""
    concurrency = get_connector(spec.impl).crawl_concurrency(spec.properties)
    return min(concurrency, read_count(spec.properties, MAX_REQUESTS_KEY, concurrency))


def source_capabilities(spec: SourceSpec) -> Capabilities:
    """Return the capabilities of a configured source. Secret references are resolved in this process. Raise ConfigError."""
    return get_connector(spec.impl).capabilities_for(parse_connector_settings(spec))


def open_catalog(spec: SourceSpec, meter: CallMeter = PROCESS_METER, *, processes: int = 1) -> Catalog:
    """Open a configured source. Secret references are resolved in this process, and ``meter`` counts the calls.

    ``processes`` is the number of processes that share the source's call limits. Raise ConfigError or CatalogError.
    """
    settings = parse_connector_settings(spec).share_limits(processes)
    return OpenedCatalog(get_connector(spec.impl).open_catalog(spec.name, settings), meter)
