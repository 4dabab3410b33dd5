"""The official interface, tables: declare, register, list, describe, exists and deregister, with their error codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance_namespace as lance
import pytest

from federator.connector import Catalog, TableNotFound
from federator.connector.namespace import CatalogNamespace
from federator.model import Path, canonical_location, path_key
from federator.testing.contract.base import MARK, ODD_NAMES, Contract, DictRequest, Location, fresh, needs, nests, walk, writes


class TableFace(Contract):
    @needs(writes)
    def test_a_table_is_declared_described_and_deregistered(
        self, face: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = fresh("t")
        path, place = [*namespace, name], location(name)
        made = face.declare_table(lance.DeclareTableRequest(id=path, location=place))
        assert made.location is not None
        assert canonical_location(str(made.location)) == canonical_location(place)
        described = face.describe_table(lance.DescribeTableRequest(id=path, with_table_uri=True))
        assert described.location == made.location
        assert described.table_uri is not None
        assert canonical_location(described.table_uri) == canonical_location(place)
        assert described.storage_options == made.storage_options
        assert (described.version, described.var_schema, described.stats, described.is_only_declared) == (None,) * 4
        face.table_exists(lance.TableExistsRequest(id=path))
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [name]
        gone = face.deregister_table(lance.DeregisterTableRequest(id=path))
        assert (gone.id, gone.location) == (path, made.location)
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == []
        face.declare_table(lance.DeclareTableRequest(id=path, location=place))
        face.deregister_table(lance.DeregisterTableRequest(id=path))

    @needs(writes)
    def test_a_declared_table_exists(self, face: CatalogNamespace, namespace: Path, location: Location) -> None:
        name = fresh("t")
        path, place = [*namespace, name], location(name)
        face.declare_table(lance.DeclareTableRequest(id=path, location=place))
        with pytest.raises(lance.TableAlreadyExistsError):
            face.declare_table(lance.DeclareTableRequest(id=path, location=place))
        with pytest.raises(lance.TableAlreadyExistsError):
            face.register_table(lance.RegisterTableRequest(id=path, location=place))
        face.deregister_table(lance.DeregisterTableRequest(id=path))

    @needs(writes)
    def test_a_table_without_a_location_gets_one(self, face: CatalogNamespace, namespace: Path) -> None:
        name = fresh("t")
        made = face.declare_table(lance.DeclareTableRequest(id=[*namespace, name]))
        assert str(made.location).endswith(f"/{name}.lance")
        face.deregister_table(lance.DeregisterTableRequest(id=[*namespace, name]))

    def test_a_missing_table_is_not_found(self, face: CatalogNamespace, namespace: Path) -> None:
        path = [*namespace, fresh("t")]
        with pytest.raises(lance.TableNotFoundError):
            face.describe_table(lance.DescribeTableRequest(id=path))
        with pytest.raises(lance.TableNotFoundError):
            face.table_exists(lance.TableExistsRequest(id=path))
        with pytest.raises(lance.TableNotFoundError):
            face.deregister_table(lance.DeregisterTableRequest(id=path))

    @needs(nests)
    def test_a_missing_namespace_is_not_found(self, face: CatalogNamespace, namespace: Path, location: Location) -> None:
        missing, name = [*namespace[:-1], fresh("missing")], fresh("t")
        with pytest.raises(lance.NamespaceNotFoundError):
            face.list_tables(lance.ListTablesRequest(id=missing))
        if self.connector.capabilities.writes_tables:
            with pytest.raises(lance.NamespaceNotFoundError):
                face.declare_table(lance.DeclareTableRequest(id=[*missing, name], location=location(name)))
        # Some catalogs cannot tell the missing namespace from the missing table.
        with pytest.raises((lance.NamespaceNotFoundError, lance.TableNotFoundError)):
            face.describe_table(lance.DescribeTableRequest(id=[*missing, name]))

    def test_an_identifier_of_another_depth_is_invalid(self, face: CatalogNamespace) -> None:
        capabilities = self.connector.capabilities
        deep = ["level"] * (capabilities.max_depth + 1)
        for wrong in ([], ["level"] * capabilities.min_depth, [*deep, "t"], [*deep[:-1], ""]):
            with pytest.raises(lance.InvalidInputError):
                face.describe_table(lance.DescribeTableRequest(id=wrong))
        with pytest.raises(lance.InvalidInputError):
            face.list_tables(lance.ListTablesRequest(id=deep))

    def test_a_name_that_is_no_text_is_invalid(self, face: CatalogNamespace, namespace: Path) -> None:
        table: Any = DictRequest(id=[*namespace, "half\ud800"])
        for operation in (face.describe_table, face.table_exists, face.declare_table, face.deregister_table):
            with pytest.raises(lance.InvalidInputError):
                operation(table)

    def test_what_needs_the_data_is_unsupported(self, face: CatalogNamespace, namespace: Path) -> None:
        path = [*namespace, "t"]
        with pytest.raises(lance.UnsupportedOperationError):
            face.describe_table(lance.DescribeTableRequest(id=path, load_detailed_metadata=True))
        with pytest.raises(lance.UnsupportedOperationError):
            face.drop_table(lance.DropTableRequest(id=path))

    def test_a_mapping_is_taken_in_place_of_the_model(self, face: CatalogNamespace, namespace: Path) -> None:
        assert face.list_tables(DictRequest(id=list(namespace), page_token=None)).tables == []  # type: ignore[arg-type]
        face.list_namespaces(DictRequest(id=[], limit=10))  # type: ignore[arg-type]
        for wrong in ({"limit": 0}, {"limit": "many"}, {"id": "text"}):
            with pytest.raises(lance.InvalidInputError):
                face.list_tables(DictRequest({"id": list(namespace), **wrong}))  # type: ignore[arg-type]
        with pytest.raises(lance.InvalidInputError):
            face.list_tables(None)  # type: ignore[arg-type]

    @needs(writes)
    def test_a_table_lives_by_the_mappings_that_lancedb_sends(
        self, face: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = fresh("t")
        path: Any = DictRequest(id=[*namespace, name])
        made = face.declare_table(DictRequest(path, location=location(name)))  # type: ignore[arg-type]
        assert face.describe_table(path).location == made.location
        face.table_exists(path)
        assert face.list_tables(DictRequest(id=list(namespace), limit=10)).tables == [name]  # type: ignore[arg-type]
        assert face.deregister_table(path).location == made.location
        with pytest.raises(lance.TableNotFoundError):
            face.describe_table(path)

    @needs(writes)
    def test_a_table_is_registered_and_registered_anew(
        self, face: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = fresh("t")
        path, place = [*namespace, name], location(name)
        made = face.register_table(lance.RegisterTableRequest(id=path, location=place))
        assert canonical_location(str(made.location)) == canonical_location(place)
        assert face.describe_table(lance.DescribeTableRequest(id=path)).location == made.location
        for mode in ("Create", "CREATE", None):
            with pytest.raises(lance.TableAlreadyExistsError):
                face.register_table(lance.RegisterTableRequest(id=path, location=place, mode=mode))
        with pytest.raises(lance.InvalidInputError, match="overwrite"):
            face.register_table(lance.RegisterTableRequest(id=path, location=place, mode="sometimes"))
        if not self.connector.capabilities.can_alter:
            with pytest.raises(lance.UnsupportedOperationError):
                face.register_table(lance.RegisterTableRequest(id=path, location=place, mode="Overwrite"))
            return
        moved = location(f"{name}_moved")
        for mode in ("Overwrite", "OVERWRITE"):
            made = face.register_table(lance.RegisterTableRequest(id=path, location=moved, mode=mode))
            assert canonical_location(str(made.location)) == canonical_location(moved)
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [name]

    @needs(writes)
    def test_all_tables_are_listed_by_their_whole_path(
        self, face: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        wanted = sorted(path_key(self.declared(catalog, namespace, location).path) for _ in range(3))
        assert face.list_all_tables(lance.ListTablesRequest(id=list(namespace))).tables == wanted
        first = face.list_all_tables(lance.ListTablesRequest(id=list(namespace), limit=2))
        rest = lance.ListTablesRequest(id=list(namespace), limit=2, page_token=first.page_token)
        assert [*first.tables, *face.list_all_tables(rest).tables] == wanted
        if namespace:
            assert set(wanted) <= set(face.list_all_tables(lance.ListTablesRequest(id=list(namespace[:-1]))).tables)
            with pytest.raises(lance.NamespaceNotFoundError):
                face.list_all_tables(lance.ListTablesRequest(id=[*namespace[:-1], fresh("missing")]))

    @needs(writes)
    def test_a_rename_keeps_the_declaration_or_is_unsupported(
        self, face: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        old, new = fresh("t"), fresh("t")
        made = face.declare_table(lance.DeclareTableRequest(id=[*namespace, old], location=location(old)))
        asked = lance.RenameTableRequest(id=[*namespace, old], new_table_name=new)
        try:
            face.rename_table(asked)
        except lance.UnsupportedOperationError:
            new = old
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [new]
        kept = face.describe_table(lance.DescribeTableRequest(id=[*namespace, new]))
        assert (kept.location, kept.properties) == (made.location, made.properties), "a rename changes the name only"
        if new == old:
            return
        with pytest.raises(lance.TableNotFoundError):
            face.rename_table(asked)
        face.declare_table(lance.DeclareTableRequest(id=[*namespace, old], location=location(f"{old}_2")))
        with pytest.raises(lance.TableAlreadyExistsError):
            face.rename_table(asked)
        with pytest.raises(lance.InvalidInputError):
            face.rename_table(lance.RenameTableRequest(id=[*namespace, old], new_table_name=""))
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == sorted([old, new])

    @needs(lambda c: writes(c) and c.connector.capabilities.names.folds_case)
    def test_names_are_one_in_any_case(self, face: CatalogNamespace, namespace: Path, location: Location) -> None:
        name = fresh("t")
        shouted = [*namespace[:-1], namespace[-1].upper(), name.upper()]
        face.declare_table(lance.DeclareTableRequest(id=shouted, location=location(name)))
        assert face.list_tables(lance.ListTablesRequest(id=shouted[:-1])).tables == [name]
        with pytest.raises(lance.TableAlreadyExistsError):
            face.declare_table(lance.DeclareTableRequest(id=[*namespace, name], location=location(name)))
        assert face.describe_table(lance.DescribeTableRequest(id=[*namespace, name])).location
        face.deregister_table(lance.DeregisterTableRequest(id=shouted))

    @needs(writes)
    def test_pages_of_tables_lose_nothing_while_others_come_and_go(
        self, face: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        stem = fresh("t")
        names = [f"{stem}_{letter}" for letter in "acegi"]

        def declare(name: str) -> None:
            face.declare_table(lance.DeclareTableRequest(id=[*namespace, name], location=location(name)))

        def page(token: str | None) -> tuple[list[str], str | None]:
            answer = face.list_tables(lance.ListTablesRequest(id=list(namespace), limit=2, page_token=token))
            return answer.tables, answer.page_token

        def come_and_go() -> None:
            face.deregister_table(lance.DeregisterTableRequest(id=[*namespace, names[0]]))
            declare(f"{stem}_a2")

        for name in names:
            declare(name)
        assert walk(page, limit=2, after=names[1], change=come_and_go) == names
        with pytest.raises(lance.InvalidInputError):
            face.list_tables(lance.ListTablesRequest(id=list(namespace), page_token="never returned"))  # noqa: S106

    @needs(writes)
    def test_every_name_is_kept_or_refused(
        self, face: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        rules = self.connector.capabilities.names
        kept: list[str] = []
        for number, name in enumerate(ODD_NAMES):
            stored = rules.canonical(name)
            wanted = lance.DeclareTableRequest(id=[*namespace, name], location=self.odd(location, number, name))
            if not rules.allows(stored):
                with pytest.raises(lance.InvalidInputError):
                    face.declare_table(wanted)
                continue
            face.declare_table(wanted)
            assert catalog.describe_table((*namespace, stored)).path == (*namespace, stored)
            kept.append(stored)
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == sorted(kept), "a name became another"
        for name in kept:
            face.deregister_table(lance.DeregisterTableRequest(id=[*namespace, name]))
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == []

    @needs(lambda c: writes(c) and c.connector.capabilities.keeps_properties)
    def test_properties_come_back_and_marks_stay_out_of_storage_options(
        self, face: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = fresh("t")
        path = [*namespace, name]
        given = {**MARK, "team": "sales", "table_type": "LANCE", "comment ü": "🙂 'quoted' \"text\""}
        face.declare_table(lance.DeclareTableRequest(id=path, location=location(name), properties=given))
        described = face.describe_table(lance.DescribeTableRequest(id=path))
        wanted = {key: value for key, value in given.items() if key != "table_type"}
        assert described.properties is not None
        assert wanted.items() <= described.properties.items()
        assert "table_type" not in described.properties
        assert described.storage_options is not None
        assert not any(key.startswith("federator.") for key in described.storage_options)
        assert described.storage_options["team"] == "sales"
        with pytest.raises(lance.InvalidInputError):
            face.declare_table(lance.DeclareTableRequest(id=[*namespace, fresh("t")], properties={"table_type": "iceberg"}))

    @needs(lambda c: c.make_managed is not None)
    def test_a_managed_table_is_never_listed(self, face: CatalogNamespace, catalog: Catalog, namespace: Path) -> None:
        self._is_no_lance_table(self.make_managed, face, catalog, namespace)

    @needs(lambda c: c.make_foreign is not None)
    def test_a_foreign_object_is_never_listed(self, face: CatalogNamespace, catalog: Catalog, namespace: Path) -> None:
        self._is_no_lance_table(self.make_foreign, face, catalog, namespace)

    def _is_no_lance_table(
        self, make: Callable[[Path, str], object] | None, face: CatalogNamespace, catalog: Catalog, namespace: Path
    ) -> None:
        name = fresh("x")
        assert make is not None
        make(namespace, name)
        path = [*namespace, name]
        assert face.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == []
        with pytest.raises(lance.InvalidInputError):
            face.describe_table(lance.DescribeTableRequest(id=path))
        with pytest.raises(lance.InvalidInputError):
            face.deregister_table(lance.DeregisterTableRequest(id=path))
        seen = catalog.observe(tuple(path))
        assert seen.record is None
        assert seen.foreign
        if self.connector.capabilities.writes_tables:
            with pytest.raises(lance.TableAlreadyExistsError):
                face.declare_table(lance.DeclareTableRequest(id=path))
        if self.connector.capabilities.cascade and self.connector.capabilities.creates_namespaces_at and namespace:
            with pytest.raises(lance.NamespaceNotEmptyError):
                face.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="Cascade"))
            assert catalog.observe(tuple(path)).foreign
        with pytest.raises(TableNotFound):
            catalog.describe_table((*namespace, fresh("t")))
