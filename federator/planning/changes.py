"""Change and Refusal: what should happen at a target, or why it must not. Plain data that travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

from federator.model import Kind, NamespaceRecord, TableRecord, parse_key
from federator.planning.reasons import Reason


class Action(StrEnum):
    """What is done at a target. ``recreate_table`` deregisters and declares anew, where the catalog cannot alter; the whole native
    object is saved before."""

    CREATE_NAMESPACE = "create_namespace"
    DECLARE_TABLE = "declare_table"
    UPDATE_TABLE = "update_table"
    RECREATE_TABLE = "recreate_table"
    ADOPT = "adopt"
    DEREGISTER_TABLE = "deregister_table"
    DROP_NAMESPACE = "drop_namespace"


def record_json(record: TableRecord) -> dict[str, Any]:
    """A record as JSON data; ``record_from_json`` is its inverse."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {**values, "path": record.key, "kind": record.kind.value, "properties": dict(record.properties)}


def record_from_json(data: Mapping[str, Any]) -> TableRecord:
    return TableRecord(**{**data, "path": parse_key(data["path"]), "kind": Kind(data["kind"])})


def namespace_json(record: NamespaceRecord) -> dict[str, Any]:
    """A namespace's record as JSON data; ``namespace_from_json`` is its inverse."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {**values, "path": record.key, "properties": dict(record.properties)}


def namespace_from_json(data: Mapping[str, Any]) -> NamespaceRecord:
    return NamespaceRecord(**{**data, "path": parse_key(data["path"])})


@dataclass(frozen=True)
class Change:
    """One step at a target.

    ``before`` is the target as it was read (None: absent), ``after`` as it should be (None: gone); ``namespace`` is that namespace,
    as it should be made or as it was read before it is dropped. ``precondition`` holds the digests that the step depends on:
    ``target`` and ``origin`` (a digest, ``absent``, or ``any``). ``declared`` is what of ``after`` comes from us, as the ledger will
    remember it, and the rest is the target's own; of a deregistration, what of ``before`` came from us. ``pair`` is shared by the two
    halves of a rename: ``old -> new``.
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

    def to_json(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["action"] = self.action.value
        data["precondition"] = dict(self.precondition)
        for side in ("before", "after"):
            data[side] = record_json(data[side]) if data[side] is not None else None
        # Left out where there is none: a plan that was made before they were known keeps its digest.
        for name in ("pair", "namespace"):
            if data[name] is None:
                del data[name]
        if self.namespace is not None:
            data["namespace"] = namespace_json(self.namespace)
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
    def by_person(self) -> bool:
        """Whether a person declares it, so that it has no origin, and nothing makes it ours."""
        return not self.origin_source

    @property
    def moves_location(self) -> bool:
        """Whether an update points the table somewhere else: counted by the guard like a deletion."""
        both = self.before is not None and self.after is not None
        return both and self.before.canonical != self.after.canonical  # type: ignore[union-attr]  # both says so


def destructive(change: Change) -> bool:
    """A deregistration of something that is there, a table pointed elsewhere, or one made anew. A rename is none of these."""
    if change.action is Action.DEREGISTER_TABLE:
        return change.before is not None and change.pair is None
    return change.action is Action.RECREATE_TABLE or change.moves_location


@dataclass(frozen=True, slots=True)
class Refusal:
    """A difference that is left as it is, with a stable reason code."""

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
