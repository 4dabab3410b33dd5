"""The content of a memory catalog, in this process or in a JSON file that processes share."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Any

from federator.model import ROOT, Kind, NamespaceRecord, Path, TableRecord, parent_path, path_key

_KINDS = ("namespaces", "tables", "foreign")
_EMPTY: Mapping[str, Any] = {"next": 1, "faults": "", "calls": [], "feed": None, **{kind: {} for kind in _KINDS}}


class MemoryStore:
    """The content of a memory catalog. Tests change it directly through the methods of this class.

    With a ``file``, every access reads the file under a lock, and writes it after a change. So Spark workers and other processes share
    one state.
    """

    def __init__(self, file: str | None = None) -> None:
        self._file = FilePath(file) if file else None
        self._state: dict[str, Any] = json.loads(json.dumps(_EMPTY))
        self._lock = threading.RLock()

    @contextmanager
    def locked_state(self, *, write: bool = False) -> Iterator[dict[str, Any]]:
        """The state under an exclusive lock. The block changes it only with ``write``; its changes are discarded if it raises."""
        with self._lock:
            if self._file is None:
                copy = json.loads(json.dumps(self._state)) if write else self._state
                yield copy
                _append_feed_events(self._state, copy)
                self._state = copy
                return
            with self._file.with_name(f"{self._file.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
                state = json.loads(text or json.dumps(_EMPTY))
                yield state
                if write:
                    if state.get("feed") is not None:
                        _append_feed_events(json.loads(text), state)
                    # Replace the file atomically, so that it stays complete if a test kills the process.
                    new = self._file.with_name(f"{self._file.name}.new")
                    new.write_text(json.dumps(state), encoding="utf-8")
                    new.replace(self._file)

    def add_namespace(self, path: Path, **fields: Any) -> NamespaceRecord:
        """Add a namespace and its parents. ``fields`` are those of NamespaceRecord."""
        with self.locked_state(write=True) as state:
            for depth in range(1, len(path)):
                state["namespaces"].setdefault(path_key(path[:depth]), namespace_to_row(NamespaceRecord("", path[:depth])))
            record = NamespaceRecord("", path, **({"native_id": next_id(state)} | fields))
            state["namespaces"][record.key] = namespace_to_row(record)
        return record

    def add_table(self, path: Path, location: str | None = None, **fields: Any) -> TableRecord:
        """Add or replace a table. ``fields`` are those of TableRecord; ``kind`` may be a managed table."""
        location = location or f"s3://memory/{'/'.join(path)}.lance"
        if parent_path(path) != ROOT:
            with self.locked_state() as state:
                has_parent = path_key(parent_path(path)) in state["namespaces"]
            if not has_parent:
                self.add_namespace(parent_path(path))
        with self.locked_state(write=True) as state:
            record = TableRecord("", path, location, **({"native_id": next_id(state), "version": next_id(state)} | fields))
            state["tables"][record.key] = table_to_row(record)
        return record

    def add_foreign(self, path: Path, description: str = "a view") -> None:
        """Add an object that is not a Lance table."""
        with self.locked_state(write=True) as state:
            state["foreign"][path_key(path)] = description

    def remove(self, path: Path) -> None:
        """Remove the object at a path and everything below it."""
        key = path_key(path)
        with self.locked_state(write=True) as state:
            for kind in _KINDS:
                state[kind] = {k: v for k, v in state[kind].items() if k != key and not k.startswith(key + "$")}

    def expire_events(self) -> None:
        """Let the change feed expire: cursors of earlier positions cannot be followed any more."""
        with self.locked_state(write=True) as state:
            if state["feed"] is not None:
                state["feed"] = {"expired": state["feed"]["expired"] + len(state["feed"]["events"]), "events": []}

    def identify(self, identity: str) -> None:
        """Set the identity that the catalog states; an empty text, the default: none."""
        with self.locked_state(write=True) as state:
            state["identity"] = identity

    def faults(self, text: str) -> None:
        """Set the faults (``federator.testing.faults``) of all catalogs on this store; an empty text removes them."""
        with self.locked_state(write=True) as state:
            state["faults"] = text

    def calls(self) -> list[str]:
        """Return all writes of catalogs, in order: ``declare_table sales$orders``."""
        with self.locked_state() as state:
            return list(state["calls"])


def _append_feed_events(before: Mapping[str, Any], after: dict[str, Any]) -> None:
    """Add the differences of two states to the change feed, if it was read before."""
    feed = after["feed"]
    if feed is None or after is before:
        return
    for kind in _KINDS:
        # Compare as JSON: a stored state has lists where a new row has tuples.
        old, new = ({key: json.dumps(row) for key, row in state[kind].items()} for state in (before, after))
        changed = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
        feed["events"] += [["namespaces" if kind == "namespaces" else "tables", key] for key in sorted(changed)]


def next_id(state: dict[str, Any]) -> str:
    """Return an id that no other object of the store has."""
    state["next"] += 1
    return str(state["next"])


def namespace_from_row(source: str, row: Mapping[str, Any]) -> NamespaceRecord:
    """Return a stored namespace as a record of a source."""
    return NamespaceRecord(**(dict(row) | {"source": source, "path": tuple(row["path"])}))


def table_from_row(source: str, row: Mapping[str, Any]) -> TableRecord:
    """Return a stored table as a record of a source."""
    return TableRecord(**(dict(row) | {"source": source, "path": tuple(row["path"]), "kind": Kind(row["kind"])}))


def namespace_to_row(record: NamespaceRecord) -> dict[str, Any]:
    """Return the row of a namespace, the inverse of ``namespace_from_row``."""
    return asdict(record) | {"properties": dict(record.properties)}


def table_to_row(record: TableRecord) -> dict[str, Any]:
    """Return the row of a table, the inverse of ``table_from_row``."""
    return asdict(record) | {"properties": dict(record.properties), "kind": record.kind.value}
