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

from federator.index import Index, differences, history, retention, revisions, runs
from federator.index import tables as t
from federator.index.differences import How
from federator.index.leases import hold
from federator.index.moments import BeyondHorizon, Moment
from federator.index.observed import Observed, publish_observed
from federator.model import NamespaceRecord, Path, Record, Scopes, TableRecord, parse_key, path_key

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
class Told:
    """A history as it was written: the vector and the state after each step."""

    sources: tuple[str, str]
    moments: list[Moment] = field(default_factory=lambda: [Moment(0.0, {})])
    states: list[State] = field(default_factory=lambda: [{}])


def write(index: Index, steps: list[tuple[int, Step]]) -> Told:
    """Publishes each step as a revision of one of two sources that nobody else has."""
    number = next(_NUMBERS)
    told = Told((f"a{number}", f"b{number}"))
    for which, (made, removed) in steps:
        source = told.sources[which]
        state = dict(told.states[-1])
        spaces: list[Record] = [NamespaceRecord(source, space) for space in _SPACES]
        tables: list[Record] = [
            TableRecord(source, path, f"s3://b/{v}", {"v": str(v)}, owner="o" if v else None) for path, v in made.items()
        ]
        looks = [Observed(record.path, record, 1.0, isinstance(record, TableRecord)) for record in (*spaces, *tables)]
        looks += [Observed(path, None, 1.0, is_table=True) for path in removed - made.keys()]
        revisions.register(index, source, "memory", "x")
        with hold(index, f"source:{source}") as lease:
            publish_observed(index, lease, source, f"run{len(told.moments)}", looks)
        for look in looks:
            if look.record is None:
                state.pop((source, look.path, True), None)
            else:
                state[source, look.path, look.is_table] = look.record
        with index.read() as connection:
            found = connection.execute(select(t.source.c.name, t.source.c.revision).where(t.source.c.name.in_(told.sources)))
            told.moments.append(Moment(time.time(), {row.name: row.revision for row in found}))
        told.states.append(state)
    return told


def seen_at(index: Index, told: Told, moment: Moment, scopes: Scopes) -> dict[Key, str | None]:
    """The whole tree of a moment, walked in small pages: each object's location, which tells its version."""
    found: dict[Key, str | None] = {}

    def below(path: Path) -> None:
        for node in history.walk(index, path, moment, limit=2, scopes=scopes):
            here = (*path, node.name)
            if node.kind != "source":
                table = node.kind == "table"
                found[here[0], here[1:], table] = node.location
            if node.kind in ("source", "namespace"):
                below(here)

    for source in told.sources:
        if moment.revision(source):
            below((source,))
    return found


def located(state: State) -> dict[Key, str | None]:
    return {key: record.location for key, record in state.items()}


def expected(begin: State, end: State) -> dict[Key, How]:
    changes = dict.fromkeys(end.keys() - begin.keys(), How.ADDED) | dict.fromkeys(begin.keys() - end.keys(), How.REMOVED)
    return changes | {key: How.CHANGED for key in begin.keys() & end.keys() if begin[key].digest != end[key].digest}


def compared(index: Index, begin: Moment, end: Moment) -> dict[Key, How]:
    found: dict[Key, How] = {}
    after: differences.Cursor | None = None
    while True:
        page = differences.page(index, begin, end, after=after, limit=3)
        for seen in page.differences:
            path = parse_key(seen.id)
            found[path[0], path[1:], seen.kind == "table"] = seen.how
            assert bool(seen.fields) is (seen.how is How.CHANGED)
        after = page.next
        if after is None:
            return found


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=_HISTORIES, cut=st.integers(0, 8), pair=st.tuples(st.integers(0, 8), st.integers(0, 8)))
def test_what_is_kept_is_told_alike_before_and_after_a_prune(
    index: Index, steps: list[tuple[int, Step]], cut: int, pair: tuple[int, int]
) -> None:
    told = write(index, steps)
    everything = Scopes(tuple((source,) for source in told.sources))
    horizon = told.moments[min(cut, len(steps))]

    def check(first: int) -> None:
        for moment, state in list(zip(told.moments, told.states, strict=True))[first:]:
            assert seen_at(index, told, moment, everything) == located(state)
            for path in [key[1] for key in state if key[2] and key[0] == told.sources[0]][:1]:
                view = history.table(index, (told.sources[0], *path), moment, scopes=everything)
                assert view.digest == state[told.sources[0], path, True].digest
        last = len(told.moments) - 1
        one, other = (min(max(first, number), last) for number in pair)
        assert compared(index, told.moments[one], told.moments[other]) == expected(told.states[one], told.states[other])

    check(0)
    for source in told.sources:
        if horizon.revision(source):
            with hold(index, f"source:{source}") as lease:
                retention.prune(index, lease, source, horizon.at, runs.RunHandle("run", "prune", "me"))
    check(min(cut, len(steps)))
    with index.read() as connection:
        for source in told.sources:
            closed = select(func.count()).where(t.record.c.source == source, t.record.c.valid_to <= horizon.revision(source))
            assert connection.execute(closed).scalar() == 0
    for moment in told.moments[: min(cut, len(steps))]:
        if any(0 < moment.revision(source) < horizon.revision(source) for source in told.sources):
            with pytest.raises(BeyondHorizon, match="is kept from"):
                history.children(index, (), moment)
            with pytest.raises(BeyondHorizon, match="is kept from"):
                differences.page(index, moment, told.moments[-1])


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=_HISTORIES, space=st.sampled_from(_SPACES), pair=st.tuples(st.integers(0, 8), st.integers(0, 8)))
def test_a_scope_sees_its_part_of_the_past_and_nothing_else(
    index: Index, steps: list[tuple[int, Step]], space: Path, pair: tuple[int, int]
) -> None:
    told = write(index, steps)
    source = told.sources[0]
    scope = Scopes(((source, *space),))

    def part(state: State) -> State:
        return {key: record for key, record in state.items() if key[0] == source and key[1][:1] == space}

    for moment, state in zip(told.moments, told.states, strict=True):
        if moment.revision(source):
            assert seen_at(index, told, Moment(moment.at, {source: moment.revision(source)}), scope) == located(part(state))
        names = {node.name for node in history.walk(index, (), moment, scopes=scope)}
        assert names == ({source} if moment.revision(source) else set())
    one, other = (min(number, len(steps)) for number in pair)
    found = list(differences.walk(index, told.moments[one], told.moments[other], scopes=scope))
    wanted = expected(part(told.states[one]), part(told.states[other]))
    assert {(seen.id, seen.how) for seen in found} == {(path_key((key[0], *key[1])), how) for key, how in wanted.items()}
    counts = differences.totals(index, told.moments[one], told.moments[other], scopes=scope)
    assert sum(counts.values()) == len(wanted)
