"""Verify: opens each distinct location with pylance, in processes that can be killed, spread over Spark's tasks."""

from __future__ import annotations

import json
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

_DDL = "canonical string, location string, answer string"
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
                wanted = batch.column("location").to_pylist()
                looks = takewhile(lambda _: time.time() < end, wanted)
                answers = [json.dumps(opener.look(location)) for location in looks]
                opened = batch.slice(0, len(answers))
                yield pa.RecordBatch.from_arrays(
                    [opened.column("canonical"), opened.column("location"), pa.array(answers, pa.string())],
                    names=["canonical", "location", "answer"],
                )

    for row in frame.mapInArrow(open_all, _DDL).toLocalIterator():
        yield {
            "canonical": row["canonical"], "location": row["location"], "checked_at": time.time(), "checked_through": spec.name,
            **json.loads(row["answer"]),
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
        """``looking.look`` in the child; ``unreachable`` if it does not answer in time, or its store did not a few times in a row."""
        if self._broken is not None:
            return answered("unreachable", self._broken)
        store, _ = _group(canonical_location(location))
        if self._silent[store] >= _PATIENCE:
            return answered("unreachable", f"not asked: {store} did not answer before")
        if self._child is None:
            self._child = Child("federator.pipeline.opener")
        try:
            found = self._child.ask({"location": location, "storage": self._storage}, self._timeout)
        except ChildDied:
            self._kill()
            return answered("corrupt", "opening it ended the process that opened it")
        except TimeoutError:
            self._kill()
            self._silent[store] += 1
            return answered("unreachable", f"no answer within {self._timeout:g} s")
        del self._silent[store]
        return found

    def _kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Opener:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
