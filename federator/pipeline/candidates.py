"""Plan candidates: decide every changed target path of a mirror inside Spark tasks.

Origin tables, ledger entries and target tables are keyed by target path, joined by one shuffle, and read as sorted streams. The
rows of one path are one cell, and ``planning.cells`` decides it. Only decisions leave the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from federator.model.rows import table_from_row
from federator.pipeline.diff import read_ranges
from federator.pipeline.parallelism import spark_parallelism
from federator.pipeline.small_crawls import MAX_ROWS, run_in_task
from federator.planning.cells import Candidates, CellInputs, LazyRecord, LedgerCounts, LedgerRow, assign_cell, decide_cell
from federator.planning.changes import Change, Decision, Refusal
from federator.planning.decision import CrawlEvidence
from federator.planning.mapping import MirrorContext
from federator.store.partition_reader import TABLE_COLUMNS, IndexReader, KeyRange

# Up to this many rows of origin, target and ledger together, one task decides all cells. It holds them in memory, with their content.
_MAX_ROWS_IN_TASK = 5_000
_TABLES_DDL = ", ".join(f"`{name}` string" for name in TABLE_COLUMNS)
# What a row of a cell is: a desired table, a ledger entry, a refused origin, or the target's table. ``body`` is its JSON.
_DESIRED, _LEDGER, _REFUSED, _TARGET = "d", "l", "r", "t"
_CELL_DDL = "cell string, tag string, origin string, digest string, body string"
_CELL = pa.schema([(name, pa.string()) for name in ("cell", "tag", "origin", "digest", "body")])


def decide_candidates(
    spark: SparkSession, reader: IndexReader, mirror: MirrorContext, evidence: CrawlEvidence, *,
    origin_revision: int, target_revision: int,
) -> Candidates:  # fmt: skip
    """Decide every changed cell."""
    rule = mirror.rule
    sides = {rule.origin: origin_revision, rule.target: target_revision}
    in_ledger = reader.count_ledger(rule.name)
    if in_ledger + sum(reader.count_records(name, revision) for name, revision in sides.items()) <= _MAX_ROWS_IN_TASK:
        rows = run_in_task(spark, lambda: _decide_in_task(reader, mirror, evidence, sides))
    else:
        rows = _decide_in_partitions(spark, reader, mirror, evidence, sides, is_ledger_small=in_ledger <= MAX_ROWS)
    decisions: list[Decision] = []
    selected_count, counts = 0, LedgerCounts()
    for kind, body in rows:
        content = json.loads(body)
        if kind == "change":
            decisions.append(Change.from_json(content))
        elif kind == "refusal":
            decisions.append(Refusal.from_json(content))
        else:
            selected_count += content["selected_count"]
            counts.by_target_namespace.update(content["by_target_namespace"])
            counts.existing_by_origin_namespace.update(content["existing_by_origin_namespace"])
    return Candidates(decisions, selected_count, counts)


def _decide_in_task(
    reader: IndexReader, mirror: MirrorContext, evidence: CrawlEvidence, sides: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Decide the cells of small sources in this process. A sort of Spark would need a Python process for each input."""
    rule = mirror.rule
    tables = {
        name: reader.read_range(name, revision, TABLE_COLUMNS, KeyRange(None, None), is_table=True) if revision else iter(())
        for name, revision in sides.items()
    }
    inputs = [
        *_build_origin_mapper(mirror)(tables[rule.origin]), *_build_target_mapper()(tables[rule.target]),
        *_map_ledger(reader.read_ledger(rule.name, rule.origin, sides[rule.origin], rule.target, KeyRange(None, None))),
    ]  # fmt: skip
    rows = pa.Table.from_batches(inputs, schema=_CELL).sort_by([("cell", "ascending"), ("tag", "ascending")])
    decided = _build_cell_decider(mirror, evidence)(iter(rows.to_batches()))
    return [(row["kind"], row["body"]) for batch in decided for row in batch.to_pylist()]


