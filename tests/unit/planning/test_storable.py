"""Text that no index can store: it concerns one object, and never counts as proof that something is absent."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from federator.connector import CatalogChanges
from federator.connector.crawl import CoverageBuilder
from federator.model import ROOT, Coverage, CoverageState, Kind, NamespaceRecord, Path, Record, TableRecord, failed_evidence
from federator.model.text import escape_unstorable, is_storable
from federator.planning.crawls import validate_arrivals
from federator.planning.identity import IdentityReading
from federator.planning.incremental import IndexedSource, namespaces_to_read
from federator.planning.storable import storable_items
from federator_connectors._glue.records import table_record
from tests.prove.rules_in_memory import collect_arrivals

BAD = ["\0", "\ud800", "\udfff"]
SOUND = TableRecord("lake", ("sales", "sound"), "s3://b/😀", {"k": "é"})


def stored(namespace: Path, *records: Record) -> tuple[list[Record], Coverage]:
    """What remains of one namespace's items. The numbers of its coverage are those of the remaining records."""
    *kept, coverage = storable_items(CoverageBuilder("lake", namespace).read(records))
    assert isinstance(coverage, Coverage)
    counted: list[Record] = [record for record in kept if isinstance(record, NamespaceRecord | TableRecord)]
    again = list(CoverageBuilder("lake", namespace).read(counted))[-1]
    assert isinstance(again, Coverage)
    assert (coverage.records, coverage.digest) == (again.records, again.digest)
    assert all(map(is_storable, texts_of(kept)))
    assert is_storable(coverage.detail.reason + coverage.presence.reason)
    return counted, coverage


def texts_of(items: Iterable[object]) -> list[str]:
    return [str(value) for item in items for value in vars(item).values() if isinstance(value, str)]


def test_storable_text_passes_unchanged() -> None:
    items = [NamespaceRecord("lake", ("sales", "x")), SOUND, IdentityReading(), Coverage("lake", ("sales",), records=2)]
    assert list(storable_items(items)) == items


@pytest.mark.parametrize("bad", BAD)
def test_a_table_with_such_a_name_is_left_out_and_nothing_is_proven_absent(bad: str) -> None:
    records, coverage = stored(("sales",), TableRecord("lake", ("sales", f"a{bad}b"), "s3://b/t"), SOUND)
    assert records == [SOUND]
    assert not coverage.complete
    assert coverage.presence.state is coverage.detail.state is CoverageState.FAILED
    assert f"'a{escape_unstorable(bad)}b'" in coverage.presence.reason
    assert "rename it in the catalog" in coverage.presence.reason


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("location", {"location": "s3://b/{}"}), ("doc", {"doc": "{}"}), ("owner", {"owner": "{}"}),
        ("schema", {"schema": '[{{"name":"{}","type":"int"}}]'}), ("native_id", {"native_id": "{}"}), ("version", {"version": "{}"}),
    ],
)  # fmt: skip
def test_a_table_with_other_such_text_is_undescribed(bad: str, field: str, fields: dict[str, str]) -> None:
    texts = {name: text.format(bad) for name, text in fields.items()}
    _check_undescribed(TableRecord("lake", ("sales", "t"), **texts), field)


@pytest.mark.parametrize("bad", BAD)
def test_properties_count_with_key_and_value(bad: str) -> None:
    for properties in ({"k": bad}, {bad: "v"}):
        _check_undescribed(TableRecord("lake", ("sales", "t"), "s3://b/t", properties), "properties")


def _check_undescribed(table: TableRecord, field: str) -> None:
    (kept, sound), coverage = stored(("sales",), table, SOUND)
    assert isinstance(kept, TableRecord)
    assert sound == SOUND
    assert (kept.kind, kept.location, dict(kept.properties)) == (Kind.UNDESCRIBED, None, {})
    assert field in (kept.problem or "")
    assert coverage.complete
    assert coverage.detail.state is CoverageState.FAILED
    assert "1 could not be described, the last one 't'" in coverage.detail.reason


def test_a_nul_in_the_schema_is_text_of_its_json() -> None:
    """Canonical JSON escapes NUL, so the text can be stored."""
    table = TableRecord("lake", ("sales", "t"), schema=json.dumps([{"name": "a\0"}]))
    assert stored(("sales",), table)[0] == [table]


def test_a_problem_with_such_text_is_escaped() -> None:
    (kept,), _ = stored(("sales",), TableRecord("lake", ("sales", "t"), kind=Kind.UNDESCRIBED, problem="bad \ud800"))
    assert isinstance(kept, TableRecord)
    assert kept.problem == "bad \\ud800"


def test_a_namespace_is_left_out_with_all_that_is_in_it() -> None:
    root = CoverageBuilder("lake", ROOT).read(
        [NamespaceRecord("lake", ("a\0",)), NamespaceRecord("lake", ("sales",), {"k": "\0"})]
    )
    below = CoverageBuilder("lake", ("a\0",)).read([TableRecord("lake", ("a\0", "t"))])
    sales = CoverageBuilder("lake", ("sales",)).read([SOUND])
    items = [*storable_items([*root, *below, *sales])]
    records = [item for item in items if isinstance(item, NamespaceRecord | TableRecord)]
    assert records == [NamespaceRecord("lake", ("sales",)), SOUND]
    proven = validate_arrivals("lake", collect_arrivals(item for item in items if not isinstance(item, IdentityReading)))
    assert set(proven.coverage) == {"", "sales"}
    assert proven.coverage[""].detail.state is CoverageState.FAILED, "the source is not failed as a whole"
    assert proven.coverage["sales"].complete


def test_a_nested_namespace_that_is_left_out_proves_nothing_absent() -> None:
    records, coverage = stored(("sales",), NamespaceRecord("lake", ("sales", "\ud800")))
    assert records == []
    assert not coverage.complete


def test_errors_are_escaped() -> None:
    failed = failed_evidence(18, "no \ud800")
    coverage, reading = storable_items([Coverage("lake", ("sales",), failed, failed, 5), IdentityReading(error="a\0")])
    assert isinstance(coverage, Coverage)
    assert isinstance(reading, IdentityReading)
    assert (coverage.presence.reason, coverage.detail.reason, coverage.records) == ("no \\ud800", "no \\ud800", 5)
    assert reading.error == "a\\u0000"


def test_what_glue_accepts() -> None:
    native = {"Name": "t", "Parameters": {"table_type": "lance"}, "StorageDescriptor": {"Location": "s3://b/\ud800"}}
    (kept,), _ = stored(("sales",), table_record("lake", ("sales",), native))
    assert kept.kind is Kind.UNDESCRIBED


def test_an_event_of_such_a_namespace_reads_only_its_parent() -> None:
    changes = CatalogChanges("1", frozenset({("a\0",)}), frozenset({("b\ud800", "t")}))
    assert namespaces_to_read(changes, IndexedSource(coverage={"": Coverage("lake", ROOT)}, namespaces=frozenset())) == {ROOT}
