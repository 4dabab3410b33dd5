"""docs/mirroring.md says what the planner does."""

from __future__ import annotations

import textwrap
from pathlib import Path

from federator.planning import decide
from federator.planning.reasons import Reason

DOCS = (Path(__file__).parents[2] / "docs" / "mirroring.md").read_text(encoding="utf-8")


def test_the_decision_table_is_the_planners_own() -> None:
    table = textwrap.dedent((decide.__doc__ or "").split("::\n", 1)[1]).strip("\n")
    assert f"```text\n{table}\n```" in DOCS


def test_every_reason_code_is_explained() -> None:
    assert [reason.value for reason in Reason if f"`{reason.value}`" not in DOCS and reason.value not in DOCS] == []
