"""``make interop``: the pages client-differences.md and conformance.md of docs/reference are the recorded results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from federator.testing.conformance.report import Verdict
from tests.interop import conformance
from tests.interop.differences import DIFFERENCES, mask, to_markdown
from tests.interop.rest_clients import Outcome

ROOT = Path(__file__).parents[2]


def test_the_page_has_every_accepted_difference_with_its_reason() -> None:
    assert to_markdown() in (ROOT / "docs" / "reference" / "client-differences.md").read_text(encoding="utf-8")
    assert all(difference.reason for difference in DIFFERENCES)


def test_no_outcome_has_two_reasons() -> None:
    cells = [cell for difference in DIFFERENCES for cell in difference.cells()]
    assert len(cells) == len(set(cells))


def test_a_difference_is_one_message() -> None:
    text = "InvalidInputError: Invalid input: hive3: 'two words' is not a valid name in this catalog"
    for other in (f"{text} now", f"a {text}", text.replace("hive3", "hive2"), text.replace("two", "one")):
        assert [explained(text), explained(other)] == [True, False]


def explained(text: str) -> bool:
    outcome = Outcome("pylance", "hive3", "write a name with a space", text)
    return any(difference.explains(outcome) for difference in DIFFERENCES)


def test_a_message_is_compared_without_what_differs_from_run_to_run() -> None:
    body = '{"error":"dir: no","instance":"/v1/table/dir%24ns_725e430c%24orders"}'
    text = f"code=406, responseHeaders={{date=[now], x=[{{}}]}}, responseBody='{body}' /tmp/interop-a1/x dir.x"
    assert mask(Outcome("java", "dir", "rename the table", text)) == (
        "code=406, responseHeaders=HEADERS, "
        'responseBody=\'{"error":"SERVER: no","instance":"/v1/table/NAMESPACE%24orders"}\' DIRECTORY/x dir.x'
    )


def test_an_error_that_lancedb_still_holds_in_its_cache_is_the_same_error() -> None:
    error = "Http error: (request_id=75accdbc-4d7b-4028-8793-72c2ff82be33) Failed"
    texts = {
        mask(Outcome("lancedb-remote", "reference", "search", text + error))
        for text in ("HttpError: ", "RuntimeError: Runtime error: ")
    }
    assert texts == {"HttpError: Http error: (request_id=UUID) Failed"}


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
