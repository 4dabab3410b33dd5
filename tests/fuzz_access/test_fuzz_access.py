"""A small sample of ``make fuzz-access``, and the proof that it finds what it looks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import true

from federator.api.principals import ROLES
from federator.pipeline.verify import InspectorProcess
from federator.store import visibility
from tests.fuzz_access.comparing import SCOPES, World, compare_scope, opened
from tests.unit.api import linked_tables


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, World]]:
    base = tmp_path_factory.mktemp("fuzz")
    with (
        opened(f"sqlite:///{base}/full.db", base / "full") as full,
        opened(f"sqlite:///{base}/part.db", base / "part", SCOPES["two sources"]) as part,
    ):
        yield full, part


def test_a_sample_of_all_requests_finds_no_difference(both: tuple[World, World]) -> None:
    results = compare_scope(*both, "two sources", share=0.03, random_reads=10, seed=1)
    assert tuple(results) == ROLES
    assert [result.differences for result in results.values()] == [[], [], [], []]
    assert all(result.requests > 40 for result in results.values())
    assert {200, 400, 403, 404} <= set.union(*(result.statuses for result in results.values()))


@pytest.mark.parametrize(("only", "share"), [("/api/v1/drift", 1.0), ("/mcp", 0.3)])
def test_a_filter_that_lets_everything_through_is_found(
    both: tuple[World, World], monkeypatch: pytest.MonkeyPatch, only: str, share: float
) -> None:
    monkeypatch.setattr(visibility, "is_covered_id", lambda *_: true())
    results = compare_scope(*both, "two sources", share=share, random_reads=0, seed=len(only), only=only)
    differing = [difference for result in results.values() for difference in result.differences]
    assert differing
    # Counts have no names.
    named = [difference for difference in differing if "/counts" not in difference]
    assert all("lake$" in difference or "spare$" in difference for difference in named)


def test_facts_of_what_links_lead_to_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification that opens whatever a table refers to."""
    build_request = InspectorProcess._request
    monkeypatch.setattr(InspectorProcess, "_request", lambda *values: {**build_request(*values), "allowed_bases": None})
    with (
        opened(f"sqlite:///{tmp_path}/full.db", tmp_path / "full") as full,
        opened(f"sqlite:///{tmp_path}/part.db", tmp_path / "part", SCOPES["two sources"]) as part,
    ):
        results = compare_scope(full, part, "two sources", share=1.0, random_reads=0, seed=1, only="/api/v1/schema/")
    differing = [difference for result in results.values() for difference in result.differences]
    visible = [name for name in linked_tables.LINKED if SCOPES["two sources"].covers(tuple(name.split("$")))]
    assert len(visible) == 3
    assert all(any(name in difference for difference in differing) for name in map(quote, visible))
