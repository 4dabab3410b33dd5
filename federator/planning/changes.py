"""Change and Refusal: an action at a target, or the reason why it is refused. Plain data with a JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

from federator.model import Kind, NamespaceRecord, TableRecord, parse_path_key
from federator.planning.reasons import Reason


class Action(StrEnum):
    """The kind of a change.

    ``recreate_table`` deregisters and declares again, in catalogs that cannot alter tables. The native object is saved before.
    """

    CREATE_NAMESPACE = "create_namespace"
    DECLARE_TABLE = "declare_table"
    UPDATE_TABLE = "update_table"
    RECREATE_TABLE = "recreate_table"
    ADOPT = "adopt"
    DEREGISTER_TABLE = "deregister_table"
    DROP_NAMESPACE = "drop_namespace"


#: values of a precondition in place of a digest: the object is proven absent, and the change does not depend on the object
ABSENT, ANY = "absent", "any"
#: actions on a namespace; the others are on a table
NAMESPACE_ACTIONS = frozenset({Action.CREATE_NAMESPACE, Action.DROP_NAMESPACE})


def record_to_json(record: TableRecord) -> dict[str, Any]:
    """Convert a record to JSON data; ``record_from_json`` is the inverse."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {**values, "path": record.key, "kind": record.kind.value, "properties": dict(record.properties)}


def record_from_json(data: Mapping[str, Any]) -> TableRecord:
    return TableRecord(**{**data, "path": parse_path_key(data["path"]), "kind": Kind(data["kind"])})


def namespace_to_json(record: NamespaceRecord) -> dict[str, Any]:
    """Convert a namespace's record to JSON data; ``namespace_from_json`` is the inverse."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {**values, "path": record.key, "properties": dict(record.properties)}


def namespace_from_json(data: Mapping[str, Any]) -> NamespaceRecord:
    return NamespaceRecord(**{**data, "path": parse_path_key(data["path"])})


@dataclass(frozen=True)
class Change:
    """One action on one target object.

    ``before`` is the target's table as it was read, ``after`` the desired one (None: absent). ``namespace`` is the namespace to
    create, or the one to drop as it was read. ``precondition`` contains what the change depends on: ``target`` and ``origin``, each a
    digest, ``ABSENT`` or ``ANY``. ``declared`` is the part of ``after`` that comes from the mirror, as the ledger
    will store it; the rest is the target's own. For a deregistration, it is the mirror's part of ``before``. The two changes of a
    rename share ``pair``: ``old -> new``.
    """

    action: Action
    target_source: str
    target_path: str
    origin_source: str
    origin_path: str
    reason: str
    before: TableRecord | None = None
    after: TableRecord | None = None
    precondition: Mapping[str, str] = field(default_factory=dict)
    declared: str | None = None
    pair: str | None = None
    namespace: NamespaceRecord | None = None

    @property
    def is_table(self) -> bool:
        """Whether the target object is a table, not a namespace."""
        return self.action not in NAMESPACE_ACTIONS

    def to_json(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["action"] = self.action.value
        data["precondition"] = dict(self.precondition)
        for side in ("before", "after"):
            data[side] = record_to_json(data[side]) if data[side] is not None else None
        # Omitted if None: a plan that was made before these fields existed keeps its digest.
        for name in ("pair", "namespace"):
            if data[name] is None:
                del data[name]
        if self.namespace is not None:
            data["namespace"] = namespace_to_json(self.namespace)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        values = dict(data)
        for side in ("before", "after"):
            values[side] = record_from_json(data[side]) if data[side] is not None else None
        if data.get("namespace") is not None:
            values["namespace"] = namespace_from_json(data["namespace"])
        return cls(**{**values, "action": Action(data["action"])})

    @property
    def needs_absent_origin(self) -> bool:
        """Whether the change was decided because the origin was proven absent."""
        return self.precondition.get("origin") == ABSENT

    @property
    def is_user_declaration(self) -> bool:
        """Whether a user declares the table. Such a change has no origin, and the table is not owned."""
        return not self.origin_source

    @property
    def moves_location(self) -> bool:
        """Whether an update gives the table another location. The guards count it like a deletion."""
        return self.before is not None and self.after is not None and self.before.canonical != self.after.canonical


def is_destructive(change: Change) -> bool:
    """Tell whether a change deregisters an existing table, moves it or recreates it. The changes of a rename are not destructive."""
    if change.action is Action.DEREGISTER_TABLE:
        return change.before is not None and change.pair is None
    return change.action is Action.RECREATE_TABLE or change.moves_location


@dataclass(frozen=True, slots=True)
class Refusal:
    """A difference that is left alone, with a stable reason code."""

    reason: Reason
    target_source: str
    target_path: str
    origin_path: str
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "reason": self.reason.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "reason": Reason(data["reason"])})


Decision = Change | Refusal


def refuse_change(change: Change, reason: Reason, detail: str) -> Refusal:
    """Return the refusal of a planned change."""
    return Refusal(reason, change.target_source, change.target_path, change.origin_path, detail)
