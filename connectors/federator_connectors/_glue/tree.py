"""The hierarchy of catalogs: names into CatalogIds, and the canonical form of a path.

The root's children are its own catalog, named by the account's number, and the catalogs inside it; the databases of the root
catalog lie below the account: ``(account, database, table)``. The ids of child catalogs are taken from listings, never composed.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from federator.connector import NamespaceNotFound, Unauthenticated, Unsupported
from federator.model import Path
from federator_connectors._glue.client import Clients
from federator_connectors._glue.errors import calling
from federator_connectors._glue.pages import pages

_ACCOUNT = re.compile(r"[0-9]{12}")
#: seconds that the names of catalogs are remembered for resolving paths; what is listed to callers is always fresh
_REMEMBERED = 60.0
#: how old a listing may be to prove, in a bulk of paths, that a name is no catalog
BULK = 5.0


class Scope(TypedDict, total=False):
    """How a request names its catalog; empty for the caller's own root catalog."""

    CatalogId: str


@dataclass(frozen=True)
class Node:
    """A catalog: its path, its id, and how requests name it."""

    path: Path
    catalog_id: str
    scope: Scope


class Tree:
    """The catalogs of one source."""

    def __init__(self, source: str, clients: Clients, catalog_id: str | None) -> None:
        self._source = source
        self._clients = clients
        self._given = catalog_id
        self._root: Node | None = None
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}
        # A listing that began after this moment proves to the operation under way that a name is no catalog.
        self._since = -math.inf

    @property
    def root(self) -> Node:
        """The root catalog. Its name is its id; a child catalog's id gets ``:`` for ``/``, which names may not hold."""
        if self._root is None:
            self._root = self._found_root()
        return self._root

    def _found_root(self) -> Node:
        if self._given:
            return Node((self._given.replace("/", ":"),), self._given, {"CatalogId": self._given})
        account = self._listed_account() or self._clients.account_id()
        return Node((account,), account, {})

    def account(self) -> str | None:
        """Read the account from the service now; None where nothing tells it: a metastore without GetCatalogs and STS."""
        try:
            listed = self._listed_account()
        except Unauthenticated:
            listed = None
        if listed is None and self._clients.sts_known:
            return self._clients.account_id()
        return listed

    def children(self, node: Node, *, since: float = math.inf) -> dict[str, Node]:
        """The catalogs directly inside one, by name, listed anew unless that was done after the moment ``since``.

        A service that does not know GetCatalogs has none. Raises NamespaceNotFound, Unauthenticated.
        """
        base = () if node == self.root else node.path
        listed = self.natives(node, since=since).items()
        return {name: Node((*base, name), c["CatalogId"], {"CatalogId": c["CatalogId"]}) for name, c in listed}

    def natives(self, node: Node, *, since: float = math.inf) -> dict[str, Any]:
        """The same as Glue describes them."""
        began, found = self._known.get(node.catalog_id, (-math.inf, {}))
        if began < since:
            began = time.monotonic()
            found = self._list(node)
            self._known[node.catalog_id] = (began, found)
        return found

    def describe(self, node: Node) -> Mapping[str, Any]:
        """A catalog as Glue describes it now. Raises NamespaceNotFound."""
        try:
            with calling(f"{self._source}: reading catalog {node.catalog_id}", missing=NamespaceNotFound):
                return self._clients.reads.get_catalog(CatalogId=node.catalog_id)["Catalog"]
        except Unsupported:
            return {"CatalogId": node.catalog_id}
        except NamespaceNotFound:
            self.forget()
            if node == self.root and not self._given:
                # The caller's own catalog always exists, described or not.
                return {"CatalogId": node.catalog_id}
            raise

    def forget(self) -> None:
        """After a change, or when a remembered catalog turned out to be gone."""
        self._known.clear()

    def find(self, path: Path, *, doubting: bool = True) -> Node | None:
        """The catalog at a canonical path, or None. ``doubting``: a catalog that is not remembered is looked for."""
        if path[:1] == self.root.path:
            return self.root if len(path) == 1 else None
        found = self._deepest(path, doubting=doubting)
        return found if found and len(found.path) == len(path) else None

    def canonical(self, path: Path, *, max_age: float = 0.0) -> Path:
        """See ``GlueCatalog.canonical_path``. A listing up to ``max_age`` seconds old proves that a name is no catalog."""
        self._since = time.monotonic() - max_age
        if not path:
            return path
        if path[:1] == self.root.path:
            return (path[0], *_folded(path[1:]))
        try:
            catalog = self._deepest(path[:1]) and self._deepest(path, doubting=False)
        except Unauthenticated:
            # Whoever may not list catalogs reaches those of the root only.
            catalog = None
        if catalog:
            return (*catalog.path, *_folded(path[len(catalog.path) :]))
        return (self.root.path[0], *_folded(path)) if len(path) <= 2 else path

    def _deepest(self, path: Path, *, doubting: bool = True) -> Node | None:
        """The catalog of the longest prefix of ``path`` that is one."""
        found: Node | None = None
        node = self.root
        for name in path:
            child = self._child(node, name, time.monotonic() - _REMEMBERED)
            if child is None and doubting:
                child = self._child(node, name, self._since)
            if child is None:
                break
            found = node = child
        return found

    def _child(self, node: Node, name: str, since: float) -> Node | None:
        inside = self.children(node, since=since)
        alike = [child for other, child in inside.items() if other.lower() == name.lower()]
        return inside.get(name) or (alike[0] if len(alike) == 1 else None)

    def _list(self, node: Node) -> dict[str, Any]:
        what = f"{self._source}: listing the catalogs in {node.catalog_id}"
        try:
            with calling(what, missing=NamespaceNotFound):
                inside = pages(
                    self._clients.reads.get_catalogs, "CatalogList", ParentCatalogId=node.catalog_id, Recursive=False
                )
                return {c["Name"]: c for c in inside if c.get("CatalogId") != node.catalog_id}
        except Unsupported:
            return {}

    def _listed_account(self) -> str | None:
        """The root catalog's id as the listing of all catalogs has it. IncludeRoot goes alone: with a parent it is refused."""
        try:
            with calling(f"{self._source}: looking up the account"):
                listed = pages(self._clients.reads.get_catalogs, "CatalogList", IncludeRoot=True)
                return next((c["CatalogId"] for c in listed if _ACCOUNT.fullmatch(c.get("CatalogId", ""))), None)
        except Unsupported:
            return None
        except Unauthenticated:
            if self._clients.sts_known:
                return None
            raise


def _folded(names: Path) -> Path:
    return tuple(name.lower() for name in names)
