"""AlterNamespace and AlterTable of the general spec: properties set and removed, through the catalog that owns the object."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from federator.api.lance.writes import Target
from federator.connector import InvalidInput
from federator.connector.answers import namespace_properties, namespace_record
from federator.model import Kind, NamespaceRecord, TableRecord, path_key
from federator.planning.marks import PREFIX

if TYPE_CHECKING:
    from federator.connector.namespace import CatalogNamespace

_COMMENT = "comment"


def altered_namespace(
    face: CatalogNamespace, target: Target, updates: Mapping[str, str], removals: Collection[str]
) -> NamespaceRecord:
    """The namespace as it then is. Properties are those that GetNamespace shows, its description among them.

    Raises InvalidInput for a mark of mirroring, Unsupported where the catalog does not change that.
    """
    _leave_marks(updates, removals)
    with face.lent() as catalog:
        before = catalog.describe_namespace(target.inner)
        wanted = namespace_record(before.source, before.path, _changed(namespace_properties(before), updates, removals))
        return catalog.update_namespace(before, replace(wanted, native_id=before.native_id))


def altered_table(face: CatalogNamespace, target: Target, updates: Mapping[str, str], removals: Collection[str]) -> TableRecord:
    """The table as it then is. Raises InvalidInput for what is no external Lance table and for a mark of mirroring, Unsupported
    where the catalog does not change tables."""
    _leave_marks(updates, removals)
    with face.lent() as catalog:
        before = catalog.describe_table(target.inner)
        if before.kind is not Kind.TABLE:
            raise InvalidInput(f"{path_key(target.path)} is no external Lance table")
        properties, doc = _changed(before.properties, updates, removals), before.doc
        if doc is not None and before.properties.get(_COMMENT) == doc:
            # Hive keeps the comment as a property, so that it is there twice.
            doc = properties.get(_COMMENT)
        return catalog.update_table(before, replace(before, properties=properties, doc=doc))


def _changed(properties: Mapping[str, str], updates: Mapping[str, str], removals: Collection[str]) -> dict[str, str]:
    return {key: text for key, text in properties.items() if key not in removals} | dict(updates)


def _leave_marks(updates: Mapping[str, str], removals: Collection[str]) -> None:
    marks = sorted(key for key in {*updates, *removals} if key.startswith(PREFIX))
    if marks:
        raise InvalidInput(
            f"{', '.join(marks)}: marks of mirroring are not altered by hand", hint="federator ledger rebuild, mirror prune"
        )
