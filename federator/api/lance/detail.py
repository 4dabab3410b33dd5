"""What a table itself says of its state, for DescribeTable: asked of ``federator.data``, in a process that can be ended."""

from __future__ import annotations

from typing import Any

from federator.api.lance.resolving import Table
from federator.connector import Unsupported, is_endpoint_key, is_secret_key
from federator.data import DataPool, Place
from federator.index import Index, datasets
from federator.registry import connector


def place_of(table: Table) -> Place:
    """Where a table's data lies, and the source's own ``storage.*`` to open it with, which nothing of the table's is laid over.

    Raises Unsupported for a source that is not to be opened.
    """
    if not table.source.data_operations:
        raise Unsupported(f"tables of {table.source.name} are not opened here: data_operations = false in its settings")
    spec = table.source.spec
    storage = connector(spec.impl).configure(spec.properties, where=f"[sources.{spec.name}] ").storage
    if any(is_endpoint_key(key) for key in table.record.properties):
        # Its catalog says that the table is elsewhere: none of our credentials is meant for that.
        storage = {key: value for key, value in storage.items() if not is_secret_key(key)}
    return Place(table.location, dict(storage))


def of_table(
    pool: DataPool, table: Table, *, version: int | None = None, tag: str | None = None, branch: str | None = None
) -> dict[str, Any]:
    """``version``, ``schema``, ``stats`` and ``metadata`` of a table at a version, a tag, or a branch's newest version.

    Raises TableNotFound where nothing has been written, TableVersionNotFound, TableTagNotFound, TableBranchNotFound.
    """
    told: dict[str, Any] = pool.run("describe", place_of(table), version=version, tag=tag, branch=branch)
    return told


def is_only_declared(pool: DataPool, index: Index, table: Table) -> bool:
    """Whether nothing has been written at the table's location: by its verification, or where that does not say so, by a look."""
    canonical = table.record.canonical
    if canonical is None:
        return True
    with index.read() as connection:
        seen = datasets.states(connection, [canonical]).get(canonical)
    if seen is not None and seen["state"] == "valid":
        return False
    return bool(pool.run("look", place_of(table))["state"] in ("declared_only", "empty", "missing"))
