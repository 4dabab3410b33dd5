"""docs/explanation/security.md names tests for its threats."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_test_that_the_page_names_exists() -> None:
    named = _TEST.findall(PAGE)
    missing = [f"{file}::{function}" for file, function in named if function and function not in _functions(ROOT / file)]
    assert not missing
    assert all((ROOT / file).is_file() for file, _ in named)


def test_every_threat_has_a_test_or_says_that_it_has_none() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) > 20
    for number, _, _, tests, remains in rows:
        assert _TEST.search(tests) or remains.startswith("Not tested"), number


def _functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
