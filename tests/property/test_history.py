"""Any history of any sources: what was known at each moment and what changed between any two is told rightly, and stays so when what
is older is pruned, on both databases."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from federator.model import NamespaceRecord, Path, Record, Scopes, TableRecord, parse_path_key, path_key
from federator.model.differences import DifferenceKind
from federator.planning.publication import ObservedObject
from federator.store import Index, retention, revisions, runs
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.store.observations import publish_observations
from federator.store.snapshots import HistoryExpired, Snapshot
from federator.views import diff, history
from tests.fixtures.index_reads import iter_differences, iter_tree_at

_NUMBERS = itertools.count()
_NAMES = ("t", "u", "V", "w$w", "é")
_SPACES = (("s",), ("S2",))


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


Key = tuple[str, Path, bool]
State = dict[Key, Record]
#: of one step: the tables that are made or changed, each with a version, and those that are removed
Step = tuple[dict[Path, int], set[Path]]

_PATHS = st.sampled_from([(*space, name) for space in _SPACES for name in _NAMES])
_STEPS = st.tuples(st.dictionaries(_PATHS, st.integers(0, 2), max_size=4), st.sets(_PATHS, max_size=3))
_HISTORIES = st.lists(st.tuples(st.integers(0, 1), _STEPS), min_size=1, max_size=8)


@dataclass
class WrittenHistory:
    """A history as it was written: the vector and the state after each step."""

    sources: tuple[str, str]
    moments: list[Snapshot] = field(default_factory=lambda: [Snapshot(0.0, {})])
    states: list[State] = field(default_factory=lambda: [{}])


def write(index: Index, steps: list[tuple[int, Step]]) -> WrittenHistory:
    """Publishes each step as a revision of one of two sources that nobody else has."""
    number = next(_NUMBERS)
    written = WrittenHistory((f"a{number}", f"b{number}"))
    for which, (made, removed) in steps:
        source = written.sources[which]
        state = dict(written.states[-1])
        spaces: list[Record] = [NamespaceRecord(source, space) for space in _SPACES]
        tables: list[Record] = [
            TableRecord(source, path, f"s3://b/{v}", {"v": str(v)}, owner="o" if v else None) for path, v in made.items()
        ]
        looks = [ObservedObject(record.path, record, 1.0, isinstance(record, TableRecord)) for record in (*spaces, *tables)]
        looks += [ObservedObject(path, None, 1.0, is_table=True) for path in removed - made.keys()]
        revisions.register_source(index, source, "memory", "x")
        with acquire_lease(index, f"source:{source}") as lease:
            publish_observations(index, lease, source, f"run{len(written.moments)}", looks)
        for look in looks:
            if look.record is None:
                state.pop((source, look.path, True), None)
            else:
                state[source, look.path, look.is_table] = look.record
        with index.read() as connection:
            found = connection.execute(select(t.source.c.name, t.source.c.revision).where(t.source.c.name.in_(written.sources)))
            written.moments.append(Snapshot(time.time(), {row.name: row.revision for row in found}))
        written.states.append(state)
    return written


def tree_at(index: Index, written: WrittenHistory, moment: Snapshot, scopes: Scopes) -> dict[Key, str | None]:
    """The whole tree of a moment, walked in small pages: each object's location, which tells its version."""
    found: dict[Key, str | None] = {}

    def below(path: Path) -> None:
        for node in iter_tree_at(index, path, moment, limit=2, scopes=scopes):
            here = (*path, node.name)
            if node.kind != "source":
                table = node.kind == "table"
                found[here[0], here[1:], table] = node.location
            if node.kind in ("source", "namespace"):
                below(here)

    for source in written.sources:
        if moment.revision_of(source):
            below((source,))
    return found


def located(state: State) -> dict[Key, str | None]:
    return {key: record.location for key, record in state.items()}


def expected(begin: State, end: State) -> dict[Key, DifferenceKind]:
    changes = dict.fromkeys(end.keys() - begin.keys(), DifferenceKind.ADDED) | dict.fromkeys(
        begin.keys() - end.keys(), DifferenceKind.REMOVED
    )
    return changes | {key: DifferenceKind.CHANGED for key in begin.keys() & end.keys() if begin[key].digest != end[key].digest}


