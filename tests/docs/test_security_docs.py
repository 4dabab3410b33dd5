"""docs/explanation/security.md has the threats, tests/threats.md the tests of each."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
THREATS = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
TESTS = (ROOT / "tests" / "threats.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def rows(page: str) -> list[list[str]]:
    """The cells of the rows that begin with the number of a threat."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if re.match(r"\| \d+ \|", line)]


def test_every_test_that_the_page_names_exists() -> None:
    named = _TEST.findall(TESTS)
    missing = [f"{file}::{function}" for file, function in named if function and function not in _functions(ROOT / file)]
    assert not missing
    assert all((ROOT / file).is_file() for file, _ in named)


def test_every_threat_has_a_row_with_its_tests() -> None:
    threats = rows(THREATS)
    assert {len(row) for row in threats} == {4}
    assert len(threats) > 20
    assert [(number, threat) for number, threat, _ in rows(TESTS)] == [(number, threat) for number, threat, *_ in threats]
    assert [number for number, _, tests in rows(TESTS) if not _TEST.search(tests)] == []


def _functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
