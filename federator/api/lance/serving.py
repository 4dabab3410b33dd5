"""Puts the Lance protocols into the app: their routes, and what these keep between requests."""

from __future__ import annotations

from fastapi import FastAPI

from federator.api.lance import general, namespaces, table_meta, table_read, table_write, tables, unsupported
from federator.api.lance.fresh import Fresh
from federator.api.lance.identifiers import EncodedPaths
from federator.api.lance.pool import pool_for
from federator.index import Index
from federator.settings import Settings
from federator.sync.writing import Writer


def install(app: FastAPI, index: Index, settings: Settings) -> None:
    """Adds ``/v1`` and the general spec's routes. Nothing is connected or started before it is asked."""
    app.state.writer = Writer(index, settings)
    app.state.pool = pool_for(settings)
    for module in (namespaces, tables, table_read, table_meta, table_write, unsupported, general):
        app.include_router(module.router)
    app.add_middleware(EncodedPaths)
    app.add_middleware(Fresh, index=index, general=frozenset(f"/{operation}" for operation in general.OPERATIONS))


def close(app: FastAPI) -> None:
    """Ends what was started and closes connections."""
    app.state.writer.close()
    app.state.pool.close()
