"""Tests of the Lance namespace interface: declare, register, list, describe, exists and deregister of tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import lance_namespace as lance
import pytest

from federator.connector import Catalog, TableNotFound
from federator.lance.facade import CatalogNamespace
from federator.model import Path, canonical_location, is_location, path_key
from federator.testing.contract.base import (
    MARKER,
    ODD_NAMES,
    Contract,
    DictRequest,
    Location,
    collect_pages,
    operation,
    requires,
    supports_nesting,
    supports_writes,
    unique_name,
)


class TableContract(Contract):
    default_operation = "DescribeTable"

    @operation("DeclareTable")
    @requires(supports_writes)
    def test_a_table_is_declared_described_and_deregistered(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = unique_name("t")
        path, table_location = [*namespace, name], location(name)
        declared = facade.declare_table(lance.DeclareTableRequest(id=path, location=table_location))
        assert declared.location is not None
        assert canonical_location(str(declared.location)) == canonical_location(table_location)
        described = facade.describe_table(lance.DescribeTableRequest(id=path, with_table_uri=True))
        assert described.location == declared.location
        assert described.table_uri is not None
        assert canonical_location(described.table_uri) == canonical_location(table_location)
        assert described.storage_options == declared.storage_options
        assert (described.version, described.var_schema, described.stats, described.is_only_declared) == (None,) * 4
        facade.table_exists(lance.TableExistsRequest(id=path))
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [name]
        deregistered = facade.deregister_table(lance.DeregisterTableRequest(id=path))
        assert (deregistered.id, deregistered.location) == (path, declared.location)
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == []
        facade.declare_table(lance.DeclareTableRequest(id=path, location=table_location))
        facade.deregister_table(lance.DeregisterTableRequest(id=path))

    @operation("DeclareTable")
    @requires(supports_writes)
    def test_a_declared_table_exists(self, facade: CatalogNamespace, namespace: Path, location: Location) -> None:
        name = unique_name("t")
        path, table_location = [*namespace, name], location(name)
        facade.declare_table(lance.DeclareTableRequest(id=path, location=table_location))
        with pytest.raises(lance.TableAlreadyExistsError):
            facade.declare_table(lance.DeclareTableRequest(id=path, location=table_location))
        with pytest.raises(lance.TableAlreadyExistsError):
            facade.register_table(lance.RegisterTableRequest(id=path, location=table_location))
        facade.deregister_table(lance.DeregisterTableRequest(id=path))

    @operation("DeclareTable")
    @requires(supports_writes)
    def test_a_table_without_a_location_gets_one(self, facade: CatalogNamespace, catalog: Catalog, namespace: Path) -> None:
        name = unique_name("t")
        declared = facade.declare_table(lance.DeclareTableRequest(id=[*namespace, name]))
        if catalog.default_location((*namespace, name)) is None:
            # The catalog chooses it. No text says how.
            assert is_location(declared.location), declared.location
        else:
            # With a random suffix, if the storage cannot be listed.
            assert re.search(rf"/{name}(-[0-9a-f]{{8}})?\.lance\Z", str(declared.location)), declared.location
        facade.deregister_table(lance.DeregisterTableRequest(id=[*namespace, name]))

    def test_a_missing_table_is_not_found(self, facade: CatalogNamespace, namespace: Path) -> None:
        path = [*namespace, unique_name("t")]
        with pytest.raises(lance.TableNotFoundError):
            facade.describe_table(lance.DescribeTableRequest(id=path))
        with pytest.raises(lance.TableNotFoundError):
            facade.table_exists(lance.TableExistsRequest(id=path))
        with pytest.raises(lance.TableNotFoundError):
            facade.deregister_table(lance.DeregisterTableRequest(id=path))

    @requires(supports_nesting)
    def test_a_missing_namespace_is_not_found(self, facade: CatalogNamespace, namespace: Path, location: Location) -> None:
        missing, name = [*namespace[:-1], unique_name("missing")], unique_name("t")
        with pytest.raises(lance.NamespaceNotFoundError):
            facade.list_tables(lance.ListTablesRequest(id=missing))
        if self.connector.capabilities.writes_tables:
            with pytest.raises(lance.NamespaceNotFoundError):
                facade.declare_table(lance.DeclareTableRequest(id=[*missing, name], location=location(name)))
        # Some catalogs cannot tell the missing namespace from the missing table.
        with pytest.raises((lance.NamespaceNotFoundError, lance.TableNotFoundError)):
            facade.describe_table(lance.DescribeTableRequest(id=[*missing, name]))

    def test_an_identifier_of_another_depth_is_invalid(self, facade: CatalogNamespace) -> None:
        capabilities = self.connector.capabilities
        deep = ["level"] * (capabilities.max_depth + 1)
        for wrong in ([], ["level"] * capabilities.min_depth, [*deep, "t"], [*deep[:-1], ""]):
            with pytest.raises(lance.InvalidInputError):
                facade.describe_table(lance.DescribeTableRequest(id=wrong))
        with pytest.raises(lance.InvalidInputError):
            facade.list_tables(lance.ListTablesRequest(id=deep))

    @operation("requests")
    def test_a_name_that_is_no_text_is_invalid(self, facade: CatalogNamespace, namespace: Path) -> None:
        table: Any = DictRequest(id=[*namespace, "half\ud800"])
        for call in (facade.describe_table, facade.table_exists, facade.declare_table, facade.deregister_table):
            with pytest.raises(lance.InvalidInputError):
                call(table)

    @operation("DropTable")
    def test_what_needs_the_data_is_unsupported(self, facade: CatalogNamespace, namespace: Path) -> None:
        path = [*namespace, "t"]
        with pytest.raises(lance.UnsupportedOperationError):
            facade.describe_table(lance.DescribeTableRequest(id=path, load_detailed_metadata=True))
        with pytest.raises(lance.UnsupportedOperationError):
            facade.drop_table(lance.DropTableRequest(id=path))

    @operation("requests")
    def test_a_mapping_is_accepted_instead_of_the_model(self, facade: CatalogNamespace, namespace: Path) -> None:
        assert facade.list_tables(DictRequest(id=list(namespace), page_token=None)).tables == []  # type: ignore[arg-type]
        facade.list_namespaces(DictRequest(id=[], limit=10))  # type: ignore[arg-type]
        for wrong in ({"limit": 0}, {"limit": "many"}, {"id": "text"}):
            with pytest.raises(lance.InvalidInputError):
                facade.list_tables(DictRequest({"id": list(namespace), **wrong}))  # type: ignore[arg-type]
        with pytest.raises(lance.InvalidInputError):
            facade.list_tables(None)  # type: ignore[arg-type]

    @operation("requests")
    @requires(supports_writes)
    def test_a_table_lives_by_the_mappings_that_lancedb_sends(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = unique_name("t")
        path: Any = DictRequest(id=[*namespace, name])
        declared = facade.declare_table(DictRequest(path, location=location(name)))  # type: ignore[arg-type]
        assert facade.describe_table(path).location == declared.location
        facade.table_exists(path)
        assert facade.list_tables(DictRequest(id=list(namespace), limit=10)).tables == [name]  # type: ignore[arg-type]
        assert facade.deregister_table(path).location == declared.location
        with pytest.raises(lance.TableNotFoundError):
            facade.describe_table(path)

    @operation("RegisterTable")
    @requires(supports_writes)
    def test_a_table_is_registered_and_registered_again(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = unique_name("t")
        path, table_location = [*namespace, name], location(name)
        registered = facade.register_table(lance.RegisterTableRequest(id=path, location=table_location))
        assert canonical_location(str(registered.location)) == canonical_location(table_location)
        assert facade.describe_table(lance.DescribeTableRequest(id=path)).location == registered.location
        for mode in ("Create", "CREATE", None):
            with pytest.raises(lance.TableAlreadyExistsError):
                facade.register_table(lance.RegisterTableRequest(id=path, location=table_location, mode=mode))
        with pytest.raises(lance.InvalidInputError, match="overwrite"):
            facade.register_table(lance.RegisterTableRequest(id=path, location=table_location, mode="sometimes"))
        if not self.connector.capabilities.can_alter:
            with pytest.raises(lance.UnsupportedOperationError):
                facade.register_table(lance.RegisterTableRequest(id=path, location=table_location, mode="Overwrite"))
            return
        moved = location(f"{name}_moved")
        for mode in ("Overwrite", "OVERWRITE"):
            registered = facade.register_table(lance.RegisterTableRequest(id=path, location=moved, mode=mode))
            assert canonical_location(str(registered.location)) == canonical_location(moved)
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [name]

    @operation("ListAllTables")
    @requires(supports_writes)
    def test_all_tables_are_listed_by_their_whole_path(
        self, facade: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        expected = sorted(path_key(self.declare_new_table(catalog, namespace, location).path) for _ in range(3))
        assert facade.list_all_tables(lance.ListTablesRequest(id=list(namespace))).tables == expected
        first = facade.list_all_tables(lance.ListTablesRequest(id=list(namespace), limit=2))
        rest = lance.ListTablesRequest(id=list(namespace), limit=2, page_token=first.page_token)
        assert [*first.tables, *facade.list_all_tables(rest).tables] == expected
        if namespace:
            assert set(expected) <= set(facade.list_all_tables(lance.ListTablesRequest(id=list(namespace[:-1]))).tables)
            with pytest.raises(lance.NamespaceNotFoundError):
                facade.list_all_tables(lance.ListTablesRequest(id=[*namespace[:-1], unique_name("missing")]))

    @operation("RenameTable")
    @requires(supports_writes)
    def test_a_rename_keeps_the_declaration_or_is_unsupported(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        old, new = unique_name("t"), unique_name("t")
        declared = facade.declare_table(lance.DeclareTableRequest(id=[*namespace, old], location=location(old)))
        request = lance.RenameTableRequest(id=[*namespace, old], new_table_name=new)
        try:
            facade.rename_table(request)
        except lance.UnsupportedOperationError as error:
            self.record_unsupported(error)
            new = old
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == [new]
        described = facade.describe_table(lance.DescribeTableRequest(id=[*namespace, new]))
        assert (described.location, described.properties) == (declared.location, declared.properties), (
            "a rename changes the name only"
        )
        if new == old:
            return
        with pytest.raises(lance.TableNotFoundError):
            facade.rename_table(request)
        facade.declare_table(lance.DeclareTableRequest(id=[*namespace, old], location=location(f"{old}_2")))
        with pytest.raises(lance.TableAlreadyExistsError):
            facade.rename_table(request)
        with pytest.raises(lance.InvalidInputError):
            facade.rename_table(lance.RenameTableRequest(id=[*namespace, old], new_table_name=""))
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == sorted([old, new])

    @operation("DeclareTable")
    @requires(lambda c: supports_writes(c) and c.connector.capabilities.names.folds_case)
    def test_names_are_one_in_any_case(self, facade: CatalogNamespace, namespace: Path, location: Location) -> None:
        name = unique_name("t")
        upper_case_path = [*namespace[:-1], namespace[-1].upper(), name.upper()]
        facade.declare_table(lance.DeclareTableRequest(id=upper_case_path, location=location(name)))
        assert facade.list_tables(lance.ListTablesRequest(id=upper_case_path[:-1])).tables == [name]
        with pytest.raises(lance.TableAlreadyExistsError):
            facade.declare_table(lance.DeclareTableRequest(id=[*namespace, name], location=location(name)))
        assert facade.describe_table(lance.DescribeTableRequest(id=[*namespace, name])).location
        facade.deregister_table(lance.DeregisterTableRequest(id=upper_case_path))

    @operation("ListTables")
    @requires(supports_writes)
    def test_pages_of_tables_lose_nothing_while_others_come_and_go(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        stem = unique_name("t")
        names = [f"{stem}_{letter}" for letter in "acegi"]

        def declare(name: str) -> None:
            facade.declare_table(lance.DeclareTableRequest(id=[*namespace, name], location=location(name)))

        def page(token: str | None) -> tuple[list[str], str | None]:
            response = facade.list_tables(lance.ListTablesRequest(id=list(namespace), limit=2, page_token=token))
            return response.tables, response.page_token

        def change() -> None:
            facade.deregister_table(lance.DeregisterTableRequest(id=[*namespace, names[0]]))
            declare(f"{stem}_a2")

        for name in names:
            declare(name)
        assert collect_pages(page, limit=2, after=names[1], change=change) == names
        with pytest.raises(lance.InvalidInputError):
            facade.list_tables(lance.ListTablesRequest(id=list(namespace), page_token="never returned"))  # noqa: S106

    @operation("DeclareTable")
    @requires(supports_writes)
    def test_every_name_is_kept_or_refused(
        self, facade: CatalogNamespace, catalog: Catalog, namespace: Path, location: Location
    ) -> None:
        rules = self.connector.capabilities.names
        declared_names: list[str] = []
        for number, name in enumerate(ODD_NAMES):
            stored = rules.canonicalize(name)
            request = lance.DeclareTableRequest(id=[*namespace, name], location=self.odd_location(location, number, name))
            if not rules.allows(stored):
                with pytest.raises(lance.InvalidInputError):
                    facade.declare_table(request)
                continue
            try:
                facade.declare_table(request)
            except lance.InvalidInputError:
                if self.has_complete_name_rules:
                    raise
                continue
            assert catalog.describe_table((*namespace, stored)).path == (*namespace, stored)
            declared_names.append(stored)
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == sorted(declared_names), (
            "a name became another"
        )
        for name in declared_names:
            facade.deregister_table(lance.DeregisterTableRequest(id=[*namespace, name]))
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == []

    @operation("DeclareTable")
    @requires(lambda c: supports_writes(c) and c.connector.capabilities.keeps_properties)
    def test_properties_come_back_and_marks_stay_out_of_storage_options(
        self, facade: CatalogNamespace, namespace: Path, location: Location
    ) -> None:
        name = unique_name("t")
        path = [*namespace, name]
        properties = {**MARKER, "team": "sales", "table_type": "LANCE", "comment ü": "🙂 'quoted' \"text\""}
        facade.declare_table(lance.DeclareTableRequest(id=path, location=location(name), properties=properties))
        described = facade.describe_table(lance.DescribeTableRequest(id=path))
        assert described.properties is not None
        assert {**properties, "table_type": "lance"}.items() <= described.properties.items()
        assert described.storage_options is not None
        assert not any(key.startswith("federator.") for key in described.storage_options)
        assert described.storage_options["team"] == "sales"
        assert "table_type" not in described.storage_options
        with pytest.raises(lance.InvalidInputError):
            facade.declare_table(
                lance.DeclareTableRequest(id=[*namespace, unique_name("t")], properties={"table_type": "iceberg"})
            )

    @operation("ListTables")
    @requires(lambda c: c.make_managed is not None)
    def test_a_managed_table_is_never_listed(self, facade: CatalogNamespace, catalog: Catalog, namespace: Path) -> None:
        self._check_not_listed(self.make_managed, facade, catalog, namespace)

    @operation("ListTables")
    @requires(lambda c: c.make_foreign is not None)
    def test_a_foreign_object_is_never_listed(self, facade: CatalogNamespace, catalog: Catalog, namespace: Path) -> None:
        self._check_not_listed(self.make_foreign, facade, catalog, namespace)

    def _check_not_listed(
        self, make: Callable[[Path, str], object] | None, facade: CatalogNamespace, catalog: Catalog, namespace: Path
    ) -> None:
        name = unique_name("x")
        assert make is not None
        make(namespace, name)
        path = [*namespace, name]
        assert facade.list_tables(lance.ListTablesRequest(id=list(namespace))).tables == []
        with pytest.raises(lance.InvalidInputError):
            facade.describe_table(lance.DescribeTableRequest(id=path))
        with pytest.raises(lance.InvalidInputError):
            facade.deregister_table(lance.DeregisterTableRequest(id=path))
        observation = catalog.observe(tuple(path))
        assert observation.record is None
        assert observation.foreign
        if self.connector.capabilities.writes_tables:
            with pytest.raises(lance.TableAlreadyExistsError):
                facade.declare_table(lance.DeclareTableRequest(id=path))
        if self.connector.capabilities.cascade:
            assert name in catalog.list_foreign_objects(namespace)
        if self.connector.capabilities.cascade and self.connector.capabilities.creates_namespaces_at and namespace:
            with pytest.raises(lance.NamespaceNotEmptyError):
                facade.drop_namespace(lance.DropNamespaceRequest(id=list(namespace), behavior="Cascade"))
            assert catalog.observe(tuple(path)).foreign
        with pytest.raises(TableNotFound):
            catalog.describe_table((*namespace, unique_name("t")))