def _decide_in_partitions(
    spark: SparkSession, reader: IndexReader, mirror: MirrorContext, evidence: CrawlEvidence, sides: Mapping[str, int], *,
    is_ledger_small: bool,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    rule = mirror.rule
    parts = spark_parallelism(spark)
    ranges = {name: reader.plan_ranges(name, parts) for name in sides}
    tables = {
        name: read_ranges(spark, reader, name, revision, TABLE_COLUMNS, _TABLES_DDL, ranges[name], is_table=True)
        for name, revision in sides.items()
    }
    origins = tables[rule.origin].mapInArrow(_build_origin_mapper(mirror), _CELL_DDL)
    targets = tables[rule.target].mapInArrow(_build_target_mapper(), _CELL_DDL)
    inputs = origins.union(targets).union(_read_ledger(spark, reader, mirror, sides[rule.origin], ranges[rule.target]))
    small = is_ledger_small and all(len(split) == 1 for split in ranges.values())
    cells = (inputs.coalesce(1) if small else inputs.repartition(parts, "cell")).sortWithinPartitions("cell", "tag")
    decided = cells.mapInArrow(_build_cell_decider(mirror, evidence), "kind string, body string")
    # Fetch two partitions at a time: all at once may need more memory than there is.
    for row in decided.toLocalIterator(prefetchPartitions=True):
        yield row["kind"], row["body"]


def _build_origin_mapper(mirror: MirrorContext) -> Any:
    """Return a function that maps each origin row to one cell row: desired at a path, or refused."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for row in batch.to_pylist():
                assignment = assign_cell(mirror, table_from_row(mirror.rule.origin, row))
                if assignment is None:
                    continue
                cell, refusal = assignment
                if refusal is not None:
                    rows.append((cell, _REFUSED, row["path"], "", json.dumps(refusal.to_json())))
                else:
                    rows.append((cell, _DESIRED, row["path"], row["digest"], json.dumps(row)))
            yield _batch(rows)

    return run


def _build_target_mapper() -> Any:
    """Return a function that maps each target row to one cell row."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _batch([(row["path"], _TARGET, "", row["digest"], json.dumps(row)) for row in batch.to_pylist()])

    return run


def _read_ledger(
    spark: SparkSession, reader: IndexReader, mirror: MirrorContext, revision: int, ranges: Sequence[KeyRange]
) -> DataFrame:
    """Return the ledger's cell rows, with one task per range of target paths: the driver does not hold the ledger."""
    rule = mirror.rule

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _map_ledger(reader.read_ledger(rule.name, rule.origin, revision, rule.target, ranges[number]))

    return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(read, _CELL_DDL)


def _map_ledger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield _batch([(row["target_path"], _LEDGER, row["origin_path"], "", json.dumps(row)) for row in batch.to_pylist()])


def _build_cell_decider(mirror: MirrorContext, evidence: CrawlEvidence) -> Any:
    """Return a function that decides the cells of a partition: it returns changes and refusals, and one row of ``counts``."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        decisions: list[tuple[str, str]] = []
        selected_count, counts = 0, LedgerCounts()
        for cell, group in groupby(rows, key=lambda row: row["cell"]):
            inputs = _collect_inputs(mirror, group)
            selected_count += inputs.selected_count
            counts.add(inputs.ledger_rows)
            for decision in decide_cell(mirror, evidence, cell, inputs):
                kind = "change" if isinstance(decision, Change) else "refusal"
                decisions.append((kind, json.dumps(decision.to_json())))
        # Not ``asdict``, which would count the items of a Counter.
        numbers = {field.name: getattr(counts, field.name) for field in fields(counts)}
        decisions.append(("counts", json.dumps({"selected_count": selected_count, **numbers})))
        kinds, bodies = zip(*decisions, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), pa.array(bodies, pa.string())], names=["kind", "body"])

    return run


def _collect_inputs(mirror: MirrorContext, rows: Iterable[Mapping[str, str]]) -> CellInputs:
    inputs = CellInputs()
    for row in rows:
        tag = row["tag"]
        if tag == _DESIRED:
            inputs.origins.append(_lazy_record(mirror.rule.origin, row["origin"], row))
        elif tag == _TARGET:
            inputs.target = _lazy_record(mirror.rule.target, row["cell"], row)
        elif tag == _LEDGER:
            inputs.ledger_rows.append(LedgerRow(**json.loads(row["body"])))
        else:
            inputs.refusals.append(Refusal.from_json(json.loads(row["body"])))
    return inputs


def _lazy_record(source: str, key: str, row: Mapping[str, str]) -> LazyRecord:
    return LazyRecord(key, row["digest"], lambda: table_from_row(source, json.loads(row["body"])))


def _batch(rows: list[tuple[str, str, str, str, str]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_CELL)
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=_CELL)
