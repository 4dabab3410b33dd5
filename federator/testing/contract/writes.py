"""The write face: what apply relies on when it declares, updates and deregisters."""

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
    MARK,
    SOURCE,
    Confirmation,
    Contract,
    Location,
    Refused,
    creates,
    fresh,
    needs,
    writes,
)


class WriteFace(Contract):
    def test_absence_is_observed(self, catalog: Catalog, namespace: Path) -> None:
        assert catalog.observe((*namespace, fresh("t"))).absent
        if namespace:
            assert catalog.observe((*namespace[:-1], fresh("missing"), "t")).absent

    @needs(creates)
    def test_a_namespace_is_returned_as_it_is_read_back(self, catalog: Catalog, sibling: Path) -> None:
        made = catalog.create_namespace(NamespaceRecord(SOURCE, sibling, {"team": "sales"}))
        assert made.path == sibling
        assert made.digest == catalog.describe_namespace(sibling).digest
        if self.connector.capabilities.keeps_properties:
            assert made.properties["team"] == "sales"
        catalog.drop_namespace(sibling)

    @needs(lambda c: creates(c) and bool(c.connector.capabilities.alters_namespaces_at))
    def test_a_namespaces_properties_change_in_place(self, catalog: Catalog, sibling: Path) -> None:
        made = catalog.create_namespace(NamespaceRecord(SOURCE, sibling, {"team": "sales", "old": "1"}))
        kept = {key: value for key, value in made.properties.items() if key != "old"}
        changed = catalog.update_namespace(made, replace(made, properties={**kept, "team": "ops", "new": "2"}))
        seen = catalog.describe_namespace(sibling)
        assert changed.digest == seen.digest
        assert (seen.properties["team"], seen.properties["new"], "old" in seen.properties) == ("ops", "2", False)
        assert (seen.location, seen.owner, seen.native_id) == (made.location, made.owner, made.native_id)
        with pytest.raises(ConcurrentModification):
            catalog.update_namespace(made, replace(made, properties={"team": "web"}))
        with pytest.raises(Unsupported):
            catalog.update_namespace(seen, replace(seen, location="s3://elsewhere/ns"))
        catalog.drop_namespace(sibling)
        with pytest.raises(NamespaceNotFound):
            catalog.update_namespace(seen, seen)

    @needs(lambda c: creates(c) and bool(c.connector.capabilities.alters_namespaces_at))
    def test_a_namespaces_doc_changes_in_place_or_nothing_does(self, catalog: Catalog, sibling: Path) -> None:
        made = catalog.create_namespace(NamespaceRecord(SOURCE, sibling, {"team": "sales"}))
        wanted = replace(made, properties={**made.properties, "team": "ops"}, doc="told")
        try:
            changed = catalog.update_namespace(made, wanted)
        except Unsupported:
            assert catalog.describe_namespace(sibling).digest == made.digest
        else:
            assert (changed.doc, changed.properties["team"]) == ("told", "ops")
        catalog.drop_namespace(sibling)

    @needs(lambda c: creates(c) and not c.connector.capabilities.alters_namespaces_at)
    def test_altering_a_namespace_is_unsupported(self, catalog: Catalog, sibling: Path) -> None:
        made = catalog.create_namespace(NamespaceRecord(SOURCE, sibling))
        with pytest.raises(Unsupported):
            catalog.update_namespace(made, replace(made, properties={"team": "ops"}))
        catalog.drop_namespace(sibling)

    @needs(writes)
    def test_a_declaration_is_returned_as_it_is_read_back(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declared(catalog, namespace, location, properties=dict(MARK))
        seen = catalog.observe(made.path).record
        assert seen is not None
        assert (seen.digest, seen.native_id, seen.source) == (made.digest, made.native_id, SOURCE)
        assert made.location is not None
        assert made.canonical == canonical_location(location(made.path[-1]))
        with pytest.raises(TableAlreadyExists):
            catalog.declare_table(made)

    @needs(writes)
    def test_a_declaration_goes_once(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declared(catalog, namespace, location)
        catalog.deregister_table(made)
        assert catalog.observe(made.path).absent
        with pytest.raises(TableNotFound):
            catalog.deregister_table(made)

    @needs(lambda c: writes(c) and c.connector.capabilities.can_alter)
    def test_an_update_changes_what_it_is_given(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declared(catalog, namespace, location, properties={**MARK, "team": "sales", "old": "1"})
        moved = location(f"{made.path[-1]}_moved")
        wanted = {key: value for key, value in made.properties.items() if key != "old"} | {"team": "ops", "new": "2"}
        updated = catalog.update_table(made, replace(made, location=moved, properties=wanted, doc="told"))
        seen = catalog.describe_table(made.path)
        assert updated.digest == seen.digest
        assert seen.canonical == canonical_location(moved)
        assert (seen.properties["team"], seen.properties["new"], "old" in seen.properties) == ("ops", "2", False)
        assert MARK.items() <= seen.properties.items()
        assert seen.doc == "told"
        assert seen.native_id == made.native_id

    @needs(lambda c: writes(c) and c.connector.capabilities.can_alter)
    def test_what_has_moved_is_not_written_over(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declared(catalog, namespace, location)
        updated = catalog.update_table(made, replace(made, properties={**made.properties, "team": "ops"}))
        with pytest.raises(ConcurrentModification):
            catalog.update_table(made, replace(made, properties={**made.properties, "team": "sales"}))
        with pytest.raises(ConcurrentModification):
            catalog.deregister_table(made)
        assert catalog.describe_table(made.path).digest == updated.digest
        catalog.deregister_table(updated)
        with pytest.raises(TableNotFound):
            catalog.update_table(updated, updated)

    @needs(writes)
    def test_a_removal_is_confirmed_once_and_last(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declared(catalog, namespace, location)
        self._refuses(catalog, made, lambda confirm: catalog.deregister_table(made, confirm=confirm))
        self._confirms(lambda confirm: catalog.deregister_table(made, confirm=confirm))
        assert catalog.observe(made.path).absent

    @needs(lambda c: writes(c) and c.connector.capabilities.can_alter)
    def test_an_update_is_confirmed_once_and_last(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declared(catalog, namespace, location)
        changed = replace(made, properties={**made.properties, "team": "ops"})
        self._refuses(catalog, made, lambda confirm: catalog.update_table(made, changed, confirm=confirm))
        self._confirms(lambda confirm: catalog.update_table(made, changed, confirm=confirm))
        assert catalog.describe_table(made.path).properties["team"] == "ops"
        never = Confirmation()
        with pytest.raises(ConcurrentModification):
            catalog.update_table(made, changed, confirm=never)
        with pytest.raises(ConcurrentModification):
            catalog.deregister_table(made, confirm=never)
        assert never.calls == 0

    @staticmethod
    def _refuses(catalog: Catalog, made: TableRecord, write: Callable[[Confirm], object]) -> None:
        refusing = Confirmation(refuses=True)
        with refusing.watching(), pytest.raises(Refused):
            write(refusing)
        assert (refusing.calls, refusing.requests) == (1, [])
        seen = catalog.describe_table(made.path)
        assert (seen.digest, seen.version) == (made.digest, made.version)

    def _confirms(self, write: Callable[[Confirm], object]) -> None:
        confirming = Confirmation()
        with confirming.watching():
            write(confirming)
        assert confirming.calls == 1
        if self.write_requests:
            # Nothing is read between: the first message is the write itself.
            first = confirming.requests[0]
            assert any(request in first for request in self.write_requests), first[:200]

    @needs(lambda c: writes(c) and not c.connector.capabilities.can_alter)
    def test_altering_is_unsupported(self, catalog: Catalog, namespace: Path, location: Location) -> None:
        made = self.declared(catalog, namespace, location)
        with pytest.raises(Unsupported):
            catalog.update_table(made, replace(made, properties={"team": "ops"}))
