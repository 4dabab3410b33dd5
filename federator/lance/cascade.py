"""CASCADE drop of a namespace: removes all declarations inside it, and never data."""

from __future__ import annotations

from dataclasses import dataclass, field

from federator.connector.errors import CatalogError, NamespaceNotEmpty
from federator.connector.port import Catalog
from federator.model import NamespaceRecord, Path, Record, TableRecord, path_key


@dataclass
class _Contents:
    """The objects inside a namespace, parents before children."""

    namespaces: list[NamespaceRecord] = field(default_factory=list)
    tables: list[TableRecord] = field(default_factory=list)


def drop_cascade(catalog: Catalog, path: Path, *, max_depth: int) -> None:
    """Deregister the Lance tables inside ``path``, then drop its namespaces, deepest first.

    All objects are read before the first one is removed. If an object appears later, or is not listed, the catalog refuses to drop its
    namespace, and the cascade stops. The error and its ``dropped`` name the objects that were removed before. They are not declared
    again, because a new declaration would lack the old creation time and grants.

    Raise NamespaceNotEmpty if an object inside is not an external Lance table.
    """
    contents = _Contents()
    _collect_contents(catalog, path, max_depth, contents)
    removed: list[Record] = []
    try:
        for table in contents.tables:
            catalog.deregister_table(table)
            removed.append(table)
        for namespace in reversed(contents.namespaces):
            catalog.drop_namespace(namespace.path)
            removed.append(namespace)
    except CatalogError as error:
        raise _with_removed(error, removed) from error


def _collect_contents(catalog: Catalog, path: Path, max_depth: int, contents: _Contents) -> None:
    contents.namespaces.append(catalog.describe_namespace(path))
    foreign = catalog.list_foreign_objects(path)
    if foreign:
        raise NamespaceNotEmpty(f"{path_key((*path, foreign[0]))} cannot be removed: it is not an external Lance table")
    for name in sorted(catalog.list_tables(path)):
        observation = catalog.observe((*path, name))
        if observation.foreign:
            raise NamespaceNotEmpty(f"{path_key((*path, name))} cannot be removed: {observation.foreign}")
        if observation.record:
            contents.tables.append(observation.record)
    if len(path) < max_depth:
        for name in sorted(catalog.list_namespaces(path)):
            _collect_contents(catalog, (*path, name), max_depth, contents)


def _with_removed(error: CatalogError, removed: list[Record]) -> CatalogError:
    """Return the error with the names of the removed objects."""
    if not removed:
        return error
    names = ", ".join(f"{record.key} at {record.location}" if record.location else record.key for record in removed)
    stopped = type(error)(
        f"{error.message}; dropped before that: {names}", hint="the data was not deleted: RegisterTable declares a table again"
    )
    stopped.dropped = tuple(removed)
    return stopped
