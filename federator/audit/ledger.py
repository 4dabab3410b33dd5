"""The ledger as the audit tells it: what we put where is known from the events alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: what names an entry of the ledger: mirror, origin's source and path, target's path, and 1 for a table
Key = tuple[str, str, str, str, int]
_Target = tuple[str, str, int]

_WRITE, _REBUILT = "write", "ledger_rebuilt"
_OF_NAMESPACES = ("create_namespace", "drop_namespace")


def ledger_from(events: Iterable[Mapping[str, Any]]) -> dict[Key, dict[str, Any]]:
    """The ledger after the events, which are decoded (``kind``, ``detail``) and in order; every column but ``updated_at``."""
    told = _Ledger()
    for event in events:
        detail = event["detail"]
        if event["kind"] == _REBUILT:
            row = {name: value for name, value in detail.items() if name != "why"}
            told.forget(_target(row, row["is_table"]))
            told.put(row)
        elif event["kind"] == _WRITE:
            _written(told, detail)
    return told.entries


@dataclass
class _Ledger:
    entries: dict[Key, dict[str, Any]] = field(default_factory=dict)
    keys: dict[_Target, set[Key]] = field(default_factory=dict)

    def put(self, row: Mapping[str, Any]) -> None:
        self.entries[_key(row)] = dict(row)
        self.keys.setdefault(_target(row, row["is_table"]), set()).add(_key(row))

    def at(self, target: _Target, mirror: str | None = None) -> list[dict[str, Any]]:
        """The entries of a target, of one mirror or of all."""
        found = [self.entries[key] for key in self.keys.get(target, ()) if key in self.entries]
        return [row for row in found if _target(row, row["is_table"]) == target and mirror in (None, row["mirror"])]

    def forget(self, target: _Target, mirror: str | None = None) -> None:
        for row in self.at(target, mirror):
            del self.entries[_key(row)]


def _written(told: _Ledger, detail: Mapping[str, Any]) -> None:
    change, mirror = detail["change"], detail["mirror"]
    target = _target(change, int(change["action"] not in _OF_NAMESPACES))
    if detail["state"] == "done":
        told.forget(target, None if detail["action"] == "adopt" else mirror)
        if detail["entry"] is not None:
            told.put(detail["entry"])
    elif detail["code"] == "restored":
        for row in told.at(target, mirror):
            row["native_id"] = detail["native_id"]


def _target(row: Mapping[str, Any], is_table: int) -> _Target:
    return row["target_source"], row["target_path"], int(is_table)


def _key(row: Mapping[str, Any]) -> Key:
    return row["mirror"], row["origin_source"], row["origin_path"], row["target_path"], int(row["is_table"])
