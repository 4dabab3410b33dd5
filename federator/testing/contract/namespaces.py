"""The official interface, namespaces: create, list, describe, exists and drop, with their modes and error codes."""

from __future__ import annotations

import lance_namespace as lance
import pytest

from federator.connector import Catalog
from federator.connector.namespace import CatalogNamespace
from federator.model import Path
from federator.testing.contract.base import ODD_NAMES, Contract, DictRequest, Location, creates, fresh, needs, walk, writes


class NamespaceFace(Contract):
    """The official interface: the operations of the Lance spec with their error codes."""

    def test_the_root_always_exists_and_stays(self, face: CatalogNamespace) -> None:
        face.namespace_exists(lance.NamespaceExistsRequest(id=[]))
        face.describe_namespace(lance.DescribeNamespaceRequest())
        with pytest.raises(lance.InvalidInputError):
            face.drop_namespace(lance.DropNamespaceRequest(id=[]))
        with pytest.raises(lance.InvalidInputError):
            face.create_namespace(lance.CreateNamespaceRequest(id=[]))

    @needs(creates)
    def test_a_namespace_is_created_found_and_dropped(self, face: CatalogNamespace, sibling: Path) -> None:
        path = list(sibling)
        with pytest.raises(lance.NamespaceNotFoundError):
            face.describe_namespace(lance.DescribeNamespaceRequest(id=path))
        with pytest.raises(lance.NamespaceNotFoundError):
            face.namespace_exists(lance.NamespaceExistsRequest(id=path))
        face.create_namespace(lance.CreateNamespaceRequest(id=path, properties={"team": "sales"}))
        face.namespace_exists(lance.NamespaceExistsRequest(id=path))
        assert path[-1] in face.list_namespaces(lance.ListNamespacesRequest(id=path[:-1])).namespaces
        face.drop_namespace(lance.DropNamespaceRequest(id=path))
        with pytest.raises(lance.NamespaceNotFoundError):
            face.drop_namespace(lance.DropNamespaceRequest(id=path))
        face.drop_namespace(lance.DropNamespaceRequest(id=path, mode="Skip"))
        assert path[-1] not in face.list_namespaces(lance.ListNamespacesRequest(id=path[:-1])).namespaces

    @needs(creates)
    def test_create_modes_decide_about_a_namespace_that_exists(self, face: CatalogNamespace, sibling: Path) -> None:
        path = list(sibling)
        face.create_namespace(lance.CreateNamespaceRequest(id=path))
        with pytest.raises(lance.NamespaceAlreadyExistsError):
            face.create_namespace(lance.CreateNamespaceRequest(id=path, mode="CREATE"))
        for spelling in ("ExistOk", "EXIST_OK", "exist_ok"):
            face.create_namespace(lance.CreateNamespaceRequest(id=path, mode=spelling))
        with pytest.raises(lance.InvalidInputError, match="exist_ok"):
            face.create_namespace(lance.CreateNamespaceRequest(id=path, mode="sometimes"))
        face.drop_namespace(lance.DropNamespaceRequest(id=path))

    @needs(creates)
    def test_exist_ok_keeps_what_is_there_and_overwrite_replaces_it(self, face: CatalogNamespace, sibling: Path) -> None:
        def create(mode: str, **properties: str) -> dict[str, str]:
            request = lance.CreateNamespaceRequest(id=list(sibling), mode=mode, properties=properties)
            return face.create_namespace(request).properties or {}

        create("Create", team="first")
        before = face.describe_namespace(lance.DescribeNamespaceRequest(id=list(sibling))).properties or {}
        assert create("exist_ok", team="second").get("team") == before.get("team")
        after = create("OVERWRITE", crew="third")
        assert "team" not in after
        assert after.get("crew") == ("third" if "team" in before else None)
        face.drop_namespace(lance.DropNamespaceRequest(id=list(sibling)))

    @needs(creates)
    def test_drop_modes_and_behaviors_are_taken_in_any_case(self, face: CatalogNamespace, sibling: Path) -> None:
        path = list(sibling)
        for mode, behavior in (("FAIL", "RESTRICT"), ("fail", "restrict"), ("Skip", "Restrict"), (None, None)):
            face.create_namespace(lance.CreateNamespaceRequest(id=path))
            face.drop_namespace(lance.DropNamespaceRequest(id=path, mode=mode, behavior=behavior))
        for mode in ("SKIP", "skip", "Skip"):
            face.drop_namespace(lance.DropNamespaceRequest(id=path, mode=mode))
        with pytest.raises(lance.InvalidInputError, match="skip"):
            face.drop_namespace(lance.DropNamespaceRequest(id=path, mode="sometimes"))
        with pytest.raises(lance.InvalidInputError, match="cascade"):
            face.drop_namespace(lance.DropNamespaceRequest(id=path, behavior="sometimes"))

    @needs(creates)
    def test_every_namespace_name_is_kept_or_refused(self, face: CatalogNamespace, sibling: Path) -> None:
        above, rules = list(sibling[:-1]), self.connector.capabilities.rules(namespace=True)
        for odd in ODD_NAMES:
            name = rules.canonical(fresh("n") + odd)
            if not rules.allows(name):
                with pytest.raises(lance.InvalidInputError):
                    face.create_namespace(lance.CreateNamespaceRequest(id=[*above, name]))
                continue
            face.create_namespace(lance.CreateNamespaceRequest(id=[*above, name]))
            face.describe_namespace(lance.DescribeNamespaceRequest(id=[*above, name]))
            assert face.list_tables(lance.ListTablesRequest(id=[*above, name])).tables == []
            assert name in face.list_namespaces(lance.ListNamespacesRequest(id=above)).namespaces, f"{name!r} became another"
            face.drop_namespace(lance.DropNamespaceRequest(id=[*above, name]))

    @needs(lambda c: creates(c) and writes(c))
    def test_what_is_not_empty_is_neither_dropped_nor_overwritten(
        self, face: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        table = self.declared(catalog, namespace, location)
        with pytest.raises(lance.NamespaceNotEmptyError):
            face.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="Restrict"))
        if len(namespace) in self.connector.capabilities.creates_namespaces_at:
            with pytest.raises(lance.NamespaceNotEmptyError):
                face.create_namespace(lance.CreateNamespaceRequest(id=list(namespace), mode="Overwrite"))
        face.table_exists(lance.TableExistsRequest(id=list(table.path)))

    @needs(lambda c: creates(c) and writes(c) and c.connector.capabilities.cascade)
    def test_cascade_removes_the_declarations_inside(
        self, face: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        self.declared(catalog, namespace, location)
        face.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="CASCADE"))
        with pytest.raises(lance.NamespaceNotFoundError):
            face.namespace_exists(lance.NamespaceExistsRequest(id=list(namespace)))

    @needs(lambda c: creates(c) and not c.connector.capabilities.cascade)
    def test_cascade_is_unsupported(self, face: CatalogNamespace, namespace: Path) -> None:
        with pytest.raises(lance.UnsupportedOperationError):
            face.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="Cascade"))
        face.namespace_exists(lance.NamespaceExistsRequest(id=list(namespace)))

    @needs(lambda c: max(c.connector.capabilities.creates_namespaces_at, default=0) > 1)
    def test_a_namespace_needs_its_parent(self, face: CatalogNamespace, namespace: Path) -> None:
        depth = max(self.connector.capabilities.creates_namespaces_at)
        orphan = [*namespace[: depth - 2], fresh("missing"), fresh("made")]
        with pytest.raises(lance.NamespaceNotFoundError):
            face.create_namespace(lance.CreateNamespaceRequest(id=orphan))

    @needs(creates)
    def test_pages_of_namespaces_lose_nothing_while_others_come_and_go(self, face: CatalogNamespace, sibling: Path) -> None:
        above, stem = list(sibling[:-1]), sibling[-1]
        names = [f"{stem}_{letter}" for letter in "acegi"]
        for name in names:
            face.create_namespace(lance.CreateNamespaceRequest(id=[*above, name]))

        def page(token: str | None) -> tuple[list[str], str | None]:
            answer = face.list_namespaces(lance.ListNamespacesRequest(id=above, limit=2, page_token=token))
            return answer.namespaces, answer.page_token

        def come_and_go() -> None:
            face.drop_namespace(lance.DropNamespaceRequest(id=[*above, names[0]]))
            face.create_namespace(lance.CreateNamespaceRequest(id=[*above, f"{stem}_a2"]))

        seen = walk(page, limit=2, after=names[1], change=come_and_go)
        assert [name for name in seen if name.startswith(stem)] == names
        for wrong in ({"page_token": "never returned"}, {"limit": 0}, {"limit": -1}):
            with pytest.raises(lance.InvalidInputError):
                face.list_namespaces(DictRequest(id=above, **wrong))  # type: ignore[arg-type]
        for name in [*names[1:], f"{stem}_a2"]:
            face.drop_namespace(lance.DropNamespaceRequest(id=[*above, name]))
