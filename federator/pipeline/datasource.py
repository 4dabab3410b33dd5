"""``spark.read.format("lance_catalog")``: a catalog's crawl as a DataFrame, in any Spark session.

Options: ``config`` (a configuration file) and ``source`` (a name in it); or ``spec``, a SourceSpec as JSON. Both hold secret
references only; they are resolved in the process that opens the catalog. ``only``, a JSON list of namespaces in text form, reads no
others. A live crawl is read again by every action on the
DataFrame: write it somewhere first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from federator.connector import ConfigError, SourceSpec
from federator.connector.calls import Counts, Meter
from federator.model import Path, parse_key
from federator.pipeline.columns import DDL
from federator.pipeline.lean import hide_pandas_in_own_session
from federator.pipeline.reading import Slot, read_slot, slots
from federator.registry import connector

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_DEADLINE = 600.0

# Spark's planners, whose main module is Spark's own, import this one first of ours.
hide_pandas_in_own_session()


class CatalogPartition(InputPartition):
    """One crawl task. ``planned`` are the calls that planning made, in one of them."""

    def __init__(self, slot: Slot, planned: Counts) -> None:
        super().__init__(slot.number)
        self.slot = slot
        self.planned = planned


class LanceCatalogSource(DataSource):
    """The Python Data Source; registered by the session under its short name."""

    @classmethod
    def name(cls) -> str:
        return "lance_catalog"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: Any) -> LanceCatalogReader:  # noqa: ARG002 - Spark passes it by this name
        return LanceCatalogReader(*_options(dict(self.options)))


class LanceCatalogReader(DataSourceReader):
    """Plans slots where Spark plans, reads them where Spark runs tasks."""

    def __init__(self, spec: SourceSpec, deadline: float, only: list[Path] | None) -> None:
        self.spec = spec
        self.deadline = deadline
        self.only = only

    def partitions(self) -> Sequence[CatalogPartition]:
        concurrency, meter = connector(self.spec.impl).concurrency(self.spec.properties), Meter()
        cut = slots(self.spec, concurrency, self.deadline, meter, only=self.only)
        return [CatalogPartition(slot, meter.take()) for slot in cut]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Only reading needs Arrow; planning, in processes of its own, starts sooner without.
        from federator.pipeline import staging

        assert isinstance(partition, CatalogPartition)
        meter = Meter()

        def calls() -> str:
            counts = meter.take()
            counts.add(partition.planned)
            return counts.to_json()

        items = read_slot(self.spec, partition.slot, self.deadline, meter)
        return staging.batches(items, source=self.spec.name, shard=partition.slot.number, began_at=time.time(), calls=calls)


def _options(options: dict[str, str]) -> tuple[SourceSpec, float, list[Path] | None]:
    deadline = float(options.get("deadline", DEFAULT_DEADLINE))
    only = [parse_key(key) for key in json.loads(options["only"])] if "only" in options else None
    if "spec" in options:
        return SourceSpec(**json.loads(options["spec"])), deadline, only
    if "source" not in options or "config" not in options:
        raise ConfigError("lance_catalog needs the options config and source", hint='.option("config", "federator.toml").option("source", "lake")')  # fmt: skip  # noqa: E501
    from federator.settings import load

    return load(FilePath(options["config"])).source(options["source"]).spec, deadline, only
