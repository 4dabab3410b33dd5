"""Crawl validation: Coverage against the records that arrived, alone and with carried namespaces."""

from __future__ import annotations

from federator.model import (
    COMPLETE,
    ROOT,
    Coverage,
    CoverageState,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed,
    fold_digest,
)
from federator.planning.crawls import Arrival, check_coverage, collect_arrivals, validate_crawl

RECORDS: list[Record] = [TableRecord("lake", ("s", name)) for name in ("a", "b")]


def stated(namespace: Path, records: list[Record]) -> Coverage:
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
    coverage = Coverage("lake", ("s",), failed(17, "cut off"), failed(17, "cut off"), 5)
    assert check_coverage("lake", "s", collect_arrivals([RECORDS[0], coverage])["s"]) == coverage


def test_a_namespace_without_coverage_appeared_during_the_crawl() -> None:
    root: list[Record] = [NamespaceRecord("lake", ("new",))]
    proven = validate_crawl("lake", collect_arrivals([*root, stated(ROOT, root)]))
    assert proven.coverage["new"].presence.state is CoverageState.SKIPPED
    assert proven.namespaces == {"new"}


def test_a_crawl_without_coverage_of_the_root_failed() -> None:
    proven = validate_crawl("lake", {})
    assert proven.coverage[""].presence.code == 18
    assert proven.read is None


def test_a_namespace_that_is_absent_and_not_listed_is_left_out() -> None:
    absent = Coverage("lake", ("gone",), failed(1, "absent"), failed(1, "absent"), found=False)
    proven = validate_crawl("lake", collect_arrivals([stated(ROOT, []), absent]))
    assert set(proven.coverage) == {""}


class TestCarried:
    known = {key: Coverage("lake", path).carried_from(3) for key, path in (("", ROOT), ("s", ("s",)), ("t", ("t",)))}  # noqa: RUF012

    def test_what_was_not_to_be_read_is_carried(self) -> None:
        proven = validate_crawl("lake", {"s": Arrival(stated(("s",), []), 1)}, read={"s"}, carried=self.known)
        assert proven.coverage["s"].complete
        assert proven.coverage["t"] == self.known["t"]
        assert proven.read == {"s"}

    def test_what_was_to_be_read_and_has_no_coverage_failed(self) -> None:
        proven = validate_crawl("lake", {}, read={"u"}, carried=self.known)
        assert proven.coverage["u"].presence.code == 18
        assert proven.coverage[""] == self.known[""]

    def test_what_a_complete_listing_of_its_parent_leaves_out_is_not_carried(self) -> None:
        root: list[Record] = [NamespaceRecord("lake", ("s",))]
        proven = validate_crawl("lake", collect_arrivals([*root, stated(ROOT, root)]), read={""}, carried=self.known)
        assert proven.coverage["s"] == self.known["s"]
        assert proven.coverage["t"].presence.state is CoverageState.SKIPPED
        assert proven.read == {"", "t"}
