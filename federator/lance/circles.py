"""Circles of deployments: a source of impl ``rest`` that leads back to the service itself would make the index grow at every crawl.

The service answers DescribeNamespace, and GetNamespace of the general spec, of the tree root with its deployment in
``federator.deployment``, and that of a source that is another deployment with the one that it read there.
"""

from __future__ import annotations

from federator.connector import Catalog, CatalogError, InvalidInput, NamespaceNotFound, PermissionDenied, Unsupported
from federator.model import ROOT, Path, path_key

DEPLOYMENT_KEY = "federator.deployment"
#: how the identity of a source starts that is another deployment
DEPLOYMENT_IDENTITY = "deployment "


def find_deployment(catalog: Catalog, path: Path) -> str | None:
    """Return the deployment whose tree root a namespace is. None for another namespace, and for another server. Raise CatalogError."""
    try:
        return catalog.describe_namespace(path).properties.get(DEPLOYMENT_KEY)
    except (InvalidInput, NamespaceNotFound, PermissionDenied, Unsupported):
        # Other servers do not describe their root. A namespace that was dropped meanwhile, or is denied, leads nowhere.
        return None


def find_circle(catalog: Catalog, deployment: str) -> Path | None:
    """Return the path at which a catalog has the tree of ``deployment``. None if it has it nowhere. Raise CatalogError.

    Only the sources of other deployments are read, not what is in them.
    """
    waiting: list[Path] = [ROOT]
    known: set[str] = set()
    for path in waiting:
        found = find_deployment(catalog, path)
        if found == deployment:
            return path
        if found is not None and found not in known:
            known.add(found)
            waiting += _list_children(catalog, path)
    return None


def _list_children(catalog: Catalog, path: Path) -> list[Path]:
    try:
        return [(*path, name) for name in catalog.list_namespaces(path)]
    except CatalogError:
        # A crawl cannot list it either, and so reads nothing below it.
        if path == ROOT:
            raise
        return []


def require_no_circle(catalog: Catalog, deployment: str) -> None:
    """Raise InvalidInput if a catalog has the tree of ``deployment``. Raise CatalogError if it cannot be read."""
    path = find_circle(catalog, deployment)
    if path is None:
        return
    where = f"its namespace {path_key(path)!r}" if path else "its root"
    raise InvalidInput(
        f"{catalog.source}: {where} is this service itself, so that each crawl would read all earlier ones",
        hint="remove this source and configure the catalogs that are behind it, or give its token scopes without that namespace",
    )
