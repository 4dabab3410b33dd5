"""Crawl validation: Coverage against the records that arrived, alone and with carried namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    CoverageState,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed_evidence,
    fold_digest,
    skipped_evidence,
)
from federator.planning.crawls import (
    READ_BY_NAME,
    Arrival,
    check_coverage,
    is_failed,
    list_failures,
    unread_coverage,
    validate_arrivals,
)
from federator.planning.evidence import is_covered, is_proven_absent
from tests.prove.rules_in_memory import collect_arrivals

RECORDS: list[Record] = [TableRecord("lake", ("s", name)) for name in ("a", "b")]


def stated(namespace: Path, records: Sequence[Record]) -> Coverage:
    return Coverage("lake", namespace, COMPLETE, COMPLETE, len(records), fold_digest(r.digest for r in records))


def test_records_that_add_up_leave_the_coverage_as_it_was_stated() -> None:
    arrival = collect_arrivals([*RECORDS, stated(("s",), RECORDS)])["s"]
    assert check_coverage("lake", "s", arrival) == arrival.stated
    assert arrival.stated is not None


def test_a_record_lost_replaced_or_added_proves_nothing() -> None:
    other = TableRecord("lake", ("s", "c"))
    for arrived in (RECORDS[:1], [*RECORDS, other], [RECORDS[0], other], []):
        arrivals = collect_arrivals([*arrived, stated(("s",), RECORDS)])
        checked = check_coverage("lake", "s", arrivals["s"])
        assert (checked.complete, checked.detail.complete, checked.presence.code) == (False, False, 18)


def test_two_shards_for_one_namespace_prove_nothing() -> None:
    coverage = stated(("s",), [])
    checked = check_coverage("lake", "s", collect_arrivals([coverage, coverage])["s"])
    assert checked.presence.reason == "two shards covered it"
    assert not checked.complete


def test_a_failed_namespace_stays_failed_with_its_own_reason() -> None:
    coverage = Coverage("lake", ("s",), failed_evidence(17, "cut off"), failed_evidence(17, "cut off"), 5)
    assert check_coverage("lake", "s", collect_arrivals([RECORDS[0], coverage])["s"]) == coverage


def named_only(path: Path, records: Sequence[Record]) -> Coverage:
    """What a shard states that has read these records by name."""
    return replace(stated(path, records), presence=READ_BY_NAME, detail=READ_BY_NAME)


def test_a_namespace_without_coverage_appeared_during_the_crawl() -> None:
    root: list[Record] = [NamespaceRecord("lake", ("new",))]
    proven = validate_arrivals("lake", collect_arrivals([*root, stated(ROOT, root)]))
    assert proven.coverage["new"].presence.state is CoverageState.SKIPPED
    assert proven.namespaces == {"new"}


def test_a_crawl_without_coverage_of_the_root_failed() -> None:
    proven = validate_arrivals("lake", {})
    assert proven.coverage[""].presence.code == 18
    assert proven.read is None


def test_a_namespace_that_is_absent_and_not_listed_is_left_out() -> None:
    absent = Coverage("lake", ("gone",), failed_evidence(1, "absent"), failed_evidence(1, "absent"), found=False)
    proven = validate_arrivals("lake", collect_arrivals([stated(ROOT, []), absent]))
    assert set(proven.coverage) == {""}


class TestCarried:
    known = {key: Coverage("lake", path).as_carried(3) for key, path in (("", ROOT), ("s", ("s",)), ("t", ("t",)))}  # noqa: RUF012

    def test_namespaces_out_of_scope_of_the_crawl_are_carried(self) -> None:
        proven = validate_arrivals("lake", {"s": Arrival(stated(("s",), []), 1)}, read={"s"}, carried=self.known)
        assert proven.coverage["s"].complete
        assert proven.coverage["t"] == self.known["t"]
        assert proven.read == {"s"}

    def test_a_namespace_to_read_without_coverage_failed(self) -> None:
        proven = validate_arrivals("lake", {}, read={"u"}, carried=self.known)
        assert proven.coverage["u"].presence.code == 18
        assert proven.coverage[""] == self.known[""]

    def test_a_listing_is_carried_where_tables_were_read_by_name(self) -> None:
        table = TableRecord("lake", ("s", "t"), "s3://b/t")
        arrivals = collect_arrivals([table, named_only(("s",), [table])])
        proven = validate_arrivals("lake", arrivals, read=(), carried=self.known, named={"s"})
        assert (proven.coverage, proven.read) == (self.known, frozenset())

    @pytest.mark.parametrize("lost", ["a table", "the coverage", "everything"])
    def test_a_namespace_failed_if_something_of_the_tables_by_name_was_lost(self, lost: str) -> None:
        table = TableRecord("lake", ("s", "t"), "s3://b/t")
        items = {"a table": [named_only(("s",), [table])], "the coverage": [table], "everything": []}[lost]
        proven = validate_arrivals("lake", collect_arrivals(items), read=(), carried=self.known, named={"s"})
        assert (proven.coverage["s"].presence.code, proven.coverage["s"].detail.code) == (18, 18)
        assert proven.read == {"s"}, "the next crawl reads it as a whole"

    def test_a_shard_that_reads_by_name_without_being_asked_proves_nothing(self) -> None:
        proven = validate_arrivals("lake", collect_arrivals([named_only(("s",), [])]), read={"s"}, carried=self.known)
        assert proven.coverage["s"].presence.code == 18

    def test_a_namespace_absent_from_its_parents_complete_listing_is_not_carried(self) -> None:
        root: list[Record] = [NamespaceRecord("lake", ("s",))]
        proven = validate_arrivals("lake", collect_arrivals([*root, stated(ROOT, root)]), read={""}, carried=self.known)
        assert proven.coverage["s"] == self.known["s"]
        assert proven.coverage["t"].presence.state is CoverageState.SKIPPED
        assert proven.read == {"", "t"}


def test_only_a_root_that_proves_nothing_fails_a_crawl_as_a_whole() -> None:
    root, inner = Coverage("s", ()), Coverage("s", ("a",), failed_evidence(17, "no answer"))
    assert not is_failed({})
    assert not is_failed({"": root, "a": inner})
    assert not is_failed({"": root.as_carried(3)})
    assert is_failed({"": unread_coverage("s", 17, "no answer"), "a": Coverage("s", ("a",))})


def test_a_root_that_the_configuration_skips_is_no_failure_and_proves_nothing() -> None:
    skipped = skipped_evidence("the catalogs are named")
    root, inner = Coverage("s", ROOT, skipped), Coverage("s", ("a",), skipped)
    assert list_failures({"": root}) == []
    assert not is_failed({"": root})
    assert list_failures({"": root, "a": inner}) == [inner]
    assert not is_covered(("other", "t"), {"": root})
    assert not is_proven_absent(("other", "t"), {"": root}, {"a"})


def test_a_root_whose_coverage_did_not_arrive_failed() -> None:
    proven = validate_arrivals("lake", collect_arrivals([NamespaceRecord("lake", ("a",)), stated(("a",), [])]))
    assert proven.coverage[""].presence.code == 18
    assert is_failed(proven.coverage)
