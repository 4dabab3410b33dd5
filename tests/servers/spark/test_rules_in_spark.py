"""Rules that are also Spark expressions: equal to the pure function on every cell, each in one job."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from federator.connector.call_metrics import CallCounts
from federator.model import ROOT, Coverage, Kind, NamespaceRecord, Record, TableRecord, failed_evidence, fold_digest
from federator.model.rows import RECORD_COLUMNS, record_to_row
from federator.pipeline import candidates
from federator.pipeline.crawl_columns import COLUMNS
from federator.pipeline.staging import SCHEMA, coverage_from_row, crawl_batches
from federator.pipeline.validation import group_by_namespace, validate_crawl
from federator.planning.crawls import Arrival, validate_arrivals
from federator.planning.publication import Effect, Version, compare_versions, known_time
from federator.runtime.redaction import register_secret
from federator.store.lexemes import row_lexemes
from federator.store.stores import value_at
from tests.fixtures.spark import Worlds
from tests.prove.rules_in_memory import collect_arrivals

BEGAN_AT, NOW = 100.0, 220.0
INDEXED = [None, *(Version(kind, "d1", at) for kind, at in product(Kind, (None, 50.0, 100.0, 150.0, 250.0)))]
CRAWLED = [None, *(Version(kind, digest, at) for kind, digest, at in product(Kind, ("d1", "d2"), (None, 40.0, 100.0, 200.0)))]


@pytest.mark.usefixtures("spark")
def test_the_effect_of_a_crawl_on_one_record() -> None:
    """Every indexed version (kind, last observation) with every crawled one (kind, digest, begin), and each without the other."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from federator.pipeline.diff import effect_column
    from federator.pipeline.local_frames import local_frame

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
        number: compare_versions(indexed and indexed._replace(at=known_time(indexed.at, NOW)), crawled, BEGAN_AT).value
        for number, (indexed, crawled) in enumerate(cells)
    }
    assert found == expected
    assert set(expected.values()) == {effect.value for effect in Effect}


def _columns(version: Version | None) -> tuple[object, ...]:
    return (None, None, None, None) if version is None else ("p", version.kind.value, version.digest, version.at)  # type: ignore[attr-defined]


STORES = {"minio": "minio:9000", "file": "file:///", "public": ""}
LOCATIONS = [
    prefix + rest
    for prefix, rest in product(
        ("file:///", "file://", "file:/", "FILE:///", "s3://", "s3://file:///", "", " "), ("", "a", "%", "b/k.lance")
    )
]


