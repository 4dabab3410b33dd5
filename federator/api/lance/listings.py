"""Names below a namespace, for both protocols. One extra name shows that there is a next page."""

from __future__ import annotations

from federator.api.lance.lookup import require_listed, resolve_namespace
from federator.model import Path
from federator.model.scopes import Scopes
from federator.settings import Settings
from federator.store import Index
from federator.views import listing


def list_child_namespaces(index: Index, settings: Settings, scopes: Scopes, path: Path, *, after: str, size: int) -> list[str]:
    """Return the first ``size`` + 1 names of child namespaces after the name ``after``, sorted; of the root, the sources.

    Raise NamespaceNotFound, or PermissionDenied or ServiceUnavailable if the last crawl could not list the namespace.
    """
    if not path:
        return [name for name in sorted(settings.sources) if name > after and scopes.is_visible((name,))][: size + 1]
    namespace = resolve_namespace(index, settings, scopes, path)
    with index.read() as connection:
        names = listing.list_namespace_names(
            connection, namespace.source.name, namespace.path[1:], after=after, limit=size + 1, scopes=scopes
        )
        if not names and not after:
            require_listed(connection, namespace)
    return names


def list_child_tables(
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
    """Return the first ``size`` + 1 names of a namespace's tables after the name ``after``, sorted; the root has none.

    ``written`` omits tables that are only declared, ``managed`` includes tables that their catalog manages. Raise the same errors as
    ``list_child_namespaces``.
    """
    if not path:
        return []
    namespace = resolve_namespace(index, settings, scopes, path)
    with index.read() as connection:
        names = listing.list_table_names(
            connection, namespace.source.name, namespace.path[1:], after=after, limit=size + 1, scopes=scopes, written=written,
            managed=managed,
        )  # fmt: skip
        if not names and not after:
            require_listed(connection, namespace)
    return names
