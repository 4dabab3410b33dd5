"""Scan: looks for physical Lance tables below a storage root, in rounds of Spark tasks that each walk some of its directories.

A task lists directories in a process that can be killed, and hands back what it did not come to; the next round deals that out again,
so that one deep directory is not one task's alone. What could not be listed is a Gap, never an empty directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from federator.connector import FederatorError, SourceSpec
from federator.connector.child import Child, ChildDied
from federator.index.roots import Gap
from federator.model import canonical_location
from federator.pipeline.frames import local_frame
from federator.pipeline.verify import spark_cores
from federator.registry import connector

# Directories that a task lists in each round: the first ones only find enough for everyone to do.
_ROUNDS = (1, 32)
_LATER = 2000
# A store that does not answer so many times in a row is not asked again by that task.
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Walk:
    """What to walk: a location opened with the ``storage.*`` of ``spec``, ``depth`` levels down, without the places ``excluded``
    (canonical); a listing may take ``timeout`` seconds, and all of them together be ``max_directories``."""

    spec: SourceSpec
    location: str
    depth: int
    excluded: tuple[str, ...]
    timeout: float
    max_directories: int


@dataclass
class Found:
    """What a scan found: tables' locations, how many directories it listed, what it could not list; ``whole`` unless the root itself
    was not to be listed."""

    tables: list[str] = field(default_factory=list)
    directories: int = 0
    gaps: list[Gap] = field(default_factory=list)
    whole: bool = True


def scan(spark: SparkSession, walk: Walk) -> Found:
    """Walks a root. One Spark job a round; two for a small root."""
    found = Found()
    frontier: list[str] = ["[]"]
    number, vanished = 0, False
    while frontier:
        left = walk.max_directories - found.directories
        if left <= 0:
            found.gaps += [_gap(walk, json.loads(path), "limit", "max_directories was reached") for path in frontier]
            break
        parts = max(1, min(len(frontier), spark_cores(), left))
        budget = min(_ROUNDS[number] if number < len(_ROUNDS) else _LATER, max(1, left // parts))
        frame = local_frame(spark, ("path",), [(path,) for path in frontier], parts=parts)
        frontier = []
        for row in frame.mapInArrow(_task(walk, budget), "kind string, body string").toArrow().to_pylist():
            match row["kind"]:
                case "table":
                    found.tables.append(row["body"])
                case "gap":
                    found.gaps.append(Gap(**json.loads(row["body"])))
                case "left":
                    frontier.append(row["body"])
                case _:
                    told = json.loads(row["body"])
                    found.directories += told["listed"]
                    vanished = vanished or told["vanished"]
        number += 1
    root = canonical_location(walk.location)
    if vanished and not any(gap.place == root for gap in found.gaps):
        # Directories do vanish; but so they do where the whole root goes away under the scan.
        found.gaps += _again(walk)
    found.whole = not any(gap.place == root and gap.code not in ("limit", "depth") for gap in found.gaps)
    return found


def _again(walk: Walk) -> list[Gap]:
    with _Lister(walk) as lister:
        answer = lister.look(())
    if answer["found"] in ("directory", "table") and not answer.get("empty"):
        return []
    return [_gap(walk, (), "unreachable", f"it went away during the scan: {answer['message'] or 'nothing is there any more'}")]


def _task(walk: Walk, budget: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        paths = [tuple(json.loads(path)) for batch in batches for path in batch.column("path").to_pylist()]
        rows = list(_walked(walk, paths, budget))
        kinds, bodies = zip(*rows, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), pa.array(bodies, pa.string())], names=["kind", "body"])

    return run


def _walked(walk: Walk, paths: Sequence[tuple[str, ...]], budget: int) -> Iterator[tuple[str, str]]:
    """Rows of kind and body: tables, gaps, directories that are left, and at the end how many were listed."""
    waiting = list(reversed(paths))
    listed, silent, vanished = 0, 0, False
    with _Lister(walk) as lister:
        while waiting and listed < budget and silent < _PATIENCE:
            path = waiting.pop()
            listed += 1
            answer = lister.look(path)
            silent = silent + 1 if answer["found"] == "silent" else 0
            match answer["found"]:
                case "table":
                    yield "table", answer["location"]
                case "gone":
                    vanished = True
                case "directory":
                    why = _incomplete(path, answer)
                    if why:
                        yield "gap", _row(_gap(walk, path, "failed", why, answer["location"]))
                    below = [name for name in answer["directories"] if not _excluded(walk, answer["location"], name)]
                    if below and len(path) >= walk.depth:
                        detail = f"{len(below)} directories below depth {walk.depth}"
                        yield "gap", _row(_gap(walk, path, "depth", detail, answer["location"]))
                    else:
                        waiting += [(*path, name) for name in reversed(below)]
                case code:
                    code = "unreachable" if code == "silent" else code
                    yield "gap", _row(_gap(walk, path, code, answer["message"], answer["location"]))
    for path in waiting:
        if silent >= _PATIENCE:
            yield "gap", _row(_gap(walk, path, "unreachable", "not asked: the store did not answer before"))
        else:
            yield "left", json.dumps(path)
    yield "told", json.dumps({"listed": listed, "vanished": vanished})


def _incomplete(path: Sequence[str], answer: dict[str, Any]) -> str:
    if answer["unnamed"]:
        return f"{answer['unnamed']} directories have names that are no text"
    # A mount that is gone looks the same, and so does the wrong prefix of a bucket.
    return "nothing at all is there" if answer["empty"] and not path else ""


def _excluded(walk: Walk, above: str, name: str) -> bool:
    return bool(walk.excluded) and canonical_location(f"{above.rstrip('/')}/{name}") in walk.excluded


def _gap(walk: Walk, path: Sequence[str], code: str, message: str, location: str | None = None) -> Gap:
    return Gap(canonical_location(location or "/".join((walk.location.rstrip("/"), *path))), code, message)


def _row(gap: Gap) -> str:
    return json.dumps({"place": gap.place, "code": gap.code, "message": gap.message})


class _Lister:
    """One lister process, replaced when it hangs or dies."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._child: Child | None = None
        self._storage: dict[str, str] = {}
        self._broken: str | None = None
        try:
            self._storage = dict(connector(walk.spec.impl).configure(walk.spec.properties).storage)
        except FederatorError as error:
            self._broken = error.message

    def look(self, path: Sequence[str]) -> dict[str, Any]:
        """``lister.look`` in the child; ``silent`` if it does not answer in time."""
        if self._broken is not None:
            return self._failed(path, "failed", self._broken)
        self._child = self._child or Child("federator.pipeline.lister")
        try:
            request = {"root": self._walk.location, "storage": self._storage, "path": list(path)}
            return self._child.ask(request, self._walk.timeout)
        except ChildDied:
            self._kill()
            return self._failed(path, "failed", "listing it ended the process that listed it")
        except TimeoutError:
            self._kill()
            return self._failed(path, "silent", f"no answer within {self._walk.timeout:g} s")

    def _failed(self, path: Sequence[str], found: str, message: str) -> dict[str, Any]:
        return {"location": "/".join((self._walk.location.rstrip("/"), *path)), "found": found, "message": message}

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> _Lister:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
