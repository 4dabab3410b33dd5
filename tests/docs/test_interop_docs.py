"""docs/reference/api.md lists the differences that ``make interop`` accepts: ``python -m tests.interop.differences`` prints them."""

from __future__ import annotations

from pathlib import Path

from tests.interop.differences import DIFFERENCES, to_markdown

ROOT = Path(__file__).parents[2]


def test_the_page_has_every_accepted_difference_with_its_reason() -> None:
    assert to_markdown() in (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert all(difference.reason for difference in DIFFERENCES)


def test_no_outcome_has_two_reasons() -> None:
    cells = [cell for difference in DIFFERENCES for cell in difference.cells()]
    assert len(cells) == len(set(cells))
