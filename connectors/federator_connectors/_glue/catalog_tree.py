"""The hierarchy of Glue catalogs: it maps names to CatalogIds and returns canonical paths.

The children of the root namespace are the account's own catalog, named by the account number, and its child catalogs. A table in a
database of the account's own catalog has the path ``(account, database, table)``. The ids of child catalogs are read from listings,
never composed.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from federator.connector import NamespaceNotFound, Unauthenticated, Unsupported
from federator.model import Path
from federator_connectors._glue.client import Clients, iter_items
from federator_connectors._glue.errors import translate_aws_errors

_ACCOUNT = re.compile(r"[0-9]{12}")
#: how long a listing of catalogs is cached to resolve paths; listings for callers are never cached
_CACHE_SECONDS = 60.0
#: maximum age of a listing that proves, while many paths are resolved, that a name is not a catalog
BULK_CACHE_SECONDS = 5.0


class Scope(TypedDict, total=False):
    """The request parameter that selects a catalog; empty for the account's own catalog."""

    CatalogId: str


@dataclass(frozen=True)
class CatalogNode:
    """A catalog: its path, its id, and the request parameter that selects it."""

    path: Path
    catalog_id: str
    scope: Scope


class _Operation(threading.local):
    """State of the operation of one thread."""

    #: a listing that started after this time proves that a name is not a catalog
    valid_from = -math.inf


class CatalogTree:
    """The catalogs of one source. Thread-safe."""

    def __init__(self, source: str, clients: Clients, catalog_id: str | None) -> None:
        self._source = source
        self._clients = clients
        self._configured_id = catalog_id
        self._root: CatalogNode | None = None
        self._listings: dict[str, tuple[float, dict[str, Any]]] = {}
        self._operation = _Operation()

    @property
    def root(self) -> CatalogNode:
        """The root catalog. Its name is its id; in the name of a child catalog, ``:`` replaces ``/``, which names cannot contain."""
        if self._root is None:
            self._root = self._find_root()
        return self._root

    def _find_root(self) -> CatalogNode:
        if self._configured_id:
            return CatalogNode(
                (self._configured_id.replace("/", ":"),), self._configured_id, {"CatalogId": self._configured_id}
            )
        account = self._listed_account() or self._clients.get_account_id()
        return CatalogNode((account,), account, {})

    def account(self) -> str | None:
        """Read the account from the service now; None for a metastore without GetCatalogs and STS."""
        try:
            listed = self._listed_account()
        except Unauthenticated:
            listed = None
        if listed is None and self._clients.has_sts:
            return self._clients.get_account_id()
        return listed

    def children(self, node: CatalogNode, *, since: float = math.inf) -> dict[str, CatalogNode]:
        """Return the direct child catalogs of a catalog, by name.

        A cached listing is used if it started after ``since``; never by default. A service without GetCatalogs has no
        child catalogs. Raise NamespaceNotFound, Unauthenticated.
        """
        base = () if node == self.root else node.path
        listed = self.describe_children(node, since=since).items()
        return {name: CatalogNode((*base, name), c["CatalogId"], {"CatalogId": c["CatalogId"]}) for name, c in listed}

    def describe_children(self, node: CatalogNode, *, since: float = math.inf) -> dict[str, Any]:
        """Return Glue's descriptions of the direct child catalogs, by name. See ``children``."""
        started_at, listing = self._listings.get(node.catalog_id, (-math.inf, {}))
        if started_at < since:
            started_at = time.monotonic()
            listing = self._list(node)
            self._listings[node.catalog_id] = (started_at, listing)
        return listing

    def describe(self, node: CatalogNode) -> Mapping[str, Any]:
        """Return Glue's current description of a catalog. Raise NamespaceNotFound."""
        try:
            with translate_aws_errors(f"{self._source}: reading catalog {node.catalog_id}", missing=NamespaceNotFound):
                return self._clients.reads.get_catalog(CatalogId=node.catalog_id)["Catalog"]
        except Unsupported:
            return {"CatalogId": node.catalog_id}
        except NamespaceNotFound:
            self.clear_cache()
            if node == self.root and not self._configured_id:
                # The account's own catalog always exists, even if Glue cannot describe it.
                return {"CatalogId": node.catalog_id}
            raise

    def clear_cache(self) -> None:
        """Forget all listings. Call it after a change, and when a cached catalog does not exist any more."""
        self._listings.clear()

    def find(self, path: Path, *, refresh: bool = True) -> CatalogNode | None:
        """Return the catalog at a canonical path, or None. ``refresh``: list again if a catalog is not in the cache."""
        if path[:1] == self.root.path:
            return self.root if len(path) == 1 else None
        node = self._find_deepest(path, refresh=refresh)
        return node if node and len(node.path) == len(path) else None

    def canonicalize(self, path: Path, *, max_age: float = 0.0) -> Path:
        """Return the canonical path, see ``GlueCatalog.canonical_path``.

        A listing up to ``max_age`` seconds old proves that a name is not a catalog.
        """
        self._operation.valid_from = time.monotonic() - max_age
        if not path:
            return path
        if path[:1] == self.root.path:
            return (path[0], *_fold_names(path[1:]))
        try:
            catalog = self._find_deepest(path[:1]) and self._find_deepest(path, refresh=False)
        except Unauthenticated:
            # Without the permission to list catalogs, only the databases of the root catalog are accessible.
            catalog = None
        if catalog:
            return (*catalog.path, *_fold_names(path[len(catalog.path) :]))
        return (self.root.path[0], *_fold_names(path)) if len(path) <= 2 else path

    def _find_deepest(self, path: Path, *, refresh: bool = True) -> CatalogNode | None:
        """Return the catalog at the longest prefix of ``path`` that is a catalog, or None."""
        deepest: CatalogNode | None = None
        node = self.root
        for name in path:
            child = self._child(node, name, time.monotonic() - _CACHE_SECONDS)
            if child is None and refresh:
                child = self._child(node, name, self._operation.valid_from)
            if child is None:
                break
            deepest = node = child
        return deepest

    def _child(self, node: CatalogNode, name: str, since: float) -> CatalogNode | None:
        children = self.children(node, since=since)
        matches = [child for other_name, child in children.items() if other_name.lower() == name.lower()]
        return children.get(name) or (matches[0] if len(matches) == 1 else None)

    def _list(self, node: CatalogNode) -> dict[str, Any]:
        operation = f"{self._source}: listing the catalogs in {node.catalog_id}"
        try:
            with translate_aws_errors(operation, missing=NamespaceNotFound):
                catalogs = iter_items(
                    self._clients.reads.get_catalogs, "CatalogList", ParentCatalogId=node.catalog_id, Recursive=False
                )
                return {c["Name"]: c for c in catalogs if c.get("CatalogId") != node.catalog_id}
        except Unsupported:
            return {}

    def _listed_account(self) -> str | None:
        """Return the id of the account's own catalog from the listing of all catalogs, or None.

        IncludeRoot is sent without a parent, because the service refuses the combination.
        """
        try:
            with translate_aws_errors(f"{self._source}: looking up the account"):
                catalogs = iter_items(self._clients.reads.get_catalogs, "CatalogList", IncludeRoot=True)
                return next((c["CatalogId"] for c in catalogs if _ACCOUNT.fullmatch(c.get("CatalogId", ""))), None)
        except Unsupported:
            return None
        except Unauthenticated:
            if self._clients.has_sts:
                return None
            raise


def _fold_names(names: Path) -> Path:
    return tuple(name.lower() for name in names)
