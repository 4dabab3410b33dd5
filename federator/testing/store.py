"""What a memory catalog holds: records by path, in this process or in a JSON file that several processes share."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Any

from federator.model import ROOT, Kind, NamespaceRecord, Path, TableRecord, parent, path_key

_KINDS = ("namespaces", "tables", "foreign")
_EMPTY: Mapping[str, Any] = {"next": 1, "faults": "", "calls": [], "feed": None, **{kind: {} for kind in _KINDS}}


class MemoryStore:
    """The content of a memory catalog, and the side door through which a test changes it.

    With a ``file``, every access reads and, if it changed something, writes that file under a lock, so that Spark workers and
    other processes see one state.
    """

    def __init__(self, file: str | None = None) -> None:
        self._file = FilePath(file) if file else None
        self._state: dict[str, Any] = json.loads(json.dumps(_EMPTY))
        self._lock = threading.RLock()

    @contextmanager
    def state(self, *, write: bool = False) -> Iterator[dict[str, Any]]:
        """The state, exclusively. Changes are kept only with ``write``, and only if the block does not raise."""
        with self._lock:
            if self._file is None:
                copy = json.loads(json.dumps(self._state)) if write else self._state
                yield copy
                _note(self._state, copy)
                self._state = copy
                return
            with self._file.with_name(f"{self._file.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
                state = json.loads(text or json.dumps(_EMPTY))
                yield state
                if write:
                    if state.get("feed") is not None:
                        _note(json.loads(text), state)
                    # Replaced in one step, so that a process killed by a test leaves a whole file.
                    new = self._file.with_name(f"{self._file.name}.new")
                    new.write_text(json.dumps(state), encoding="utf-8")
                    new.replace(self._file)

    def add_namespace(self, path: Path, **fields: Any) -> NamespaceRecord:
        """Puts a namespace there, its parents too. ``fields`` are those of NamespaceRecord."""
        with self.state(write=True) as state:
            for depth in range(1, len(path)):
                state["namespaces"].setdefault(path_key(path[:depth]), namespace_row(NamespaceRecord("", path[:depth])))
            record = NamespaceRecord("", path, **({"native_id": number(state)} | fields))
            state["namespaces"][record.key] = namespace_row(record)
        return record

    def add_table(self, path: Path, location: str | None = None, **fields: Any) -> TableRecord:
        """Puts a table there, whatever was there before. ``fields`` are those of TableRecord; ``kind`` may be a managed one."""
        location = location or f"s3://memory/{'/'.join(path)}.lance"
        if parent(path) != ROOT:
            with self.state() as state:
                known = path_key(parent(path)) in state["namespaces"]
            if not known:
                self.add_namespace(parent(path))
        with self.state(write=True) as state:
            record = TableRecord("", path, location, **({"native_id": number(state), "version": number(state)} | fields))
            state["tables"][record.key] = table_row(record)
        return record

    def add_foreign(self, path: Path, what: str = "a view") -> None:
        """Puts something there that is not a Lance table."""
        with self.state(write=True) as state:
            state["foreign"][path_key(path)] = what

    def remove(self, path: Path) -> None:
        """Takes away whatever is there, with everything below it."""
        key = path_key(path)
        with self.state(write=True) as state:
            for kind in _KINDS:
                state[kind] = {k: v for k, v in state[kind].items() if k != key and not k.startswith(key + "$")}

    def forget_events(self) -> None:
        """Lets the feed of changes expire: what happened so far cannot be asked for any more."""
        with self.state(write=True) as state:
            if state["feed"] is not None:
                state["feed"] = {"expired": state["feed"]["expired"] + len(state["feed"]["events"]), "events": []}

    def identify(self, identity: str) -> None:
        """Sets what the catalog states about itself; an empty text: nothing, as at first."""
        with self.state(write=True) as state:
            state["identity"] = identity

    def faults(self, text: str) -> None:
        """Sets the faults (``federator.testing.faults``) of every catalog on this store; an empty text ends them."""
        with self.state(write=True) as state:
            state["faults"] = text

    def calls(self) -> list[str]:
        """Every write that a catalog did, in order: ``declare_table sales$orders``."""
        with self.state() as state:
            return list(state["calls"])


def _note(before: Mapping[str, Any], after: dict[str, Any]) -> None:
    """Names what differs in the feed of changes, once somebody has asked for that."""
    feed = after["feed"]
    if feed is None or after is before:
        return
    for kind in _KINDS:
        # As JSON, which knows no tuples.
        old, new = ({key: json.dumps(row) for key, row in state[kind].items()} for state in (before, after))
        changed = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
        feed["events"] += [["namespaces" if kind == "namespaces" else "tables", key] for key in sorted(changed)]


def number(state: dict[str, Any]) -> str:
    """A text that no other object of the store has."""
    state["next"] += 1
    return str(state["next"])


def namespace_of(source: str, row: Mapping[str, Any]) -> NamespaceRecord:
    """The stored namespace as the record of a source."""
    return NamespaceRecord(**(dict(row) | {"source": source, "path": tuple(row["path"])}))


def table_of(source: str, row: Mapping[str, Any]) -> TableRecord:
    """The stored table as the record of a source."""
    return TableRecord(**(dict(row) | {"source": source, "path": tuple(row["path"]), "kind": Kind(row["kind"])}))


def namespace_row(record: NamespaceRecord) -> dict[str, Any]:
    """The inverse of ``namespace_of``."""
    return asdict(record) | {"properties": dict(record.properties)}


def table_row(record: TableRecord) -> dict[str, Any]:
    """The inverse of ``table_of``."""
    return asdict(record) | {"properties": dict(record.properties), "kind": record.kind.value}
