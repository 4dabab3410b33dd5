"""``make interop``: docs/reference/api.md has the accepted differences, docs/reference/conformance.md the recorded verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from federator.testing.conformance.report import Verdict
from tests.interop import conformance
from tests.interop.differences import DIFFERENCES, to_markdown

ROOT = Path(__file__).parents[2]


def test_the_page_has_every_accepted_difference_with_its_reason() -> None:
    assert to_markdown() in (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert all(difference.reason for difference in DIFFERENCES)


def test_no_outcome_has_two_reasons() -> None:
    cells = [cell for difference in DIFFERENCES for cell in difference.cells()]
    assert len(cells) == len(set(cells))


def test_the_page_of_conformance_is_the_recorded_result() -> None:
    runs = conformance.load_record()
    assert [run.name for run in runs] == list(conformance.NAMES)
    assert conformance.to_markdown(runs) == (ROOT / "docs" / "reference" / "conformance.md").read_text(encoding="utf-8")
    assert all(check.detail for run in runs for check in run.checks if check.verdict is Verdict.FAILED)
    details = [check.detail for run in runs for check in run.checks]
    assert [conformance.mask(detail) for detail in details] == details


def test_what_differs_from_run_to_run_is_masked() -> None:
    text = "t_1a507557$ns_37481eda at /tmp/abc-1/x.lance, /home/runner/work/lance/src/namespace.rs:292:13 (127.0.0.1:4711)"
    assert conformance.mask(text) == "t_…$ns_… at /tmp/lake/x.lance, … (127.0.0.1)"


def test_another_verdict_than_the_recorded_one_is_a_difference() -> None:
    run = conformance.load_record()[0]
    assert conformance.compare(run) == []
    first, *others = run.checks
    failed = replace(first, verdict=Verdict.FAILED, detail="because")
    assert conformance.compare(replace(run, checks=(failed, *others))) == [
        f"{first.operation}: {first.title}: failed instead of {first.verdict} (because)"
    ]
    assert conformance.compare(replace(run, checks=tuple(others))) == [
        f"{first.operation}: {first.title}: missing instead of {first.verdict}"
    ]
