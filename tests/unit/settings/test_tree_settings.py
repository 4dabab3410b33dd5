"""The section [tree]: order and levels of the merged tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from federator.connector import ConfigError
from federator.settings import Settings, parse_settings


def settings(**tree: Any) -> Settings:
    sources = {
        "lake": {"impl": "hive3", "uri": "thrift://localhost:1"}, "old": {"impl": "hive2", "uri": "thrift://localhost:1"},
        "aws": {"impl": "glue", "region": "eu-west-1"}, "files": {"impl": "dir", "root": "/tmp/x"},
    }  # fmt: skip
    return parse_settings({"sources": sources, "tree": tree}, Path("federator.toml"))


def test_levels_that_name_a_catalog_are_left_out() -> None:
    assert settings().merged_tree_levels == {"aws": 1, "files": 0, "lake": 1, "old": 0}


def test_priority_and_skip_are_configured() -> None:
    merged = settings(priority=["old", "lake"], skip={"aws": 0}).merged_tree_levels
    assert list(merged.items()) == [("old", 0), ("lake", 1), ("aws", 0), ("files", 0)]


@pytest.mark.parametrize("tree", [{"priority": ["nope"]}, {"skip": {"nope": 1}}, {"skip": {"lake": 9}}, {"skip": {"aws": -1}}])
def test_what_is_not_there_is_refused(tree: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"\[tree\] (priority|skip)"):
        settings(**tree)
