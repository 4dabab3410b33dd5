"""AlterNamespace and AlterTable of the general spec: set and remove properties in the owning catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from federator.api.lance.write_access import WriteTarget
from federator.connector import InvalidInput
from federator.lance.facade_mapping import namespace_from_properties, namespace_to_properties
from federator.model import Kind, NamespaceRecord, TableRecord, path_key
from federator.planning.ownership import PREFIX

if TYPE_CHECKING:
    from federator.lance.facade import CatalogNamespace

_COMMENT = "comment"


def change_namespace_properties(
    facade: CatalogNamespace, target: WriteTarget, updates: Mapping[str, str], removals: Collection[str]
) -> NamespaceRecord:
    """Change properties and return the new record. The properties are those of GetNamespace, including the description.

    Raise InvalidInput for properties of an ownership marker, Unsupported if the catalog cannot make the change.
    """
    _reject_marker_changes(updates, removals)
    with facade.borrow_catalog() as catalog:
        before = catalog.describe_namespace(target.source_path)
        desired = namespace_from_properties(
            before.source, before.path, _merge_properties(namespace_to_properties(before), updates, removals)
        )
        # The catalog's own id is not among the properties.
        return catalog.update_namespace(before, replace(desired, native_id=before.native_id))


def change_table_properties(
    facade: CatalogNamespace, target: WriteTarget, updates: Mapping[str, str], removals: Collection[str]
) -> TableRecord:
    """Change properties and return the new record.

    Raise InvalidInput for properties of an ownership marker and for an object that is not an external Lance table. Raise Unsupported
    if the catalog cannot change tables.
    """
    _reject_marker_changes(updates, removals)
    with facade.borrow_catalog() as catalog:
        before = catalog.describe_table(target.source_path)
        if before.kind is not Kind.TABLE:
            raise InvalidInput(f"{path_key(target.path)} is not an external Lance table")
        properties, doc = _merge_properties(before.properties, updates, removals), before.doc
        if doc is not None and before.properties.get(_COMMENT) == doc:
            # Hive stores the comment also as a property; keep both the same.
            doc = properties.get(_COMMENT)
        return catalog.update_table(before, replace(before, properties=properties, doc=doc))


def _merge_properties(properties: Mapping[str, str], updates: Mapping[str, str], removals: Collection[str]) -> dict[str, str]:
    return {key: text for key, text in properties.items() if key not in removals} | dict(updates)


def _reject_marker_changes(updates: Mapping[str, str], removals: Collection[str]) -> None:
    marker_keys = sorted(key for key in {*updates, *removals} if key.startswith(PREFIX))
    if marker_keys:
        raise InvalidInput(
            f"{', '.join(marker_keys)}: ownership markers cannot be changed here",
            hint="use federator ledger rebuild or federator mirror prune",
        )