def compared(index: Index, begin: Snapshot, end: Snapshot) -> dict[Key, DifferenceKind]:
    found: dict[Key, DifferenceKind] = {}
    after: diff.DifferenceCursor | None = None
    while True:
        page = diff.list_differences(index, begin, end, after=after, limit=3)
        for difference in page.differences:
            path = parse_path_key(difference.id)
            found[path[0], path[1:], difference.kind == "table"] = difference.how
            assert bool(difference.fields) is (difference.how is DifferenceKind.CHANGED)
        after = page.next
        if after is None:
            return found


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=_HISTORIES, cut=st.integers(0, 8), pair=st.tuples(st.integers(0, 8), st.integers(0, 8)))
def test_kept_history_reads_alike_before_and_after_a_prune(
    index: Index, steps: list[tuple[int, Step]], cut: int, pair: tuple[int, int]
) -> None:
    written = write(index, steps)
    everything = Scopes(tuple((source,) for source in written.sources))
    horizon = written.moments[min(cut, len(steps))]

    def check(first: int) -> None:
        for moment, state in list(zip(written.moments, written.states, strict=True))[first:]:
            assert tree_at(index, written, moment, everything) == located(state)
            for path in [key[1] for key in state if key[2] and key[0] == written.sources[0]][:1]:
                view = history.get_table_at(index, (written.sources[0], *path), moment, scopes=everything)
                assert view.digest == state[written.sources[0], path, True].digest
        last = len(written.moments) - 1
        one, other = (min(max(first, number), last) for number in pair)
        assert compared(index, written.moments[one], written.moments[other]) == expected(
            written.states[one], written.states[other]
        )

    check(0)
    for source in written.sources:
        if horizon.revision_of(source):
            with acquire_lease(index, f"source:{source}") as lease:
                retention.prune_source(index, lease, source, horizon.at, runs.RunHandle("run", "prune", "me"))
    check(min(cut, len(steps)))
    with index.read() as connection:
        for source in written.sources:
            closed = select(func.count()).where(t.record.c.source == source, t.record.c.valid_to <= horizon.revision_of(source))
            assert connection.execute(closed).scalar() == 0
    for moment in written.moments[: min(cut, len(steps))]:
        if any(0 < moment.revision_of(source) < horizon.revision_of(source) for source in written.sources):
            with pytest.raises(HistoryExpired, match="is kept from"):
                history.list_children_at(index, (), moment)
            with pytest.raises(HistoryExpired, match="is kept from"):
                diff.list_differences(index, moment, written.moments[-1])


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=_HISTORIES, space=st.sampled_from(_SPACES), pair=st.tuples(st.integers(0, 8), st.integers(0, 8)))
def test_a_scope_sees_its_part_of_the_past_and_nothing_else(
    index: Index, steps: list[tuple[int, Step]], space: Path, pair: tuple[int, int]
) -> None:
    written = write(index, steps)
    source = written.sources[0]
    scope = Scopes(((source, *space),))

    def part(state: State) -> State:
        return {key: record for key, record in state.items() if key[0] == source and key[1][:1] == space}

    for moment, state in zip(written.moments, written.states, strict=True):
        if moment.revision_of(source):
            assert tree_at(index, written, Snapshot(moment.at, {source: moment.revision_of(source)}), scope) == located(
                part(state)
            )
        names = {node.name for node in iter_tree_at(index, (), moment, scopes=scope)}
        assert names == ({source} if moment.revision_of(source) else set())
    one, other = (min(number, len(steps)) for number in pair)
    differences = list(iter_differences(index, written.moments[one], written.moments[other], scopes=scope))
    wanted = expected(part(written.states[one]), part(written.states[other]))
    assert {(difference.id, difference.how) for difference in differences} == {
        (path_key((key[0], *key[1])), how) for key, how in wanted.items()
    }
    counts = diff.count_differences(index, written.moments[one], written.moments[other], scopes=scope)
    assert sum(counts.values()) == len(wanted)
