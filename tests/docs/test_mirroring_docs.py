"""docs/explanation/mirroring.md agrees with the planner."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from federator.planning import decision
from federator.planning.changes import Action
from federator.planning.guards import GUARDS
from federator.planning.mapping import map_path
from federator.planning.reasons import Reason
from federator.settings import MirrorSettings, parse_duration
from tests.fixtures.planning import context

DOCS = (Path(__file__).parents[2] / "docs" / "explanation" / "mirroring.md").read_text(encoding="utf-8")
KEYS = [
    (field.alias or name, None if field.is_required() else field.get_default(call_default_factory=True))
    for name, field in MirrorSettings.model_fields.items()
]
#: what the table says in words
IN_WORDS = {"where": "none", "namespace": "none", "schedule": "none"}


def section(title: str, text: str = DOCS) -> str:
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


KEY_TABLE = section(
    "[mirrors.NAME]", (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
)


def rows(text: str) -> dict[str, list[str]]:
    """The rows of a section's tables, by each code word in their first column."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found |= dict.fromkeys(re.findall(r"`([a-z_]+)`", cells[0]), cells)
    return found


def test_the_decision_table_is_the_planners_own() -> None:
    table = textwrap.dedent((decision.__doc__ or "").split("::\n", 1)[1]).strip("\n")
    assert f"```text\n{table}\n```" in DOCS, "copy the table of planning/decision.py to docs/explanation/mirroring.md"


def test_every_reason_has_a_row_that_says_what_to_do_and_no_row_has_another() -> None:
    explained = rows(section("Reasons"))
    assert set(explained) == {reason.value for reason in Reason}, (
        "a row for each reason: docs/explanation/mirroring.md, Reasons"
    )
    assert [name for name, cells in explained.items() if len(cells) != 3 or not all(cells)] == []


def test_the_table_of_keys_has_every_key_of_a_mirror_and_no_other() -> None:
    assert sorted(rows(KEY_TABLE)) == sorted(key for key, _ in KEYS)


@pytest.mark.parametrize(("key", "default"), [(key, default) for key, default in KEYS if key not in ("from", "to")])
def test_the_table_of_keys_says_the_default(key: str, default: Any) -> None:
    documented = rows(KEY_TABLE)[key][1].strip("`")
    if key in IN_WORDS:
        assert documented == IN_WORDS[key]
    elif isinstance(default, bool):
        assert documented == str(default).lower()
    elif isinstance(default, tuple):
        assert documented.replace("[", "(").replace("]", ")") == str(list(default)).replace("'", '"').replace("[", "(").replace(
            "]", ")"
        )
    elif isinstance(default, float) and documented.startswith('"'):
        assert parse_duration(documented.strip('"')) == default
    else:
        assert documented.strip('"') == (default if isinstance(default, str) else f"{default:g}")


def test_everything_that_holds_a_plan_is_explained() -> None:
    assert set(rows(section("What holds a plan"))) >= {*GUARDS, Reason.APPROVAL_REQUIRED.value, Reason.OUTSIDE_WINDOW.value}


def test_the_actions_of_the_decision_table_are_named() -> None:
    named = set(
        re.findall(r"`([a-z_]+)`", section("What happens to one target path").split("is a refusal")[0].rsplit("```", 1)[1])
    )
    assert named == {action.value for action in Action} - {"create_namespace", "drop_namespace"}


EXAMPLES = [
    ("Hive 3 `hive$sales$t`", ("catalog", "database")), ("Hive 2 `sales$t`", ("database",)), ("Polaris `a$b$c$t`", ("namespace",)),
    ("directory `t`", ()),
]  # fmt: skip


def test_the_examples_of_names_come_out_as_they_say() -> None:
    lines = [line for line in section("Names").splitlines() if line.startswith("| ") and "`" in line]
    assert len(lines) == 5
    for line in lines:
        origin, target, keys = (cell.strip() for cell in line.strip("|").split(" | "))
        levels = dict(EXAMPLES)[origin]
        rule = dict(re.findall(r'(\w+) = "([^"]*)"', keys))
        path = origin.split("`")[1].split("$")
        assert "$".join(map_path(context(levels=levels, **rule), tuple(path))) == target.split("`")[1]
