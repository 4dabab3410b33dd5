"""docs/reference/settings.md equals the reference generated from the models."""

from __future__ import annotations

from pathlib import Path

from federator.settings import MirrorSettings, Settings
from federator.settings.section import section_keys
from tests.docs import settings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings.text(), (
        "generate the page again: .venv/bin/python -m tests.docs.settings > docs/reference/settings.md"
    )


def test_every_section_is_there_and_explained() -> None:
    models = {title: model for title, _, model in settings.sections()}
    assert {title.split(".")[0] for title in models} == set(Settings.model_fields) - {"path"}
    assert [model.__name__ for model in models.values() if not model.__doc__] == []
    assert models["mirrors.NAME"] is MirrorSettings


def test_every_key_of_a_mirror_is_explained() -> None:
    tables = [rows.split("\n\n")[2] for rows in settings.text().split("\n## [mirrors.NAME")[1:5]]
    lines = [line for table in tables for line in table.splitlines()]
    assert len(lines) == len(section_keys(MirrorSettings)) + 8 + 4 * 2
    assert [line for line in lines if line.count(" | ") != 3] == []


def test_a_section_explains_all_its_keys_or_none() -> None:
    assert [line for line in settings.text().splitlines() if line.startswith("| `") and line.endswith("|  |")] == []
