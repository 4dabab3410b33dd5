"""Tests of the write interface: declare, update and deregister, as apply uses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from federator.connector import (
    Catalog,
    ConcurrentModification,
    Confirm,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.model import NamespaceRecord, Path, TableRecord, canonical_location
from federator.testing.contract.base import (
    MARKER,
    SOURCE,
    Confirmation,
    Contract,
    Location,
    Refused,
    operation,
    requires,
    supports_creating,
    supports_writes,
    unique_name,
)


class WriteContract(Contract):
    default_operation = "DeregisterTable"

    @operation("DescribeTable")
    def test_absence_is_observed(self, catalog: Catalog, namespace: Path) -> None:
        assert catalog.observe((*namespace, unique_name("t"))).is_absent
        if namespace:
            assert catalog.observe((*namespace[:-1], unique_name("missing"), "t")).is_absent

    @operation("CreateNamespace")
    @requires(supports_creating)
    def test_a_namespace_is_returned_as_it_is_read_back(self, catalog: Catalog, new_namespace_path: Path) -> None:
        created = catalog.create_namespace(NamespaceRecord(SOURCE, new_namespace_path, {"team": "sales"}))
        assert created.path == new_namespace_path
        assert created.digest == catalog.describe_namespace(new_namespace_path).digest
        if self.connector.capabilities.keeps_properties:
            assert created.properties["team"] == "sales"
        catalog.drop_namespace(new_namespace_path)

    @operation("altering a namespace")
    @requires(lambda c: supports_creating(c) and bool(c.connector.capabilities.alters_namespaces_at))
    def test_a_namespaces_properties_can_be_altered(self, catalog: Catalog, new_namespace_path: Path) -> None:
        created = catalog.create_namespace(NamespaceRecord(SOURCE, new_namespace_path, {"team": "sales", "old": "1"}))
        kept_properties = {key: value for key, value in created.properties.items() if key != "old"}
        changed = catalog.update_namespace(created, replace(created, properties={**kept_properties, "team": "ops", "new": "2"}))
        current = catalog.describe_namespace(new_namespace_path)
        assert changed.digest == current.digest
        assert (current.properties["team"], current.properties["new"], "old" in current.properties) == ("ops", "2", False)
        assert (current.location, current.owner, current.native_id) == (created.location, created.owner, created.native_id)
        with pytest.raises(ConcurrentModification):
            catalog.update_namespace(created, replace(created, properties={"team": "web"}))
        with pytest.raises(Unsupported):
            catalog.update_namespace(current, replace(current, location="s3://elsewhere/ns"))
        catalog.drop_namespace(new_namespace_path)
        with pytest.raises(NamespaceNotFound):
            catalog.update_namespace(current, current)

    @operation("altering a namespace")
    @requires(lambda c: supports_creating(c) and bool(c.connector.capabilities.alters_namespaces_at))
    def test_a_namespaces_doc_is_altered_or_nothing_changes(self, catalog: Catalog, new_namespace_path: Path) -> None:
        created = catalog.create_namespace(NamespaceRecord(SOURCE, new_namespace_path, {"team": "sales"}))
        desired = replace(created, properties={**created.properties, "team": "ops"}, doc="told")
        try:
            changed = catalog.update_namespace(created, desired)
        except Unsupported as error:
            self.record_unsupported(error)
            assert catalog.describe_namespace(new_namespace_path).digest == created.digest
        else:
            assert (changed.doc, changed.properties["team"]) == ("told", "ops")
        catalog.drop_namespace(new_namespace_path)

    @operation("altering a namespace")
    @requires(lambda c: supports_creating(c) and not c.connector.capabilities.alters_namespaces_at)
    def test_altering_a_namespace_is_unsupported(self, catalog: Catalog, new_namespace_path: Path) -> None:
        created = catalog.create_namespace(NamespaceRecord(SOURCE, new_namespace_path))
        with pytest.raises(Unsupported):
            catalog.update_namespace(created, replace(created, properties={"team": "ops"}))
        catalog.drop_namespace(new_namespace_path)

    @operation("DeclareTable")
    @requires(supports_writes)
    def test_a_declaration_is_returned_as_it_is_read_back(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        created = self.declare_new_table(catalog, namespace, location, properties=dict(MARKER))
        current = catalog.observe(created.path).record
        assert current is not None
        assert (current.digest, current.native_id, current.source) == (created.digest, created.native_id, SOURCE)
        assert created.location is not None
        assert created.canonical == canonical_location(location(created.path[-1]))
        with pytest.raises(TableAlreadyExists):
            catalog.declare_table(created)

    @requires(supports_writes)
    def test_a_declaration_goes_once(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        created = self.declare_new_table(catalog, namespace, location)
        catalog.deregister_table(created)
        assert catalog.observe(created.path).is_absent
        with pytest.raises(TableNotFound):
            catalog.deregister_table(created)

    @operation("altering a table")
    @requires(lambda c: supports_writes(c) and c.connector.capabilities.can_alter)
    def test_an_update_changes_what_it_is_given(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        created = self.declare_new_table(catalog, namespace, location, properties={**MARKER, "team": "sales", "old": "1"})
        moved = location(f"{created.path[-1]}_moved")
        desired = {key: value for key, value in created.properties.items() if key != "old"} | {"team": "ops", "new": "2"}
        updated = catalog.update_table(created, replace(created, location=moved, properties=desired, doc="told"))
        current = catalog.describe_table(created.path)
        assert updated.digest == current.digest
        assert current.canonical == canonical_location(moved)
        assert (current.properties["team"], current.properties["new"], "old" in current.properties) == ("ops", "2", False)
        assert MARKER.items() <= current.properties.items()
        assert current.doc == "told"
        assert current.native_id == created.native_id

    @operation("altering a table")
    @requires(lambda c: supports_writes(c) and c.connector.capabilities.can_alter)
    def test_what_has_moved_is_not_written_over(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        created = self.declare_new_table(catalog, namespace, location)
        updated = catalog.update_table(created, replace(created, properties={**created.properties, "team": "ops"}))
        with pytest.raises(ConcurrentModification):
            catalog.update_table(created, replace(created, properties={**created.properties, "team": "sales"}))
        with pytest.raises(ConcurrentModification):
            catalog.deregister_table(created)
        assert catalog.describe_table(created.path).digest == updated.digest
        catalog.deregister_table(updated)
        with pytest.raises(TableNotFound):
            catalog.update_table(updated, updated)

    @requires(supports_writes)
    def test_a_removal_is_confirmed_once_and_last(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        created = self.declare_new_table(catalog, namespace, location)
        self._refuses(catalog, created, lambda confirm: catalog.deregister_table(created, confirm=confirm))
        self._confirms(lambda confirm: catalog.deregister_table(created, confirm=confirm))
        assert catalog.observe(created.path).is_absent

    @operation("altering a table")
    @requires(lambda c: supports_writes(c) and c.connector.capabilities.can_alter)
    def test_an_update_is_confirmed_once_and_last(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        created = self.declare_new_table(catalog, namespace, location)
        changed = replace(created, properties={**created.properties, "team": "ops"})
        self._refuses(catalog, created, lambda confirm: catalog.update_table(created, changed, confirm=confirm))
        self._confirms(lambda confirm: catalog.update_table(created, changed, confirm=confirm))
        assert catalog.describe_table(created.path).properties["team"] == "ops"
        never = Confirmation()
        with pytest.raises(ConcurrentModification):
            catalog.update_table(created, changed, confirm=never)
        with pytest.raises(ConcurrentModification):
            catalog.deregister_table(created, confirm=never)
        assert never.calls == 0

    @staticmethod
    def _refuses(catalog: Catalog, created: TableRecord, write: Callable[[Confirm], object]) -> None:
        refusing = Confirmation(refuses=True)
        with refusing.watching(), pytest.raises(Refused):
            write(refusing)
        assert (refusing.calls, refusing.requests) == (1, [])
        current = catalog.describe_table(created.path)
        assert (current.digest, current.version) == (created.digest, created.version)

    def _confirms(self, write: Callable[[Confirm], object]) -> None:
        confirming = Confirmation()
        with confirming.watching():
            write(confirming)
        assert confirming.calls == 1
        if self.write_requests:
            # No read follows the confirmation: the first message is the write itself.
            first = confirming.requests[0]
            assert any(request in first for request in self.write_requests), first[:200]

    @operation("altering a table")
    @requires(lambda c: supports_writes(c) and not c.connector.capabilities.can_alter)
    def test_altering_is_unsupported(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        created = self.declare_new_table(catalog, namespace, location)
        with pytest.raises(Unsupported):
            catalog.update_table(created, replace(created, properties={"team": "ops"}))
