"""Scan: find Lance tables below a storage root, in rounds of Spark tasks that each list some directories.

A task lists directories in a child process that can be killed, and returns the directories that it did not reach. The next round
distributes them again, so that a deep directory does not remain one task's work. A directory that could not be listed is a gap,
never an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from federator.connector import FederatorError, SourceSpec
from federator.model import canonical_location
from federator.pipeline.directory_lister import DirectoryListing
from federator.pipeline.local_frames import local_frame
from federator.pipeline.parallelism import inspection_parallelism
from federator.registry import parse_connector_settings
from federator.runtime.child_process import ChildProcessDied, ReplaceableProcess
from federator.store.roots import ScanGap

# The number of directories that a task lists in the first rounds: these only find enough work for all tasks.
_FIRST_BUDGETS = (1, 32)
_LATER_BUDGET = 2000
# After this many timeouts in a row, a task makes no further requests to the store.
_MAX_TIMEOUTS = 3


@dataclass(frozen=True, slots=True)
class ScanSpec:
    """The directories to scan: a location opened with the ``storage.*`` options of ``source``, ``depth`` levels deep.

    The canonical locations ``excluded`` are skipped. One listing may take ``timeout`` seconds, and the scan may list
    ``max_directories``.
    """

    source: SourceSpec
    location: str
    depth: int
    excluded: tuple[str, ...]
    timeout: float
    max_directories: int

    def location_of(self, path: Sequence[str]) -> str:
        """Return the location of a directory; ``path`` starts at the root."""
        return "/".join((self.location.rstrip("/"), *path))


@dataclass
class ScanFindings:
    """The result of a scan: locations of tables, the number of listed directories, and the gaps.

    ``root_listed`` is False if the root itself could not be listed.
    """

    tables: list[str] = field(default_factory=list)
    directories: int = 0
    gaps: list[ScanGap] = field(default_factory=list)
    root_listed: bool = True


def scan_root(spark: SparkSession, spec: ScanSpec) -> ScanFindings:
    """Scan a root. Each round is one Spark job; a small root needs two."""
    findings = ScanFindings()
    frontier: list[str] = ["[]"]
    round_number, vanished = 0, False
    while frontier:
        remaining = spec.max_directories - findings.directories
        if remaining <= 0:
            findings.gaps += [_build_gap(spec, json.loads(path), "limit", "max_directories was reached") for path in frontier]
            break
        parts = max(1, min(len(frontier), inspection_parallelism(spark), remaining))
        budget = min(
            _FIRST_BUDGETS[round_number] if round_number < len(_FIRST_BUDGETS) else _LATER_BUDGET, max(1, remaining // parts)
        )
        frame = local_frame(spark, ("path",), [(path,) for path in frontier], parts=parts)
        frontier = []
        for row in frame.mapInArrow(_scan_task(spec, budget), "kind string, body string").toArrow().to_pylist():
            match row["kind"]:
                case "table":
                    findings.tables.append(row["body"])
                case "gap":
                    findings.gaps.append(ScanGap(**json.loads(row["body"])))
                case "left":
                    frontier.append(row["body"])
                case "summary":
                    summary = json.loads(row["body"])
                    findings.directories += summary["listed"]
                    vanished = vanished or summary["vanished"]
        round_number += 1
    root = canonical_location(spec.location)
    if vanished and not any(gap.location == root for gap in findings.gaps):
        # Single directories may be deleted during a scan. If the whole root becomes unavailable, it looks the same.
        findings.gaps += _recheck_root(spec)
    findings.root_listed = not any(gap.location == root and gap.code not in ("limit", "depth") for gap in findings.gaps)
    return findings


def _recheck_root(spec: ScanSpec) -> list[ScanGap]:
    with _ListerProcess(spec) as lister:
        listing = lister.list_directory(())
    if listing.state in ("directory", "table") and not listing.is_empty:
        return []
    reason = listing.message or "it is empty now"
    return [_build_gap(spec, (), "unreachable", f"it became unavailable during the scan: {reason}")]


def _scan_task(spec: ScanSpec, budget: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        paths = [tuple(json.loads(path)) for batch in batches for path in batch.column("path").to_pylist()]
        rows = list(_walk_directories(spec, paths, budget))
        kinds, bodies = zip(*rows, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), pa.array(bodies, pa.string())], names=["kind", "body"])

    return run


def _walk_directories(spec: ScanSpec, paths: Sequence[tuple[str, ...]], budget: int) -> Iterator[tuple[str, str]]:
    """Yield rows of kind and body: tables, gaps, directories that are left, and at the end a summary."""
    waiting = list(reversed(paths))
    listed, timeouts, vanished = 0, 0, False
    with _ListerProcess(spec) as lister:
        while waiting and listed < budget and timeouts < _MAX_TIMEOUTS:
            path = waiting.pop()
            listed += 1
            listing = lister.list_directory(path)
            timeouts = timeouts + 1 if listing.state == "silent" else 0
            match listing.state:
                case "table":
                    yield "table", listing.location
                case "gone":
                    vanished = True
                case "directory":
                    if reason := _incomplete_reason(path, listing):
                        yield "gap", _gap_to_json(_build_gap(spec, path, "failed", reason, listing.location))
                    children = [name for name in listing.directories if not _is_excluded(spec, listing.location, name)]
                    if children and len(path) >= spec.depth:
                        detail = f"{len(children)} directories below depth {spec.depth}"
                        yield "gap", _gap_to_json(_build_gap(spec, path, "depth", detail, listing.location))
                    else:
                        waiting += [(*path, name) for name in reversed(children)]
                case failure:
                    code = "unreachable" if failure == "silent" else failure
                    yield "gap", _gap_to_json(_build_gap(spec, path, code, str(listing.message), listing.location))
    for path in waiting:
        if timeouts >= _MAX_TIMEOUTS:
            yield "gap", _gap_to_json(_build_gap(spec, path, "unreachable", "skipped: the store did not respond before"))
        else:
            yield "left", json.dumps(path)
    yield "summary", json.dumps({"listed": listed, "vanished": vanished})


def _incomplete_reason(path: Sequence[str], listing: DirectoryListing) -> str | None:
    if listing.unnamed:
        return f"{listing.unnamed} directories have names that cannot be decoded"
    # An unmounted volume looks the same, and so does a wrong prefix in a bucket.
    return "the root is empty" if listing.is_empty and not path else None


def _is_excluded(spec: ScanSpec, parent: str, name: str) -> bool:
    return bool(spec.excluded) and canonical_location(f"{parent.rstrip('/')}/{name}") in spec.excluded


def _build_gap(spec: ScanSpec, path: Sequence[str], code: str, message: str, location: str | None = None) -> ScanGap:
    return ScanGap(canonical_location(location or spec.location_of(path)), code, message)


def _gap_to_json(gap: ScanGap) -> str:
    return json.dumps(asdict(gap))


class _ListerProcess(ReplaceableProcess):
    """The process that lists directories."""

    def __init__(self, spec: ScanSpec) -> None:
        super().__init__("federator.pipeline.directory_lister", spec.timeout)
        self._spec = spec
        self._storage: dict[str, str] = {}
        self._settings_error: str | None = None
        try:
            self._storage = dict(parse_connector_settings(spec.source).storage)
        except FederatorError as error:
            self._settings_error = error.message

    def list_directory(self, path: Sequence[str]) -> DirectoryListing:
        """List a directory in the child process. The state is ``silent`` if it does not respond in time."""
        if self._settings_error is not None:
            return self._failed(path, "failed", self._settings_error)
        try:
            request = {"root": self._spec.location, "storage": self._storage, "path": list(path)}
            return DirectoryListing(**self.child.request(request, self._timeout))
        except ChildProcessDied:
            self.kill()
            return self._failed(path, "failed", "the lister process died while it listed the directory")
        except TimeoutError:
            self.kill()
            return self._failed(path, "silent", self.timeout_message)

    def _failed(self, path: Sequence[str], state: str, message: str) -> DirectoryListing:
        return DirectoryListing(self._spec.location_of(path), state, message)
