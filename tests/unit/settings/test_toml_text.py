"""A section of the configuration as TOML says the same as the section."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federator.settings import parse_settings
from federator.settings.toml_text import format_section

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    _TEXTS | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
)


@given(st.dictionaries(_TEXTS, _VALUES, max_size=4), _TEXTS)
def test_it_is_read_as_it_was(values: dict[str, Any], name: str) -> None:
    assert tomllib.loads(format_section(("mirrors", name), values))["mirrors"][name] == values


def test_a_mirror_keeps_its_rule() -> None:
    mirror = {
        "from": "a", "to": "b", "include": ["a$x*"], "where": {"owner": ["o"], "properties": {"team": 'x"y'}},
        "replace": [{"from": "-", "to": "_"}], "location": [{"from": "s3a://", "to": "s3://"}], "windows": ["Mon-Fri 20:00-06:00"],
        "min_miss_interval": "5m", "max_delete_percent": 12.5, "doc": False, "schedule": "@every 5m",
    }  # fmt: skip
    raw: dict[str, Any] = {
        "instance": {"id": "t"},
        "sources": {name: {"impl": "federator.testing:CONNECTOR", "store": name} for name in "ab"},
    }
    settings = parse_settings({**raw, "mirrors": {"m": mirror}}, Path("federator.toml"))
    values = settings.mirrors["m"].model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text = format_section(("mirrors", "m"), values)
    again = parse_settings({**raw, **tomllib.loads(text)}, Path("federator.toml"))
    assert again.mirror_rule("m") == settings.mirror_rule("m")
    assert again.mirrors["m"].schedule == settings.mirrors["m"].schedule
