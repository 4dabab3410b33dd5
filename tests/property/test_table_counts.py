"""Whatever happens to an index, counts that are continued are those of a new count, in every scope and on both databases."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from federator.model import Path, Scopes
from federator.model.locations import LocationAliases
from federator.store import Index, retention, revisions, runs, stores, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.store.stores import SourceStore
from federator.views import table_counts
from federator.views.table_counts import TableCounts
from tests.fixtures.index_content import fill, table

_SOURCES = st.sampled_from(["lake", "copy"])
_PATHS = st.sampled_from([(namespace, name) for namespace in "ab" for name in ("one", "two", "three")])
_LOCATIONS = [*(f"s3://lake/{number}" for number in range(4)), "/data/0", "/data/1"]
_DECLARED = st.dictionaries(_PATHS, st.sampled_from([*_LOCATIONS, None]), max_size=6)
_STATES = st.dictionaries(st.sampled_from(_LOCATIONS), st.sampled_from(["valid", "missing", "corrupt"]), min_size=1, max_size=3)
_SCOPES = [Scopes.parse(texts) for texts in (["*"], ["lake$a", "copy"], ["lake$b$one"], [])]

_ACTIONS = st.one_of(
    st.tuples(st.just("crawl"), _SOURCES, _DECLARED, st.sets(_PATHS, max_size=3)),
    st.tuples(st.just("crawl"), _SOURCES, _DECLARED, st.sets(_PATHS, max_size=3)),
    st.tuples(st.just("draft"), _SOURCES, _DECLARED),
    # Of the seconds since the last inspection: one that ended earlier may be stored later.
    st.tuples(st.just("inspect"), _STATES, st.sampled_from([3600, 1, -30]), st.sampled_from(["", "a key"])),
    st.tuples(st.just("inspect"), _STATES, st.sampled_from([3600, 1, -30]), st.sampled_from(["", "a key"])),
    st.tuples(st.just("alias"), st.booleans()),
    st.tuples(st.just("store"), _SOURCES, st.sampled_from(["", "elsewhere"])),
    st.tuples(st.just("prune"), _SOURCES),
)  # fmt: skip


class _World:
    """An empty index, and what happens to it."""

    def __init__(self, index: Index) -> None:
        self._index, self._checked_at = index, time.time()
        with index.write() as connection:
            for content in (
                t.search_entry,
                t.record,
                t.coverage,
                t.revision,
                t.source,
                t.source_store,
                t.dataset,
                t.dataset_past,
                t.alias,
            ):
                connection.execute(delete(content))

    def crawl(self, source: str, declared: Mapping[Path, str | None], gone: set[Path]) -> None:
        fill(
            self._index, source, *(table(source, *path, location=at) for path, at in declared.items()),
            gone=sorted(gone - declared.keys()),
        )  # fmt: skip

    def draft(self, source: str, declared: Mapping[Path, str | None]) -> None:
        """A crawl writes a draft, and does not publish it. The next one sweeps it."""
        revisions.register_source(self._index, source, "memory", "digest")
        with acquire_lease(self._index, f"source:{source}", wait=10) as lease:
            draft = revisions.begin_draft(self._index, lease, source, "run", time.time())
            revisions.close_records(self._index, lease, draft, [(1, "$".join(path)) for path in declared])
            rows = [revisions.incoming_row(table(source, *path, location=at)) for path, at in declared.items()]
            revisions.add_records(self._index, lease, draft, rows)

    def inspect(self, states: Mapping[str, str], seconds: float, access: str) -> None:
        at = self._checked_at + seconds
        self._checked_at = max(self._checked_at, at)
        rows = [
            {
                "canonical": table("x", "x", location=location).canonical, "location": location, "state": state, "message": None,
                "version": 1, "rows": 1, "fragments": 1, "schema": None, "checked_at": at, "checked_through": "lake",
                "access": stores.value_of_location(access, table("x", "x", location=location).canonical or ""),
            }
            for location, state in states.items()
        ]  # fmt: skip
        with self._index.write() as connection:
            verifications.save_verifications(connection, rows)

    def alias(self, is_used: bool) -> None:
        prefixes = {"s3://lake/0": "s3://lake/1"} if is_used else {}
        with self._index.write() as connection:
            verifications.refresh_location_aliases(connection, LocationAliases.from_prefixes(prefixes))

    def store(self, source: str, store: str) -> None:
        with self._index.write() as connection:
            stores.save_stores(connection, {source: SourceStore(store, "a key" if store else "")})

    def prune(self, source: str) -> None:
        revisions.register_source(self._index, source, "memory", "digest")
        with acquire_lease(self._index, f"source:{source}", wait=10) as lease:
            retention.prune_source(self._index, lease, source, time.time(), runs.RunHandle("run", "prune", "me"))


_STORIES = st.lists(st.tuples(_ACTIONS, st.booleans()), max_size=8)
_FEW = settings(
    deadline=None, max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that most changes leave blocks as they were."""
    monkeypatch.setattr(table_counts, "_BLOCK", 2)


@given(story=_STORIES)
@settings(_FEW, max_examples=20)
def test_continued_counts_are_those_of_a_new_count(sqlite_index: Index, story: list[tuple[tuple[object, ...], bool]]) -> None:
    _check(sqlite_index, story)


@given(story=_STORIES)
@settings(_FEW)
def test_continued_counts_are_those_of_a_new_count_on_postgresql(
    postgres_index: Callable[[], Index], story: list[tuple[tuple[object, ...], bool]]
) -> None:
    _check(postgres_index(), story)


def _check(index: Index, story: list[tuple[tuple[object, ...], bool]]) -> None:
    world, kept = _World(index), TableCounts()
    for number, ((action, *arguments), is_read) in enumerate(story):
        getattr(world, str(action))(*arguments)
        # Several changes may come between two readings.
        if is_read or number == len(story) - 1:
            for scopes in _SCOPES:
                assert kept.read(index, scopes) == TableCounts().read(index, scopes), scopes
