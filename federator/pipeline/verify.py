"""Verify: inspect each distinct location with pylance, in child processes that can be killed, distributed over Spark tasks."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import takewhile
from typing import Any

import pyarrow as pa

from federator.connector import PermissionDenied, SourceSpec
from federator.lance.inspection import Inspection
from federator.lance.opening import opening_options
from federator.model import canonical_location
from federator.pipeline.local_frames import local_frame
from federator.pipeline.parallelism import inspection_parallelism
from federator.pipeline.staging_area import StagingArea
from federator.registry import parse_connector_settings
from federator.runtime.child_process import ChildProcessDied, ReplaceableProcess
from federator.store.verifications import DueLocation

# ``answer`` is the JSON of an ``Inspection``.
_DDL = "canonical string, location string, checked_at double, answer string"
# After this many timeouts in a row, a task makes no further requests to a store.
_MAX_TIMEOUTS = 3
# Up to this many results are collected by the driver: staging them would take longer.
_MAX_COLLECTED = 5_000


def verify_locations(
    staging: StagingArea, spec: SourceSpec, locations: Sequence[DueLocation], *, timeout: float, seconds: float
) -> Iterator[dict[str, Any]]:
    """Inspect locations with the source's own ``storage.*`` options; return rows of the table ``dataset``.

    All locations are inspected before this function returns. Many results are staged, and read as the rows are requested.

    A table that takes longer than ``timeout`` seconds is ``unreachable`` and costs that time once. A task makes no further requests
    to a store after a few timeouts in a row: the other locations in it have no row. After ``seconds`` no further location is
    inspected: the rest, the end of ``locations``, has no row. Raise FederatorError if the settings of the source cannot be resolved.
    """
    if not locations:
        return iter(())
    parse_connector_settings(spec)
    end = time.time() + seconds
    rows = [(due.canonical, due.location) for due in locations]
    partitions = max(1, min(len(rows), inspection_parallelism(staging.spark)))
    frame = local_frame(staging.spark, ("canonical", "location"), distribute_by_store(rows, partitions), parts=partitions)

    restricted = {due.location: due for due in locations if due.allowed_bases is not None}

    def inspect_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with InspectorProcess(spec, timeout, restricted) as inspector:
            for batch in batches:
                positions, times, answers = [], [], []
                for position, text in enumerate(inspector.inspect_each(batch.column("location").to_pylist(), end)):
                    if text is not None:
                        positions.append(position)
                        times.append(time.time())
                        answers.append(text)
                inspected = batch.take(pa.array(positions, pa.int64()))
                yield pa.RecordBatch.from_arrays(
                    [*inspected.columns, pa.array(times, pa.float64()), pa.array(answers, pa.string())],
                    names=["canonical", "location", "checked_at", "answer"],
                )

    # One job over all partitions: toLocalIterator would run them one after the other.
    inspected = frame.mapInArrow(inspect_batches, _DDL)
    if len(rows) <= _MAX_COLLECTED:
        return _dataset_rows(inspected.toArrow().to_batches(), spec.name)
    return _dataset_rows(staging.read(staging.write(inspected, f"{spec.name}.verified")), spec.name)


def _dataset_rows(batches: Iterable[pa.RecordBatch], source: str) -> Iterator[dict[str, Any]]:
    for batch in batches:
        *columns, texts = (column.to_pylist() for column in batch.columns)
        # Parse all answers at once: one call per answer would take longer than all other work here.
        answers = json.loads(f"[{','.join(texts)}]")
        for canonical, location, checked_at, answer in zip(*columns, answers, strict=True):
            yield {"canonical": canonical, "location": location, "checked_at": checked_at, "checked_through": source, **answer}


def distribute_by_store(rows: Sequence[tuple[str, str]], parts: int) -> list[tuple[str, str]]:
    """Return rows (canonical, location) in an order whose every ``parts``-th row belongs to one Spark task.

    The locations of each store, and of each prefix in it, are distributed evenly over the tasks. Within a task the order stays.
    """
    # Sorted by store and prefix, each of them is one range, which is dealt out to the tasks like cards.
    by_store = sorted(range(len(rows)), key=lambda number: (*_store_and_prefix(rows[number][0]), number))
    tasks = [sorted(by_store[part::parts]) for part in range(parts)]
    return [rows[tasks[position % parts][position // parts]] for position in range(len(rows))]


def _store_and_prefix(location: str) -> tuple[str, str]:
    """Return a location's store and the first directory in it. The store is scheme and host, or the first directory of a file
    system."""
    scheme, _, rest = location.partition("://")
    host, _, path = rest.partition("/")
    first, _, deeper = path.partition("/")
    return (f"{scheme}://{host}", first) if host else (f"{scheme}:///{first}", deeper.partition("/")[0])


def _store_of(location: str) -> str:
    return _store_and_prefix(canonical_location(location))[0]


def _inspection_json(state: str, message: str) -> str:
    return json.dumps(asdict(Inspection(state, message)))


class InspectorProcess(ReplaceableProcess):
    """The process that inspects locations. ``restricted`` have limits of their own, which count instead of the source's.

    Raise FederatorError if the settings of the source cannot be resolved: nothing is known of its locations then.
    """

    def __init__(self, spec: SourceSpec, timeout: float, restricted: Mapping[str, DueLocation] | None = None) -> None:
        super().__init__("federator.pipeline.location_inspector", timeout)
        self._restricted = dict(restricted or {})
        self._timeouts: Counter[str] = Counter()
        self._settings = parse_connector_settings(spec)

    def restrict(self, due: DueLocation) -> None:
        """Let a location have the limits of ``due``, which count instead of the source's."""
        self._restricted[due.location] = due

    def inspect(self, location: str) -> Inspection:
        """Inspect one location, also if its store did not respond before."""
        (text,) = self._inspect_until_failure([location], math.inf)
        return Inspection(**json.loads(text))

    def inspect_each(self, locations: Sequence[str], until: float) -> Iterator[str | None]:
        """Yield the JSON of an ``Inspection`` for each location in turn, until the time ``until`` (seconds since the epoch).

        A location that does not respond in time is ``unreachable``. None: it was not opened, because its store did not respond a few
        times in a row.
        """
        count = 0
        while count < len(locations) and time.time() < until:
            if self.is_silent(locations[count]):
                yield None
                count += 1
                continue
            for text in self._inspect_until_failure(locations[count:], until):
                yield text
                count += 1

    def _inspect_until_failure(self, locations: Sequence[str], until: float) -> Iterator[str]:
        """Yield the results up to and including the first location that fails."""
        if self._timeouts:
            # All requests are sent at once, so those after a store that does not respond are left out.
            locations = [locations[0], *takewhile(lambda location: not self.is_silent(location), locations[1:])]
        requests = map(self._request, locations)
        count = 0
        try:
            for text in self.child.request_all(requests, self._timeout):
                if self._timeouts:
                    self._timeouts.pop(_store_of(locations[count]), None)
                count += 1
                yield text
                if time.time() >= until:
                    return
        except ChildProcessDied:
            yield _inspection_json("corrupt", "the inspector process died while it opened the table")
        except TimeoutError:
            self._timeouts[_store_of(locations[count])] += 1
            yield _inspection_json("unreachable", self.timeout_message)
        finally:
            if count < len(locations):
                self.kill()

    def _request(self, location: str) -> dict[str, Any]:
        due = self._restricted.get(location)
        try:
            return {
                "location": location, "storage": opening_options(self._settings, location),
                "allowed_bases": self._settings.allowed_bases if due is None else due.allowed_bases,
                "mounts": [self._settings.root_uri] if due is None else due.mounts,
            }  # fmt: skip
        except PermissionDenied as error:
            return {"location": location, "denied": error.message}

    def is_silent(self, location: str) -> bool:
        """Return whether the store of a location did not respond a few times in a row."""
        return bool(self._timeouts) and self._timeouts[_store_of(location)] >= _MAX_TIMEOUTS
