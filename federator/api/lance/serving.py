"""Installation of the Lance protocols: routes, middleware and shared state."""

from __future__ import annotations

from fastapi import FastAPI

from federator.api.lance import general_spec, namespaces, table_metadata, table_read, table_write, tables, unsupported
from federator.api.lance.freshness_header import FreshnessMiddleware
from federator.api.lance.identifiers import EncodedPaths
from federator.api.lance.table_data import build_pool
from federator.api.route_paths import route_paths
from federator.apply.direct_writes import DirectWriter
from federator.settings import Settings
from federator.store import Index
from federator.vending import Vendors


def install_lance_routes(app: FastAPI, index: Index, settings: Settings) -> None:
    """Add the routes of ``/v1`` and the general spec. Connections and processes are started on first use."""
    app.state.writer = DirectWriter(index, settings)
    app.state.pool = build_pool(settings)
    app.state.vendors = Vendors(settings)
    for module in (namespaces, tables, table_read, table_metadata, table_write, unsupported, general_spec):
        app.include_router(module.router)
    app.add_middleware(EncodedPaths)
    app.add_middleware(FreshnessMiddleware, index=index, general_paths=frozenset(route_paths(general_spec.router)))


def close_lance_routes(app: FastAPI) -> None:
    """End the processes and close the connections."""
    app.state.writer.close()
    app.state.pool.close()
    app.state.vendors.close()
