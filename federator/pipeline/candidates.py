"""Plan candidates: every target path of a mirror that is not settled, decided inside Spark tasks.

Origin tables, ledger entries and target tables are keyed by target path, brought together by one shuffle, and read as sorted
streams: the rows of one path are one cell, and ``planning.cells`` decides it. Only decisions leave the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from federator.index.readers import TABLES, IndexReader
from federator.model.rows import table_record
from federator.pipeline.diff import SMALL, read_ranges, spark_parallelism
from federator.pipeline.frames import local_frame
from federator.planning.cells import Candidates, LedgerRow, Member, Members, decide_members, place
from federator.planning.changes import Change, Decision, Refusal
from federator.planning.decide import Knowledge
from federator.planning.mapping import MirrorContext

_TABLES_DDL = ", ".join(f"`{name}` string" for name in TABLES)
#: tag: d(esired), l(edger), t(arget), r(efused)
_CELL_DDL = "cell string, tag string, origin string, digest string, body string"
_CELL = pa.schema([(name, pa.string()) for name in ("cell", "tag", "origin", "digest", "body")])


def candidates(
    spark: SparkSession, reader: IndexReader, context: MirrorContext, knowledge: Knowledge,
    ledger: Sequence[LedgerRow], *, origin_revision: int, target_revision: int,
) -> Candidates:  # fmt: skip
    """Decides every unsettled cell. ``ledger`` are the mirror's table entries."""
    rule = context.rule
    parts = spark_parallelism(spark)
    spans = {name: reader.ranges(name, parts) for name in (rule.origin, rule.target)}
    tables = {
        name: read_ranges(spark, reader, name, revision, TABLES, _TABLES_DDL, spans[name], is_table=True)
        for name, revision in ((rule.origin, origin_revision), (rule.target, target_revision))
    }
    origins = tables[rule.origin].mapInArrow(_desire(context), _CELL_DDL)
    targets = tables[rule.target].mapInArrow(_target(), _CELL_DDL)
    together = origins.union(targets).union(_ledger(spark, ledger))
    small = len(ledger) <= SMALL and all(len(ranges) == 1 for ranges in spans.values())
    cells = (together.coalesce(1) if small else together.repartition(parts, "cell")).sortWithinPartitions("cell", "tag")
    decided = cells.mapInArrow(_decide(context, knowledge), "kind string, body string")
    decisions: list[Decision] = []
    count = 0
    # Two partitions at a time: all of them at once could be more than there is memory for.
    for row in decided.toLocalIterator(prefetchPartitions=True):
        if row["kind"] == "selected":
            count += int(row["body"])
        elif row["kind"] == "change":
            decisions.append(Change.from_json(json.loads(row["body"])))
        else:
            decisions.append(Refusal.from_json(json.loads(row["body"])))
    return Candidates(decisions, count)


def _desire(context: MirrorContext) -> Any:
    """Origin rows → one cell row each: desired at a path, or refused."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for row in batch.to_pylist():
                placed = place(context, table_record(context.rule.origin, row))
                if placed is None:
                    continue
                cell, refusal = placed
                if refusal is not None:
                    rows.append((cell, "r", row["path"], "", json.dumps(refusal.to_json())))
                else:
                    rows.append((cell, "d", row["path"], row["digest"], json.dumps(row)))
            yield _batch(rows)

    return run


def _target() -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _batch([(row["path"], "t", "", row["digest"], json.dumps(row)) for row in batch.to_pylist()])

    return run


def _ledger(spark: SparkSession, ledger: Sequence[LedgerRow]) -> DataFrame:
    rows = [(row.target_path, "l", row.origin_path, "", json.dumps(asdict(row))) for row in ledger]
    return local_frame(spark, _CELL.names, rows)


def _decide(context: MirrorContext, knowledge: Knowledge) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        found: list[tuple[str, str]] = []
        count = 0
        for cell, group in groupby(rows, key=lambda row: row["cell"]):
            members = _members(context, group)
            count += members.selected
            for decision in decide_members(context, knowledge, cell, members):
                kind = "change" if isinstance(decision, Change) else "refusal"
                found.append((kind, json.dumps(decision.to_json())))
        found.append(("selected", str(count)))
        kinds, bodies = zip(*found, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), pa.array(bodies, pa.string())], names=["kind", "body"])

    return run


def _members(context: MirrorContext, rows: Iterable[Mapping[str, str]]) -> Members:
    members = Members()
    for row in rows:
        match row["tag"]:
            case "d":
                members.wanted.append(_member(context.rule.origin, row["origin"], row))
            case "t":
                members.target = _member(context.rule.target, row["cell"], row)
            case "l":
                members.entries.append(LedgerRow(**json.loads(row["body"])))
            case _:
                members.refused.append(Refusal.from_json(json.loads(row["body"])))
    return members


def _member(source: str, key: str, row: Mapping[str, str]) -> Member:
    return Member(key, row["digest"], lambda: table_record(source, json.loads(row["body"])))


def _batch(rows: list[tuple[str, str, str, str, str]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_CELL)
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=_CELL)
