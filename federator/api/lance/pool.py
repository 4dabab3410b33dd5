"""The processes that open tables, as a dependency of routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from federator.data import DataLimits, DataPool
from federator.settings import Settings


def pool_for(settings: Settings) -> DataPool:
    """A pool as ``[serve.data]`` says; it starts nothing before it is asked."""
    data = settings.serve.data
    return DataPool(DataLimits(data.max_rows, data.max_seconds, data.max_bytes), data.processes)


def _pool(request: Request) -> DataPool:
    pool: DataPool = request.app.state.pool
    return pool


PoolOf = Annotated[DataPool, Depends(_pool)]
