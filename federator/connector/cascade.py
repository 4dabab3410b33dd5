"""Dropping a namespace with everything declared inside it: metadata only, after a look at everything that is inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from federator.connector.errors import CatalogError, NamespaceNotEmpty
from federator.connector.port import Catalog
from federator.model import NamespaceRecord, Path, Record, TableRecord, path_key


@runtime_checkable
class SeesForeign(Protocol):
    """A catalog whose listing also shows what is not Lance."""

    def foreign_objects(self, namespace: Path) -> list[str]: ...


@dataclass
class _Tree:
    """What lies in a namespace, parents before children."""

    namespaces: list[NamespaceRecord] = field(default_factory=list)
    tables: list[TableRecord] = field(default_factory=list)


def drop_with_contents(catalog: Catalog, path: Path, *, max_depth: int) -> None:
    """Deregisters the Lance tables inside ``path``, then drops its namespaces, deepest first.

    Everything is looked at before anything is removed. What appears later, or is listed by no call, shows when the catalog refuses to
    drop its namespace: the cascade stops there. What was removed by then is named in the error and in its ``dropped``, and not
    declared again: a new declaration would be another object, without the old one's creation time and grants.

    Raises NamespaceNotEmpty where something other than an external Lance table is inside.
    """
    tree = _Tree()
    _look(catalog, path, max_depth, tree)
    removed: list[Record] = []
    try:
        for table in tree.tables:
            catalog.deregister_table(table)
            removed.append(table)
        for namespace in reversed(tree.namespaces):
            catalog.drop_namespace(namespace.path)
            removed.append(namespace)
    except CatalogError as error:
        raise _stopped(error, removed) from error


def _look(catalog: Catalog, path: Path, max_depth: int, tree: _Tree) -> None:
    tree.namespaces.append(catalog.describe_namespace(path))
    foreign = catalog.foreign_objects(path) if isinstance(catalog, SeesForeign) else []
    if foreign:
        raise NamespaceNotEmpty(f"{path_key((*path, foreign[0]))} is not ours to remove: it is no external Lance table")
    for name in sorted(catalog.list_tables(path)):
        seen = catalog.observe((*path, name))
        if seen.foreign:
            raise NamespaceNotEmpty(f"{path_key((*path, name))} is not ours to remove: {seen.foreign}")
        if seen.record:
            tree.tables.append(seen.record)
    if len(path) < max_depth:
        for name in sorted(catalog.list_namespaces(path)):
            _look(catalog, (*path, name), max_depth, tree)


def _stopped(error: CatalogError, removed: list[Record]) -> CatalogError:
    if not removed:
        return error
    names = ", ".join(f"{record.key} at {record.location}" if record.location else record.key for record in removed)
    stopped = type(error)(
        f"{error.message}; dropped before that: {names}", hint="their data is still there: RegisterTable declares a table again"
    )
    stopped.dropped = tuple(removed)
    return stopped
