"""Pages of names below a namespace, for both protocols: one name more than asked for tells whether there is a next page."""

from __future__ import annotations

from federator.api.lance.resolving import children_known, resolve_namespace
from federator.index import Index, listing
from federator.model import Path
from federator.model.scopes import Scopes
from federator.settings import Settings


def child_namespaces(index: Index, settings: Settings, scopes: Scopes, path: Path, *, after: str, size: int) -> list[str]:
    """Up to ``size`` + 1 of the children's own names, by name; of the root, the sources.

    Raises NamespaceNotFound; PermissionDenied or ServiceUnavailable where the last crawl could not list them.
    """
    if not path:
        return [name for name in sorted(settings.sources) if name > after and scopes.shows((name,))]
    found = resolve_namespace(index, settings, scopes, path)
    with index.read() as connection:
        names = listing.namespaces(connection, found.source.name, found.path[1:], after=after, limit=size + 1, scopes=scopes)
        if not names and not after:
            children_known(connection, found)
    return names


def child_tables(
    index: Index,
    settings: Settings,
    scopes: Scopes,
    path: Path,
    *,
    after: str,
    size: int,
    written: bool = False,
    managed: bool = False,
) -> list[str]:
    """Up to ``size`` + 1 names of a namespace's tables; the root has none. ``written`` leaves out those that are only declared,
    ``managed`` takes in those that their catalog manages. Raises as ``child_namespaces``."""
    if not path:
        return []
    found = resolve_namespace(index, settings, scopes, path)
    with index.read() as connection:
        names = listing.tables(
            connection, found.source.name, found.path[1:], after=after, limit=size + 1, scopes=scopes, written=written, managed=managed
        )  # fmt: skip
        if not names and not after:
            children_known(connection, found)
    return names
