"""Since when a table is not well, and what was stored when it was, in an index on SQLite and on PostgreSQL."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from federator.settings import Settings, parse_settings
from federator.store import Index, verifications
from federator.views import plan_contents
from federator.views.explain import Explanation, explain_object
from tests.fixtures.index_content import fill, namespace, table

_LOCATION = "s3://lake/sales/orders.lance"
_START = 1_700_000_000.0


@pytest.fixture
def index(either_index: Index) -> Index:
    fill(either_index, "lake", namespace("lake", "sales"), table("lake", "sales", "orders"))
    return either_index


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    raw = {"instance": {"id": "test"}, "sources": {"lake": {"impl": "federator.testing:CONNECTOR", "store": "last-valid"}}}
    return parse_settings(raw, tmp_path / "federator.toml")


def _verify(index: Index, minute: int, state: str, **values: Any) -> None:
    """One inspection of the location."""
    row = {
        "canonical": _LOCATION, "location": _LOCATION, "state": state, "message": None, "version": None, "rows": None,
        "fragments": None, "schema": None, "fingerprint": None, "checked_at": _START + 60 * minute, "checked_through": "lake",
        "access": "",
    }  # fmt: skip
    with index.write() as connection:
        verifications.save_verifications(connection, [{**row, **values}])


def _explain(settings: Settings, index: Index) -> Explanation:
    return explain_object(settings, index, ("lake", "sales", "orders"))


def test_a_broken_table_has_its_last_valid_version(index: Index, settings: Settings) -> None:
    _verify(index, 0, "valid", version=1, rows=10, schema='["a"]', fingerprint="a")
    _verify(index, 1, "valid", version=2, rows=12, schema='["a","b"]', fingerprint="b")
    _verify(index, 2, "valid", version=7, rows=1200, schema='["a","b"]', fingerprint="b")
    _verify(index, 3, "missing", message="no manifest")
    _verify(index, 4, "missing", message="no manifest")
    explanation = _explain(settings, index)
    assert (explanation.verified, explanation.verified_since) == ("missing", _START + 180)
    last = explanation.last_valid
    assert last is not None
    assert (last.state, last.version, last.rows, last.checked_at) == ("valid", 7, 1200, _START + 120)
    assert explanation.summary == (
        "lake has it, and no mirror of this instance declared it; its location is missing since 2023-11-14T22:16:20Z; "
        "it was last valid at 2023-11-14T22:15:20Z, version 7 with 1,200 rows"
    )
    events = [(event.what, event.detail) for event in explanation.history if event.at < time.time() - 3600]
    assert events == [
        ("verified: valid", ""), ("stored schema changed", "after version 1"),
        ("verified: missing", "no manifest; last valid at 2023-11-14T22:15:20Z, version 7 with 1,200 rows"),
    ]  # fmt: skip
    _verify(index, 5, "valid", version=8, rows=1300, schema='["a","b"]', fingerprint="b")
    explanation = _explain(settings, index)
    assert (explanation.verified, explanation.last_valid) == ("valid", None)
    assert explanation.summary.endswith("no mirror of this instance declared it")


def test_a_table_that_was_never_valid_says_so(index: Index, settings: Settings) -> None:
    _verify(index, 0, "missing", message="no manifest")
    explanation = _explain(settings, index)
    assert explanation.last_valid is None
    assert explanation.summary.endswith("its location is missing since 2023-11-14T22:13:20Z, and was not found valid before")


def test_what_a_table_held_is_forgotten_when_it_refers_to_others(index: Index, settings: Settings) -> None:
    """What was read may be that of the table that it refers to now."""
    _verify(index, 0, "valid", version=7, rows=1200, schema='["a"]', fingerprint="a")
    _verify(index, 1, "refers_outside")
    last = _explain(settings, index).last_valid
    assert last is not None
    assert (last.version, last.rows) == (None, None)


def test_changes_of_a_plan_have_what_is_stored_at_their_locations(index: Index) -> None:
    _verify(index, 0, "valid", version=7, rows=1200)
    orders = {"location": _LOCATION + "/"}
    ends = {"origin_source": "lake", "target_source": "copy"}
    changes = [
        {**ends, "before": None, "after": {"location": "s3://lake/unknown"}}, {**ends, "before": None, "after": orders},
        {**ends, "before": None, "after": None}, {**ends, "before": orders, "after": None},
    ]  # fmt: skip
    with index.read() as connection:
        contents = plan_contents.list_change_contents(connection, changes)
    assert [(content.change, content.state, content.version, content.rows) for content in contents] == [
        (1, "valid", 7, 1200), (3, "valid", 7, 1200),
    ]  # fmt: skip
