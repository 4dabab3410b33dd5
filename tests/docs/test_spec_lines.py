"""docs/reference/specs.md: each row names tests that exist, for each connector."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from federator.registry import list_impls

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "specs.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| the text", "| ---"))]


@pytest.mark.parametrize("row", ROWS)
def test_the_test_of_a_row_exists(row: str) -> None:
    match = re.search(r"\| `([\w/]+\.py)` `(test_\w+)` \|$", row)
    assert match, "the last cell has no file and test"
    path = match[1] if match[1].startswith("federator/") else f"tests/{match[1]}"
    assert re.search(rf"^ *def {match[2]}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_each_connector_has_its_spec() -> None:
    headings = " ".join(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))
    assert {name for name in list_impls() if f"`{name}`" not in headings} <= {"memory", "hive"}
