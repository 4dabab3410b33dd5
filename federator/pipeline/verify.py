"""Verify: opens each distinct location with pylance, in processes that can be killed, spread over Spark's tasks."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from federator.connector import FederatorError, SourceSpec
from federator.connector.child import Child, ChildDied
from federator.connector.looking import answer as answered
from federator.model import canonical_location
from federator.pipeline.frames import local_frame
from federator.registry import connector

_DDL = "canonical string, location string, checked_at double, answer string"
# A store that does not answer so many times in a row is not asked again by that task.
_PATIENCE = 3


def verify(
    spark: SparkSession, spec: SourceSpec, locations: Sequence[Mapping[str, str]], *, timeout: float, seconds: float
) -> Iterator[dict[str, Any]]:
    """Opens locations (``canonical``, ``location``) with the source's own ``storage.*``; yields rows of the table ``dataset``.

    A table that takes longer than ``timeout`` seconds is ``unreachable`` and costs that time once; a store that does not answer a few
    times in a row is not asked again by that task. After ``seconds`` no further one is opened: the rest, the last of ``locations``,
    has no row.
    """
    if not locations:
        return
    end = time.time() + seconds
    rows = [(row["canonical"], row["location"]) for row in locations]
    parts = max(1, min(len(rows), spark_cores()))
    frame = local_frame(spark, ("canonical", "location"), dealt(rows, parts), parts=parts)

    def open_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Opener(spec, timeout) as opener:
            for batch in batches:
                times, answers = [], []
                for text in opener.look_each(batch.column("location").to_pylist(), end):
                    times.append(time.time())
                    answers.append(text)
                opened = batch.slice(0, len(answers))
                yield pa.RecordBatch.from_arrays(
                    [*opened.columns, pa.array(times, pa.float64()), pa.array(answers, pa.string())],
                    names=["canonical", "location", "checked_at", "answer"],
                )

    # One job over all partitions: toLocalIterator runs one after the other.
    for batch in frame.mapInArrow(open_all, _DDL).toArrow().to_batches():
        *columns, texts = (column.to_pylist() for column in batch.columns)
        # All at once: one call for each would take longer than the rest of this.
        answers = json.loads(f"[{','.join(texts)}]")
        for canonical, location, checked_at, answer in zip(*columns, answers, strict=True):
            yield {
                "canonical": canonical, "location": location, "checked_at": checked_at, "checked_through": spec.name, **answer
            }  # fmt: skip


def spark_cores() -> int:
    """Opening tables is work of the processor: as many at once as there are."""
    return os.cpu_count() or 2


def dealt(rows: Sequence[tuple[str, str]], parts: int) -> list[tuple[str, str]]:
    """Rows (canonical, location) in an order of which every ``parts``-th makes one hand: the places of each store, and of each prefix
    in it, go to all hands alike, and within a hand the order is as it was."""
    spread = sorted(range(len(rows)), key=lambda rank: (*_group(rows[rank][0]), rank))
    hands = [sorted(spread[part::parts]) for part in range(parts)]
    return [rows[hands[place % parts][place // parts]] for place in range(len(rows))]


def _group(canonical: str) -> tuple[str, str]:
    """A place's store (scheme and host, or the first directory of a file system: a mount) and its first directory in it."""
    scheme, _, rest = canonical.partition("://")
    host, _, path = rest.partition("/")
    first, _, deeper = path.partition("/")
    return (f"{scheme}://{host}", first) if host else (f"{scheme}:///{first}", deeper.partition("/")[0])


def _store(location: str) -> str:
    return _group(canonical_location(location))[0]


def _json(state: str, message: str) -> str:
    return json.dumps(answered(state, message))


class Opener:
    """One opener process, replaced when it hangs or dies."""

    def __init__(self, spec: SourceSpec, timeout: float) -> None:
        self._timeout = timeout
        self._silent: Counter[str] = Counter()
        self._child: Child | None = None
        self._storage: dict[str, str] = {}
        self._broken: str | None = None
        try:
            self._storage = dict(connector(spec.impl).configure(spec.properties).storage)
        except FederatorError as error:
            self._broken = error.message

    def look(self, location: str) -> dict[str, Any]:
        """``looking.look`` of one location."""
        (text,) = self.look_each([location], math.inf)
        found: dict[str, Any] = json.loads(text)
        return found

    def look_each(self, locations: Sequence[str], until: float) -> Iterator[str]:
        """``looking.look`` of each location in turn, as JSON, until the time ``until`` (seconds since the epoch).

        ``unreachable`` is what does not answer in time, or whose store did not a few times in a row.
        """
        answered_now = 0
        while answered_now < len(locations) and time.time() < until:
            for text in self._some(locations[answered_now:], until):
                yield text
                answered_now += 1

    def _some(self, locations: Sequence[str], until: float) -> Iterator[str]:
        """The answers up to the first location that is not answered as it should be, with that one's."""
        if (objection := self._objection(locations[0])) is not None:
            yield _json("unreachable", objection)
            return
        if self._silent:
            locations = list(takewhile(lambda location: self._objection(location) is None, locations))
        self._child = self._child or Child("federator.pipeline.opener")
        requests = ({"location": location, "storage": self._storage} for location in locations)
        heard = 0
        try:
            for text in self._child.ask_each(requests, self._timeout):
                if self._silent:
                    self._silent.pop(_store(locations[heard]), None)
                heard += 1
                yield text
                if time.time() >= until:
                    return
        except ChildDied:
            yield _json("corrupt", "opening it ended the process that opened it")
        except TimeoutError:
            self._silent[_store(locations[heard])] += 1
            yield _json("unreachable", f"no answer within {self._timeout:g} s")
        finally:
            if heard < len(locations):
                self._kill()

    def _objection(self, location: str) -> str | None:
        if self._broken is not None:
            return self._broken
        if not self._silent or self._silent[store := _store(location)] < _PATIENCE:
            return None
        return f"not asked: {store} did not answer before"

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Opener:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