@pytest.mark.usefixtures("spark")
def test_the_store_of_a_location_in_reports() -> None:
    """Every source, also one without a store, with every beginning of a location."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from federator.pipeline.local_frames import local_frame
    from federator.pipeline.reports.inputs import value_column

    frame = local_frame(SparkSession.active(), ("canonical",), [(location,) for location in LOCATIONS])
    sources = [*STORES, "unknown"]
    columns = [value_column(STORES, source, F.col("canonical")).alias(source) for source in sources]
    by_canonical = {
        row["canonical"]: [row[source] for source in sources] for row in frame.select("canonical", *columns).collect()
    }
    assert by_canonical == {location: [value_at(STORES, source, location) for source in sources] for location in LOCATIONS}
    assert {store for row in by_canonical.values() for store in row} == set(STORES.values())


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
            stated = Coverage("lake", (name,), failed_evidence(1, "absent"), failed_evidence(1, "absent"), found=False)
        if name == "failing":
            stated = Coverage("lake", (name,), failed_evidence(17, "cut off"), failed_evidence(17, "cut off"), 5, 0)
        shards.append([*(inside[1:] if name == "lost" else inside), *([stated] if name != "unstated" else [])])
        shards += [[stated]] if name == "twice" else []
    return shards


def _stated(namespace: tuple[str, ...], records: list[Record]) -> Coverage:
    return Coverage("lake", namespace, records=len(records), digest=fold_digest(record.digest for record in records))


@pytest.mark.usefixtures("spark")
def test_what_arrives_of_each_namespace(tmp_path: Path) -> None:
    """Sound, lost, empty, absent, covered twice, without Coverage, failing and undescribed namespaces, of two levels."""
    from pyspark.sql import SparkSession

    shards, spark = crawl_of_every_kind(), SparkSession.active()
    for number, shard in enumerate(shards):
        handed = crawl_batches(shard, source="lake", shard=number, began_at=BEGAN_AT, calls=CallCounts().to_json)
        with pq.ParquetWriter(tmp_path / f"{number}.parquet", SCHEMA) as writer:
            for batch in handed:
                writer.write_batch(batch)
    rows = spark.read.parquet(str(tmp_path))
    found = {}
    for row in group_by_namespace(rows).collect():
        if row["key"] is not None:
            stated = coverage_from_row(row["stated"].asDict()) if row["stated"] else None
            found[row["key"]] = Arrival(stated, row["times"], row["arrived"], row["fold"] or 0, row["listed"])
    expected = collect_arrivals(item for shard in shards for item in shard)
    assert found == expected
    proven = validate_arrivals("lake", expected)
    complete = {key for key, coverage in proven.coverage.items() if coverage.complete}
    assert complete == {"", "sound", "empty", "undescribed"}
    assert set(proven.coverage) == {"", *NAMESPACES, "sound$below"} - {"gone"}
    for small in (False, True):
        crawled = validate_crawl(spark, "lake", str(tmp_path), began_at=BEGAN_AT, small=small)
        assert (crawled.coverage, crawled.namespaces) == (proven.coverage, proven.namespaces)
        assert crawled.record_count == sum(arrival.records for arrival in expected.values())


def test_a_mirror_is_decided_alike_in_one_task_and_in_partitions(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    """New, changed, unchanged, foreign, unselected and vanished tables, with their ledger."""
    world = worlds(mirrors={"m": {"from": "a", "to": "b", "exclude": ["sales$tmp"], "misses_before_delete": 1, "min_miss_interval": "0s"}})  # fmt: skip  # noqa: E501
    a, b = world.store("a"), world.store("b")
    for name in ("kept", "changed", "gone"):
        a.add_table(("sales", name), f"s3://a/sales/{name}")
    world.sync()
    a.add_table(("sales", "changed"), "s3://a/sales/changed", properties={"team": "x"})
    a.remove(("sales", "gone"))
    for name in ("new", "tmp", "taken"):
        a.add_table(("sales", name), f"s3://a/sales/{name}")
    b.add_table(("sales", "taken"), "s3://b/other")
    world.federator.crawl()
    plans = []
    for limit in (5_000, -1):
        monkeypatch.setattr(candidates, "_MAX_ROWS_IN_TASK", limit)
        (plan,) = world.federator.plan(refresh=False).plans
        plans.append(plan.to_json())
    assert plans[0] == plans[1]
    assert {change["action"] for change in plans[0]["changes"]} == {"declare_table", "update_table", "deregister_table"}
    assert plans[0]["refusals"]


@pytest.mark.usefixtures("spark")
def test_search_words_of_tasks_have_no_secret_that_only_the_driver_knows(tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    from federator.pipeline.diff import RevisionDelta, StagedRecords
    from federator.pipeline.search_words import add_search_words
    from federator.pipeline.staging_area import StagingArea

    records = [
        NamespaceRecord("s", ("n",), {}),
        TableRecord("s", ("t",), "s3://b/t", {"k": "v"}),
        TableRecord("s", ("u",), "s3://b/u", doc="has driverspassword in it"),
    ]
    register_secret("driverspassword")
    frame = SparkSession.active().createDataFrame(
        [tuple(record_to_row(record)[name] for name in RECORD_COLUMNS) for record in records],
        ", ".join(f"{name} {COLUMNS[name]}" for name in RECORD_COLUMNS),
    )
    staging = StagingArea(SparkSession.active(), str(tmp_path))
    staged = StagedRecords(staging, staging.write(add_search_words(frame, "s").coalesce(1), "rows"))
    built = {row["path"]: row["words"] for batch in staged.read(["path", "words"]) for row in batch.to_pylist()}
    assert {path for path, words in built.items() if words is None} == {"n", "u"}
    assert built["t"] == row_lexemes("s", record_to_row(records[1]))
    completed = [row[-1] for row in RevisionDelta("s", records=staged).iter_inserts()]
    assert completed == [row_lexemes("s", record_to_row(record)) for record in records]
    assert completed[0] is None
    assert "driverspassword" not in completed[2]
    assert "password" not in completed[2]
    assert "it" in completed[2]
