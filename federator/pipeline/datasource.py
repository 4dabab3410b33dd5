"""``spark.read.format("lance_catalog")``: a catalog's crawl as a DataFrame, in any Spark session.

Options: ``config`` (a configuration file) and ``source`` (a name in it), or ``spec``, a SourceSpec as JSON, and ``deadline``, the
seconds for one shard. ``deadline`` may be omitted with ``config``: it is then the source's. A configuration and a spec contain only
secret references, which are resolved in the process that opens the catalog. ``only``, a JSON list of namespaces (path keys), limits
the crawl to them. Every action on the DataFrame reads the catalog again, so write it to storage first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from federator.connector import ConfigError, SourceSpec
from federator.connector.call_metrics import CallCounts
from federator.model import Path, parse_path_key
from federator.pipeline.crawl import plan_metered_tasks, read_task_batches
from federator.pipeline.crawl_columns import DDL
from federator.pipeline.shard_reader import CrawlTask

if TYPE_CHECKING:
    import pyarrow as pa


class CatalogPartition(InputPartition):
    """One crawl task. ``planning_calls`` are those of the planning, in the first task."""

    def __init__(self, task: CrawlTask, planning_calls: CallCounts) -> None:
        super().__init__(task.number)
        self.task = task
        self.planning_calls = planning_calls


class LanceCatalogSource(DataSource):
    """The Python data source. Register it in a session, which then knows it by its short name."""

    @classmethod
    def name(cls) -> str:
        return "lance_catalog"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: Any) -> LanceCatalogReader:  # noqa: ARG002 - Spark passes the argument by this name
        return LanceCatalogReader(*_parse_options(dict(self.options)))


class LanceCatalogReader(DataSourceReader):
    """Plans crawl tasks where Spark plans, and reads them where Spark runs tasks."""

    def __init__(self, spec: SourceSpec, deadline: float, only: list[Path] | None) -> None:
        self.spec = spec
        self.deadline = deadline
        self.only = only

    def partitions(self) -> Sequence[CatalogPartition]:
        return [CatalogPartition(*metered) for metered in plan_metered_tasks(self.spec, self.deadline, self.only)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, CatalogPartition)
        return read_task_batches(self.spec, partition.task, partition.planning_calls, self.deadline)


def _parse_options(options: dict[str, str]) -> tuple[SourceSpec, float, list[Path] | None]:
    only = [parse_path_key(key) for key in json.loads(options["only"])] if "only" in options else None
    if "spec" in options:
        if "deadline" not in options:
            raise ConfigError(
                "lance_catalog needs the option deadline beside spec", hint='.option("deadline", "600"), in seconds'
            )
        return SourceSpec(**json.loads(options["spec"])), float(options["deadline"]), only
    if "source" not in options or "config" not in options:
        raise ConfigError("lance_catalog needs the options config and source", hint='.option("config", "federator.toml").option("source", "lake")')  # fmt: skip  # noqa: E501
    from federator.settings import load_settings

    source = load_settings(FilePath(options["config"])).source(options["source"])
    return source.spec, float(options.get("deadline", source.deadline)), only
