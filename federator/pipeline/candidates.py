"""Plan candidates: every target path of a mirror that is not settled, decided inside Spark tasks.

Origin tables, ledger entries and target tables are keyed by target path, brought together by one shuffle, and read as sorted
streams: the rows of one path are one cell, and ``planning.decide`` says what to do about it. Only decisions leave the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from federator.index.readers import TABLES, IndexReader
from federator.model import TableRecord, parse_key, path_key
from federator.model.rows import table_record
from federator.pipeline.diff import SMALL, read_ranges, spark_parallelism
from federator.pipeline.frames import local_frame
from federator.planning.changes import Change, Decision, Refusal
from federator.planning.decide import Cell, Knowledge, LedgerEntry, OriginState, decide, refuse_desired
from federator.planning.mapping import Desired, MirrorContext, desire, selected, target_path
from federator.planning.reasons import Reason

_TABLES_DDL = ", ".join(f"`{name}` string" for name in TABLES)
#: tag: d(esired), l(edger), t(arget), r(efused)
_CELL_DDL = "cell string, tag string, origin string, digest string, body string"
_CELL = pa.schema([(name, pa.string()) for name in ("cell", "tag", "origin", "digest", "body")])


@dataclass(frozen=True, slots=True)
class Candidates:
    """The decisions of one mirror, and how many origin tables it selects, other mirrors' copies apart."""

    decisions: list[Decision]
    selected: int


def candidates(
    spark: SparkSession, reader: IndexReader, context: MirrorContext, knowledge: Knowledge,
    ledger: Sequence[Mapping[str, Any]], *, origin_revision: int, target_revision: int,
) -> Candidates:  # fmt: skip
    """Decides every unsettled cell. ``ledger`` are the mirror's table entries (``index.ledger.with_origins``)."""
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
    for row in decided.toLocalIterator():
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
                if not selected(context.rule, parse_key(row["path"])):
                    continue
                desired = desire(context, table_record(context.rule.origin, row))
                cell = path_key(target_path(context, desired.origin.path))
                refusal = refuse_desired(context, desired)
                if refusal is not None:
                    rows.append((cell, "r", row["path"], "", json.dumps({**refusal.to_json(), "target_path": cell})))
                else:
                    rows.append((cell, "d", row["path"], row["digest"], json.dumps(row)))
            yield _batch(rows)

    return run


def _target() -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _batch([(row["path"], "t", "", row["digest"], json.dumps(row)) for row in batch.to_pylist()])

    return run


def _ledger(spark: SparkSession, ledger: Sequence[Mapping[str, Any]]) -> DataFrame:
    rows = [(row["target_path"], "l", row["origin_path"], "", json.dumps(dict(row))) for row in ledger]
    return local_frame(spark, _CELL.names, rows)


def _decide(context: MirrorContext, knowledge: Knowledge) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        found: list[tuple[str, str]] = []
        count = 0
        for cell, group in groupby(rows, key=lambda row: row["cell"]):
            members = list(group)
            count += sum(row["tag"] == "d" or (row["tag"] == "r" and not _copy(row)) for row in members)
            refused = [("refusal", row["body"]) for row in members if row["tag"] == "r"]
            found += refused
            # A refused origin still exists: what we once declared at its path stays, whatever becomes of unselected ones.
            if any(row["tag"] == "d" for row in members) or not refused:
                members = [row for row in members if row["tag"] != "r"]
                if _settled(context, members):
                    continue
                decision = decide(context, _cell(context, cell, members), knowledge)
                if decision is not None:
                    kind = "change" if isinstance(decision, Change) else "refusal"
                    found.append((kind, json.dumps(decision.to_json())))
        found.append(("selected", str(count)))
        kinds, bodies = zip(*found, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(kinds, pa.string()), pa.array(bodies, pa.string())], names=["kind", "body"])

    return run


def _settled(context: MirrorContext, members: list[dict[str, str]]) -> bool:
    """Whether nothing has changed since the ledger entry was written; and whether there is anything to decide at all."""
    by_tag = {row["tag"]: row for row in members}
    if set(by_tag) == {"t"}:
        return True
    if len(members) != 3 or set(by_tag) != {"d", "l", "t"}:
        return False
    entry = json.loads(by_tag["l"]["body"])
    return bool(
        entry["origin_path"] == by_tag["d"]["origin"]
        and entry["origin_digest"] == by_tag["d"]["digest"]
        and entry["target_digest"] == by_tag["t"]["digest"]
        and entry["mapping_digest"] == context.rule.mapping_digest
    )


def _cell(context: MirrorContext, key: str, members: list[dict[str, str]]) -> Cell:
    wanted: list[Desired] = []
    target: TableRecord | None = None
    entries: list[LedgerEntry] = []
    for row in members:
        body = json.loads(row["body"])
        if row["tag"] == "d":
            wanted.append(desire(context, table_record(context.rule.origin, body)))
        elif row["tag"] == "t":
            target = table_record(context.rule.target, body)
        else:
            declared = json.loads(body["declared"] or "{}")
            entries.append(LedgerEntry(body["origin_path"], body["op_id"], body["native_id"], declared, _origin(context, body)))
    # An entry of the wanted origin comes first: an older one at the same path is only history.
    origins = {desired.origin.key for desired in wanted}
    entries.sort(key=lambda entry: (entry.origin_path not in origins, entry.origin_path))
    return Cell(parse_key(key), wanted, target, entries[0] if entries else None)


def _origin(context: MirrorContext, entry: Mapping[str, Any]) -> OriginState:
    """Only an origin that the mirror still takes in under the entry's name can be missed: the others are not looked for."""
    origin = parse_key(entry["origin_path"])
    here = entry["origin_source"] == context.rule.origin and selected(context.rule, origin)
    if not here or path_key(target_path(context, origin)) != entry["target_path"]:
        return OriginState.UNSELECTED
    return OriginState.SELECTED if entry["origin_there"] else OriginState.ABSENT


def _copy(refused: Mapping[str, str]) -> bool:
    return bool(json.loads(refused["body"])["reason"] == Reason.LOOP)


def _batch(rows: list[tuple[str, str, str, str, str]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_CELL)
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=_CELL)
