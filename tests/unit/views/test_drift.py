"""Drift: each kind in an index, differences that are not drift, and the times of first and last detection."""

from __future__ import annotations

import time
from typing import Any

import pytest

from federator.model import LocationAliases, TableRecord
from federator.model.drift import DriftKind
from federator.planning.comparison import ColumnDifference, compare_columns, compare_mirrored_pair, compare_schema
from federator.planning.ownership import OwnershipMarker
from federator.planning.rule import LocationReplacement, MirrorRule
from federator.store import Index, drift_detection, ledger, verifications
from federator.views import drift
from tests.fixtures.index_content import fill, owned, table

RULES = {"m": MirrorRule(name="m", origin="lake", target="copy", location=(LocationReplacement("s3://lake/eu/", "s3a://us/"),))}


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


def mirrored(index: Index, path: str, *, mirror: str = "m") -> None:
    with index.write() as connection:
        ledger.upsert_entry(connection, owned("lake", path, "copy", mirror=mirror))


def opened(index: Index, canonical: str, state: str, schema: str | None = None) -> None:
    row = {"canonical": canonical, "location": canonical, "state": state, "schema": schema, "checked_at": time.time()} | {
        "checked_through": "lake", "access": "", "message": None, "version": None, "rows": None, "fragments": None,
    }  # fmt: skip
    with index.write() as connection:
        verifications.save_verifications(connection, [row])


def detect(index: Index, **filters: Any) -> list[tuple[str, str, str]]:
    drift_detection.refresh_drift(index, RULES)
    return [(item.kind, item.subject, item.other) for item in drift.list_drift(index, **filters)]


def test_catalogs_that_agree_have_no_drift(index: Index) -> None:
    marks = OwnershipMarker("i", "m", "lake$s$t").to_properties(("s", "t"))
    columns = '[{"name":"ID","type":"bigint"}]'
    fill(index, "lake", table("lake", "s", "t", properties={"team": "eu"}, schema=columns, location="s3://lake/eu/t"))
    fill(index, "copy", table("copy", "s", "t", properties={"team": "eu", **marks}, location="s3://us/t/"))
    mirrored(index, "s$t")
    opened(index, "s3://lake/eu/t", "valid", '[{"name":"id","type":"int64","nullable":true}]')
    assert detect(index) == []


def test_every_kind_is_found(index: Index) -> None:
    fill(
        index, "lake",
        table("lake", "s", "moved", location="s3://lake/eu/moved"), table("lake", "s", "said", properties={"team": "eu"}, doc="a"),
        table("lake", "s", "columns", schema='[{"name":"id","type":"int"},{"name":"old","type":"int"}]'), table("lake", "s", "lost"),
        table("lake", "s", "two", location="s3://lake/s/lost.lance/"), table("lake", "s", "Said", location="s3://lake/x"),
        table("lake", "s", "no_target"),
    )  # fmt: skip
    fill(
        index, "copy",
        table("copy", "s", "moved", location="s3://lake/eu/moved"), table("copy", "s", "said", properties={"team": "us"}, doc="b"),
        table("copy", "s", "no_origin", location="s3://lake/y"),
    )  # fmt: skip
    for path in ("s$moved", "s$said", "s$no_target", "s$no_origin", "s$neither"):
        mirrored(index, path)
    mirrored(index, "s$of_a_removed_mirror", mirror="removed")
    opened(index, "s3://lake/s/columns.lance", "valid", '[{"name":"id","type":"int64"},{"name":"new","type":"int64"}]')
    opened(index, "s3://lake/s/lost.lance", "missing")
    opened(index, "s3://lake/declared/by/nobody", "missing")
    assert detect(index) == [
        ("dangling_mirror", "copy$s$neither", "lake$s$neither"), ("dangling_mirror", "copy$s$no_origin", "lake$s$no_origin"),
        ("dangling_mirror", "copy$s$no_target", "lake$s$no_target"), ("duplicate", "lake$s$two", "lake$s$lost"),
        ("location_differs", "copy$s$moved", "lake$s$moved"), ("missing", "lake$s$lost", "s3://lake/s/lost.lance"),
        ("missing", "lake$s$two", "s3://lake/s/lost.lance"), ("name_clash", "lake$s$Said", "lake$s$said"),
        ("properties_differ", "copy$s$said", "lake$s$said"), ("schema_differs", "lake$s$columns", "s3://lake/s/columns.lance"),
    ]  # fmt: skip
    details = {seen.kind: seen.detail for seen in drift.list_drift(index)}
    assert details["schema_differs"] == "not stored: old; not declared: new"
    assert details["properties_differ"] == "doc, team"
    assert details["location_differs"] == "s3://lake/eu/moved, and not s3a://us/moved"
    assert {seen.subject: seen.detail for seen in drift.list_drift(index, kind="dangling_mirror")} == {
        "copy$s$neither": "mirror m: origin and target absent", "copy$s$no_origin": "mirror m: origin absent",
        "copy$s$no_target": "mirror m: target absent",
    }  # fmt: skip
    assert {kind for kind, _, _ in detect(index, severity="high")} == {"dangling_mirror", "location_differs", "missing"}
    assert {subject for _, subject, _ in detect(index, source="copy", kind="properties_differ")} == {"copy$s$said"}
    whole, last = drift.list_drift(index), None
    for wanted in whole:
        (one,) = drift.list_drift(index, after=last, limit=1)
        assert one == wanted
        last = one.key


