"""Tests of the Lance namespace interface: create, list, describe, exists and drop of namespaces, with modes and error codes."""

from __future__ import annotations

import lance_namespace as lance
import pytest

from federator.connector import Catalog
from federator.lance.facade import CatalogNamespace
from federator.model import Path
from federator.testing.contract.base import (
    ODD_NAMES,
    Contract,
    DictRequest,
    Location,
    collect_pages,
    operation,
    requires,
    supports_creating,
    supports_writes,
    unique_name,
)


class NamespaceContract(Contract):
    """Namespace operations of the Lance spec, with their error codes."""

    default_operation = "DescribeNamespace"

    def test_the_root_always_exists_and_stays(self, facade: CatalogNamespace) -> None:
        facade.namespace_exists(lance.NamespaceExistsRequest(id=[]))
        facade.describe_namespace(lance.DescribeNamespaceRequest())
        with pytest.raises(lance.InvalidInputError):
            facade.drop_namespace(lance.DropNamespaceRequest(id=[]))
        with pytest.raises(lance.InvalidInputError):
            facade.create_namespace(lance.CreateNamespaceRequest(id=[]))

    @operation("CreateNamespace")
    @requires(supports_creating)
    def test_a_namespace_is_created_found_and_dropped(self, facade: CatalogNamespace, new_namespace_path: Path) -> None:
        path = list(new_namespace_path)
        with pytest.raises(lance.NamespaceNotFoundError):
            facade.describe_namespace(lance.DescribeNamespaceRequest(id=path))
        with pytest.raises(lance.NamespaceNotFoundError):
            facade.namespace_exists(lance.NamespaceExistsRequest(id=path))
        facade.create_namespace(lance.CreateNamespaceRequest(id=path, properties={"team": "sales"}))
        facade.namespace_exists(lance.NamespaceExistsRequest(id=path))
        assert path[-1] in facade.list_namespaces(lance.ListNamespacesRequest(id=path[:-1])).namespaces
        facade.drop_namespace(lance.DropNamespaceRequest(id=path))
        with pytest.raises(lance.NamespaceNotFoundError):
            facade.drop_namespace(lance.DropNamespaceRequest(id=path))
        facade.drop_namespace(lance.DropNamespaceRequest(id=path, mode="Skip"))
        assert path[-1] not in facade.list_namespaces(lance.ListNamespacesRequest(id=path[:-1])).namespaces

    @operation("CreateNamespace")
    @requires(supports_creating)
    def test_create_modes_decide_about_a_namespace_that_exists(
        self, facade: CatalogNamespace, new_namespace_path: Path
    ) -> None:
        path = list(new_namespace_path)
        facade.create_namespace(lance.CreateNamespaceRequest(id=path))
        with pytest.raises(lance.NamespaceAlreadyExistsError):
            facade.create_namespace(lance.CreateNamespaceRequest(id=path, mode="CREATE"))
        for spelling in ("ExistOk", "EXIST_OK", "exist_ok"):
            facade.create_namespace(lance.CreateNamespaceRequest(id=path, mode=spelling))
        with pytest.raises(lance.InvalidInputError, match="exist_ok"):
            facade.create_namespace(lance.CreateNamespaceRequest(id=path, mode="sometimes"))
        facade.drop_namespace(lance.DropNamespaceRequest(id=path))

    @operation("CreateNamespace")
    @requires(supports_creating)
    def test_exist_ok_keeps_what_is_there_and_overwrite_replaces_it(
        self, facade: CatalogNamespace, new_namespace_path: Path
    ) -> None:
        def create(mode: str, **properties: str) -> dict[str, str]:
            request = lance.CreateNamespaceRequest(id=list(new_namespace_path), mode=mode, properties=properties)
            return facade.create_namespace(request).properties or {}

        create("Create", team="first")
        before = facade.describe_namespace(lance.DescribeNamespaceRequest(id=list(new_namespace_path))).properties or {}
        assert create("exist_ok", team="second").get("team") == before.get("team")
        after = create("OVERWRITE", crew="third")
        assert "team" not in after
        assert after.get("crew") == ("third" if "team" in before else None)
        facade.drop_namespace(lance.DropNamespaceRequest(id=list(new_namespace_path)))

    @operation("DropNamespace")
    @requires(supports_creating)
    def test_drop_modes_and_behaviors_are_taken_in_any_case(self, facade: CatalogNamespace, new_namespace_path: Path) -> None:
        path = list(new_namespace_path)
        for mode, behavior in (("FAIL", "RESTRICT"), ("fail", "restrict"), ("Skip", "Restrict"), (None, None)):
            facade.create_namespace(lance.CreateNamespaceRequest(id=path))
            facade.drop_namespace(lance.DropNamespaceRequest(id=path, mode=mode, behavior=behavior))
        for mode in ("SKIP", "skip", "Skip"):
            facade.drop_namespace(lance.DropNamespaceRequest(id=path, mode=mode))
        with pytest.raises(lance.InvalidInputError, match="skip"):
            facade.drop_namespace(lance.DropNamespaceRequest(id=path, mode="sometimes"))
        with pytest.raises(lance.InvalidInputError, match="cascade"):
            facade.drop_namespace(lance.DropNamespaceRequest(id=path, behavior="sometimes"))

    @operation("CreateNamespace")
    @requires(supports_creating)
    def test_every_namespace_name_is_kept_or_refused(self, facade: CatalogNamespace, new_namespace_path: Path) -> None:
        parents, rules = list(new_namespace_path[:-1]), self.connector.capabilities.name_rules(namespace=True)
        for odd in ODD_NAMES:
            name = rules.canonicalize(unique_name("n") + odd)
            if not rules.allows(name):
                with pytest.raises(lance.InvalidInputError):
                    facade.create_namespace(lance.CreateNamespaceRequest(id=[*parents, name]))
                continue
            try:
                facade.create_namespace(lance.CreateNamespaceRequest(id=[*parents, name]))
            except lance.InvalidInputError:
                if self.has_complete_name_rules:
                    raise
                continue
            facade.describe_namespace(lance.DescribeNamespaceRequest(id=[*parents, name]))
            assert facade.list_tables(lance.ListTablesRequest(id=[*parents, name])).tables == []
            assert name in facade.list_namespaces(lance.ListNamespacesRequest(id=parents)).namespaces, (
                f"{name!r} became another"
            )
            facade.drop_namespace(lance.DropNamespaceRequest(id=[*parents, name]))

    @operation("DropNamespace")
    @requires(lambda c: supports_creating(c) and supports_writes(c))
    def test_what_is_not_empty_is_neither_dropped_nor_overwritten(
        self, facade: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        table = self.declare_new_table(catalog, namespace, location)
        with pytest.raises(lance.NamespaceNotEmptyError):
            facade.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="Restrict"))
        if len(namespace) in self.connector.capabilities.creates_namespaces_at:
            with pytest.raises(lance.NamespaceNotEmptyError):
                facade.create_namespace(lance.CreateNamespaceRequest(id=list(namespace), mode="Overwrite"))
        facade.table_exists(lance.TableExistsRequest(id=list(table.path)))

    @operation("DropNamespace")
    @requires(lambda c: supports_creating(c) and supports_writes(c) and c.connector.capabilities.cascade)
    def test_cascade_removes_the_declarations_inside(
        self, facade: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        self.declare_new_table(catalog, namespace, location)
        facade.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="CASCADE"))
        with pytest.raises(lance.NamespaceNotFoundError):
            facade.namespace_exists(lance.NamespaceExistsRequest(id=list(namespace)))

    @operation("DropNamespace")
    @requires(lambda c: supports_creating(c) and not c.connector.capabilities.cascade)
    def test_cascade_is_unsupported(self, facade: CatalogNamespace, namespace: Path) -> None:
        with pytest.raises(lance.UnsupportedOperationError):
            facade.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="Cascade"))
        facade.namespace_exists(lance.NamespaceExistsRequest(id=list(namespace)))

    @operation("CreateNamespace")
    @requires(lambda c: max(c.connector.capabilities.creates_namespaces_at, default=0) > 1)
    def test_a_namespace_needs_its_parent(self, facade: CatalogNamespace, namespace: Path) -> None:
        depth = max(self.connector.capabilities.creates_namespaces_at)
        orphan = [*namespace[: depth - 2], unique_name("missing"), unique_name("made")]
        with pytest.raises(lance.NamespaceNotFoundError):
            facade.create_namespace(lance.CreateNamespaceRequest(id=orphan))

    @operation("ListNamespaces")
    @requires(supports_creating)
    def test_pages_of_namespaces_lose_nothing_while_others_come_and_go(
        self, facade: CatalogNamespace, new_namespace_path: Path
    ) -> None:
        parents, stem = list(new_namespace_path[:-1]), new_namespace_path[-1]
        names = [f"{stem}_{letter}" for letter in "acegi"]
        for name in names:
            facade.create_namespace(lance.CreateNamespaceRequest(id=[*parents, name]))

        def page(token: str | None) -> tuple[list[str], str | None]:
            response = facade.list_namespaces(lance.ListNamespacesRequest(id=parents, limit=2, page_token=token))
            return response.namespaces, response.page_token

        def change() -> None:
            facade.drop_namespace(lance.DropNamespaceRequest(id=[*parents, names[0]]))
            facade.create_namespace(lance.CreateNamespaceRequest(id=[*parents, f"{stem}_a2"]))

        names_seen = collect_pages(page, limit=2, after=names[1], change=change)
        assert [name for name in names_seen if name.startswith(stem)] == names
        for wrong in ({"page_token": "never returned"}, {"limit": 0}, {"limit": -1}):
            with pytest.raises(lance.InvalidInputError):
                facade.list_namespaces(DictRequest(id=parents, **wrong))  # type: ignore[arg-type]
        for name in [*names[1:], f"{stem}_a2"]:
            facade.drop_namespace(lance.DropNamespaceRequest(id=[*parents, name]))
