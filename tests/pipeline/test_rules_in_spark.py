"""Rules that Spark states once more as an expression: equal to the pure function on every cell, each in one job."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from federator.connector.calls import Counts
from federator.model import ROOT, Coverage, Kind, NamespaceRecord, Record, TableRecord, failed, fold_digest
from federator.pipeline.columns import RECORD
from federator.pipeline.normalise import normalise, per_namespace
from federator.pipeline.staging import SCHEMA, batches, coverage_of
from federator.planning.crawls import Arrival, collect_arrivals, validate_crawl
from federator.planning.publication import Effect, Version, compare, known_time

BEGAN_AT, NOW = 100.0, 220.0
INDEXED = [None, *(Version(kind, "d1", at) for kind, at in product(Kind, (None, 50.0, 100.0, 150.0, 250.0)))]
CRAWLED = [None, *(Version(kind, digest, at) for kind, digest, at in product(Kind, ("d1", "d2"), (None, 40.0, 100.0, 200.0)))]


@pytest.mark.usefixtures("spark")
def test_the_effect_of_a_crawl_on_one_record() -> None:
    """Every indexed version (kind, last observation) with every crawled one (kind, digest, begin), and each without the other."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from federator.pipeline.diff import effect_column
    from federator.pipeline.frames import local_frame

    cells = [(i, c) for i, c in product(INDEXED, CRAWLED) if i is not None or c is not None]
    texts = [
        tuple(None if value is None else str(value) for value in (number, *_columns(indexed), *_columns(crawled)))
        for number, (indexed, crawled) in enumerate(cells)
    ]
    names = ("number", "i_path", "i_kind", "i_digest", "i_at", "s_path", "s_kind", "s_digest", "s_at")
    frame = local_frame(SparkSession.active(), names, texts)
    sides = [
        F.struct(
            F.col(f"{side}_path").alias("path"), F.col(f"{side}_kind").alias("kind"), F.col(f"{side}_digest").alias("digest"),
            F.col(f"{side}_at").cast("double").alias(at),
        ).alias(side)
        for side, at in (("i", "observed_at"), ("s", "began_at"))
    ]  # fmt: skip
    rows = frame.select("number", *sides).select("number", effect_column(BEGAN_AT, NOW).alias("effect")).collect()
    found = {int(row["number"]): row["effect"] for row in rows}
    expected = {
        number: compare(indexed and indexed._replace(at=known_time(indexed.at, NOW)), crawled, BEGAN_AT).value
        for number, (indexed, crawled) in enumerate(cells)
    }
    assert found == expected
    assert set(expected.values()) == {effect.value for effect in Effect}


def _columns(version: Version | None) -> tuple[object, ...]:
    return (None, None, None, None) if version is None else ("p", version.kind.value, version.digest, version.at)  # type: ignore[union-attr]


NAMESPACES = {"sound": 2, "lost": 3, "empty": 0, "gone": 0, "twice": 1, "unstated": 1, "failing": 1, "undescribed": 2}


def crawl_of_every_kind() -> list[list[Record | Coverage]]:
    """What the shards of one crawl hand over, with every way of not adding up."""
    root: list[Record] = [NamespaceRecord("lake", (name,)) for name in NAMESPACES if name != "gone"]
    shards: list[list[Record | Coverage]] = [[*root, _stated(ROOT, root)]]
    for name, size in NAMESPACES.items():
        kind = Kind.UNDESCRIBED if name == "undescribed" else Kind.TABLE
        inside: list[Record] = [TableRecord("lake", (name, f"t{number}"), kind=kind) for number in range(size)]
        inside += [NamespaceRecord("lake", (name, "below"))] if name == "sound" else []
        stated = _stated((name,), inside)
        if name == "gone":
            stated = Coverage("lake", (name,), failed(1, "absent"), failed(1, "absent"), found=False)
        if name == "failing":
            stated = Coverage("lake", (name,), failed(17, "cut off"), failed(17, "cut off"), 5, 0)
        shards.append([*(inside[1:] if name == "lost" else inside), *([stated] if name != "unstated" else [])])
        shards += [[stated]] if name == "twice" else []
    return shards


def _stated(namespace: tuple[str, ...], records: list[Record]) -> Coverage:
    return Coverage("lake", namespace, records=len(records), digest=fold_digest(record.digest for record in records))


@pytest.mark.usefixtures("spark")
def test_what_arrives_of_each_namespace(tmp_path: Path) -> None:
    """Sound, lost, empty, absent, covered twice, without Coverage, failing and undescribed namespaces, of two levels."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    shards, spark = crawl_of_every_kind(), SparkSession.active()
    for number, shard in enumerate(shards):
        handed = batches(shard, source="lake", shard=number, began_at=BEGAN_AT, calls=Counts().to_json)
        with pq.ParquetWriter(tmp_path / f"{number}.parquet", SCHEMA) as writer:
            for batch in handed:
                writer.write_batch(batch)
    rows = spark.read.parquet(str(tmp_path))
    found = {}
    for row in per_namespace(rows, rows.where(F.col("row") == RECORD)).collect():
        if row["key"] is not None:
            stated = coverage_of(row["stated"].asDict()) if row["stated"] else None
            found[row["key"]] = Arrival(stated, row["times"], row["arrived"], row["fold"] or 0, row["listed"])
    expected = collect_arrivals(item for shard in shards for item in shard)
    assert found == expected
    proven = validate_crawl("lake", expected)
    complete = {key for key, coverage in proven.coverage.items() if coverage.complete}
    assert complete == {"", "sound", "empty", "undescribed"}
    assert set(proven.coverage) == {"", *NAMESPACES, "sound$below"} - {"gone"}
    crawled = normalise(spark, "lake", str(tmp_path), began_at=BEGAN_AT)
    assert (crawled.coverage, crawled.namespaces) == (proven.coverage, proven.namespaces)
    assert crawled.total == sum(arrival.records for arrival in expected.values())