def test_one_location_under_two_configured_names_is_a_duplicate(index: Index) -> None:
    fill(index, "lake", table("lake", "s", "a", location="s3://b/t"), table("lake", "s", "b", location="s3://ap/t"))
    assert detect(index) == []
    with index.write() as connection:
        verifications.refresh_location_aliases(connection, LocationAliases.from_prefixes({"s3://ap": "s3://b"}))
    assert detect(index) == [("duplicate", "lake$s$b", "lake$s$a")]


def test_it_is_known_since_when_until_when_and_again(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def refreshed(now: float) -> tuple[float, float, float | None]:
        monkeypatch.setattr(time, "time", lambda: now)
        drift_detection.refresh_drift(index, RULES)
        (seen,) = drift.list_drift(index) or drift.list_drift(index, resolved=True)
        return seen.first_seen, seen.last_seen, seen.resolved_at

    fill(index, "lake", table("lake", "s", "t"))
    opened(index, "s3://lake/s/t.lance", "missing")
    start = time.time()
    assert refreshed(start + 10) == (start + 10, start + 10, None)
    assert refreshed(start + 20) == (start + 10, start + 20, None)
    opened(index, "s3://lake/s/t.lance", "valid")
    assert refreshed(start + 30) == refreshed(start + 40) == (start + 10, start + 20, start + 30)
    opened(index, "s3://lake/s/t.lance", "missing")
    assert refreshed(start + 50) == (start + 50, start + 50, None)


def test_what_is_left_out_is_no_drift() -> None:
    origin = TableRecord("a", ("s", "t"), "s3://b/t", {"team": "eu"}, doc="x")
    assert list(compare_mirrored_pair(origin, TableRecord("b", ("s", "t"), "s3a://b/t/"), "s3://b/t")) == []
    assert compare_schema("a", "a$t", "s3://b/t", None, '[{"name":"id"}]') is None
    assert compare_schema("a", "a$t", "s3://b/t", '[{"name":"id"}]', None) is None


def test_names_that_differ_in_case_are_one_name_and_not_drift() -> None:
    declared, stored = (
        '[{"name":"a","type":"int"},{"name":"B","type":"int"}]',
        ('[{"name":"A","type":"int64"},{"name":"a","type":"int32"},{"name":"b","type":"string"}]'),
    )
    comparison = compare_columns(declared, stored)
    assert [(pair.name, pair.declared, pair.stored, pair.difference) for pair in comparison.columns] == [
        ("a", "int", "int32", None),
        ("B", "int", "string", ColumnDifference.OTHER_TYPE),
        ("A", None, "int64", None),
    ]
    drift = compare_schema("a", "a$t", "s3://b/t", declared, stored)
    assert drift is not None
    assert drift.detail == "of another type: b"


def test_columns_in_another_order_are_drift() -> None:
    one, other = '[{"name":"a"},{"name":"b"}]', '[{"name":"b"},{"name":"a"}]'
    seen = compare_schema("a", "a$t", "s3://b/t", one, other)
    assert seen is not None
    assert (seen.kind, seen.detail) == (DriftKind.SCHEMA_DIFFERS, "the columns are in another order")
