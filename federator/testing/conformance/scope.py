"""The confinement of a conformance run: a connector whose catalogs write only to objects of the run, and remember them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from federator.connector import Capabilities, Catalog, CatalogError, Connector, Internal
from federator.connector.call_metrics import CallMeter
from federator.connector.opened_catalog import OpenedCatalog
from federator.connector.port import Confirm, unconditional
from federator.model import NamespaceRecord, Path, TableRecord, path_key


class OutOfScope(Internal):
    """The suite tried to change an object that is not the run's own. The catalog was not called."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The objects that a run may change: those whose path has a name that begins with ``name``, which is random.

    ``everything``: the catalog itself is the run's own, because it is a directory that the run has made.
    """

    name: str
    everything: bool = False

    def require(self, *paths: Path) -> None:
        """Raise OutOfScope unless all paths are in the scope."""
        for path in paths:
            if not self.everything and not any(name.casefold().startswith(self.name) for name in path):
                raise OutOfScope(f"{path_key(path)!r} is not an object of this run: no name in it begins with {self.name}")


@dataclass(slots=True)
class Attempts:
    """Objects that a run tried to make. They are looked for when it removes its objects, whatever the listings show."""

    namespaces: set[Path] = field(default_factory=set)
    tables: set[Path] = field(default_factory=set)


# By the name of the run: a catalog of a pickled connector belongs to the same run.
_attempts: dict[str, Attempts] = {}


def attempts_of(scope: Scope) -> Attempts:
    """Return the attempts of a run, in this process."""
    return _attempts.setdefault(scope.name, Attempts())


class ScopedCatalog(OpenedCatalog):
    """A catalog that refuses to change objects outside a scope, before it is called."""

    def __init__(self, catalog: Catalog, scope: Scope) -> None:
        super().__init__(catalog, CallMeter())
        self._scope = scope
        # On the instance: it differs by the catalog that is confined.
        self.__dict__["thread_safe"] = catalog.thread_safe

    def create_namespace(self, record: NamespaceRecord) -> NamespaceRecord:
        self._scope.require(record.path)
        attempts_of(self._scope).namespaces.add(record.path)
        return super().create_namespace(record)

    def drop_namespace(self, path: Path) -> None:
        self._scope.require(path)
        super().drop_namespace(path)

    def update_namespace(self, before: NamespaceRecord, after: NamespaceRecord) -> NamespaceRecord:
        self._scope.require(before.path, after.path)
        return super().update_namespace(before, after)

    def declare_table(self, record: TableRecord) -> TableRecord:
        self._scope.require(record.path)
        attempts_of(self._scope).tables.add(record.path)
        return super().declare_table(record)

    def remove_unfinished(self, path: Path, op_id: str) -> bool:
        self._scope.require(path)
        return super().remove_unfinished(path, op_id)

    def update_table(self, before: TableRecord, after: TableRecord, *, confirm: Confirm = unconditional) -> TableRecord:
        self._scope.require(before.path, after.path)
        return super().update_table(before, after, confirm=confirm)

    def deregister_table(self, expected: TableRecord, *, confirm: Confirm = unconditional) -> None:
        self._scope.require(expected.path)
        super().deregister_table(expected, confirm=confirm)

    def rename_table(self, before: TableRecord, new_path: Path) -> TableRecord:
        self._scope.require(before.path, new_path)
        attempts_of(self._scope).tables.add(new_path)
        return super().rename_table(before, new_path)


class ScopedConnector(Connector[Any]):
    """A connector with the capabilities of one configured source, whose catalogs are confined to a scope. Picklable."""

    def __init__(self, connector: Connector[Any], capabilities: Capabilities, scope: Scope) -> None:
        # Set on the instance: pickle could not find a class that is made for one run.
        vars(self).update(
            impl=connector.impl,
            settings_type=connector.settings_type,
            extra=connector.extra,
            capabilities=capabilities,
        )
        self._inner = connector
        self._scope = scope

    def open(self, source: str, settings: Any) -> Catalog:
        return ScopedCatalog(self._inner.open(source, settings), self._scope)

    def parse_settings(self, properties: Mapping[str, str], *, where: str = "") -> Any:
        return self._inner.parse_settings(properties, where=where)

    def crawl_concurrency(self, properties: Mapping[str, str]) -> int:
        return self._inner.crawl_concurrency(properties)


def remove_namespaces(catalog: Catalog, scope: Scope, parent: Path) -> list[str]:
    """Remove all namespaces of a run with their declarations. Return what remains, with the reasons.

    ``parent`` is listed too, in case the response to a creation was lost.
    """
    remaining: list[str] = []
    known = set(attempts_of(scope).namespaces)
    try:
        known |= {(*parent, name) for name in catalog.list_namespaces(parent) if name.casefold().startswith(scope.name)}
    except CatalogError as error:
        remaining.append(f"{path_key(parent) or 'the root'} could not be listed: {error.message}")
    for path in sorted(known, key=len, reverse=True):
        try:
            _remove_namespace(catalog, scope, path)
        except CatalogError as error:
            remaining.append(f"{path_key(path)}: {error.message}")
    return remaining


def empty_namespace(catalog: Catalog, scope: Scope, path: Path) -> None:
    """Deregister all tables of a namespace of the run. Raise the first CatalogError, after all tables."""
    tried = {table for table in attempts_of(scope).tables if table[:-1] == path}
    errors: list[CatalogError] = []
    for table in sorted({*tried, *((*path, name) for name in catalog.list_tables(path))}):
        try:
            record = catalog.observe(table).record
            if record is not None:
                catalog.deregister_table(record)
        except CatalogError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _remove_namespace(catalog: Catalog, scope: Scope, path: Path) -> None:
    # A listing may fail because the catalog is broken. The drop then decides whether the namespace is empty.
    with suppress(CatalogError):
        for name in catalog.list_namespaces(path):
            _remove_namespace(catalog, scope, (*path, name))
    with suppress(CatalogError):
        empty_namespace(catalog, scope, path)
    try:
        catalog.drop_namespace(path)
    except CatalogError:
        if catalog.find_namespace(path) is not None:
            raise
