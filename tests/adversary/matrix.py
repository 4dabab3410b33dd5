"""The lie matrix: every lie × connector × phase, against real servers. ``python -m tests.adversary lies`` prints it.

A cell's observed text says what the connector reported and what the server then has. The expected texts are rules over lie, phase
and connector (``expected``); a cell that cannot be has its reason (``impossible``). What must hold in every cell is checked beside it:
a table that is there is never proven absent by two crawls and an observation, a reported success is true, no table disappears, and
the time is bounded.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from federator.connector import Catalog, CatalogError
from federator.model import Coverage, Kind, Path, Record, TableRecord, path_key
from federator.pipeline.shard_reader import read_shard
from federator.planning.evidence import has_enough_misses, is_proven_absent
from tests.adversary import lies as act
from tests.adversary.expectations import expected, speaks_thrift
from tests.adversary.lies import EACH, Action, Edit, Lie, Op, Raise, Send
from tests.adversary.table import Cell
from tests.adversary.worlds import World

#: seconds for all of one cell's calls; a client that takes longer has no bound
BOUND = 20.0
#: seconds for a shard
DEADLINE = 6.0
PHASES = ("list", "describe", "create", "alter", "drop", "observe")
_HTML = b"<html><body>Welcome to nginx!</body></html>"


@dataclass(frozen=True, slots=True)
class Kindof:
    """A lie by name: the action in a world and phase, or the reason why there is none."""

    name: str
    action: Callable[[World, str], Action | str]
    first: int = 1
    times: int | None = None


def _always(action: Action) -> Callable[[World, str], Action | str]:
    return lambda world, phase: action


def _http(action: Action) -> Callable[[World, str], Action | str]:
    return lambda world, phase: "thrift has no such body or status" if speaks_thrift(world) else action


def _both(http: Action, thrift: Action) -> Callable[[World, str], Action | str]:
    return lambda world, phase: thrift if speaks_thrift(world) else http


def _listing(make: Callable[[World], Action | str]) -> Callable[[World, str], Action | str]:
    return lambda world, phase: make(world) if phase == "list" else "only a listing has items and pages"


def _status(code: int, retry_after: str | None = None) -> Callable[[World, str], Action | str]:
    return _http(Send(b"{}", code, retry_after=retry_after))


def _missing_field(world: World, phase: str) -> Action | str:
    if phase == "list":
        if world.name == "rest" or speaks_thrift(world):
            return "the items are bare names"
        return Edit(world.words.name, Op.REMOVE)
    if phase in ("describe", "observe"):
        path = (0, 1, EACH, 9) if speaks_thrift(world) and phase == "describe" else world.words.required
        return Edit((0, 1, 9) if speaks_thrift(world) and phase == "observe" else path, Op.REMOVE)
    return "the response to a write is read back"


def _wrong_type(world: World, phase: str) -> Action | str:
    if phase == "list":
        return Edit(world.words.items, Op.SET, 7)
    if phase in ("describe", "observe"):
        return Edit((0,), Op.SET, "x") if speaks_thrift(world) else Edit(world.words.required, Op.SET, [7])
    return "the response to a write is read back"


def _not_found(world: World, phase: str) -> Action | str:
    if phase in ("describe", "observe"):
        return world.words.not_found or "no words for it"
    return "a listing that names what is then not found is the lie: describe and observe"


def _endless(*, fresh: bool) -> Callable[[World, str], Action | str]:
    return _listing(lambda w: act.Endless(w.words.token, fresh=fresh) if w.words.token else "Hive's listings have no pages")


def _elsewhere(world: World, phase: str) -> Action | str:
    if world.other is None:
        return "one server of this kind runs: the tests of identity have two"
    return act.Elsewhere(world.other)


def _twice(world: World, phase: str) -> Action | str:
    return act.Repeat() if phase in ("create", "alter", "drop") else "a read may be repeated"


LIES: tuple[Kindof, ...] = (
    Kindof("refuse", _always(act.Refuse())),
    Kindof("reset", _always(act.Reset())),
    Kindof("hang", _always(act.Hang())),
    Kindof("drip", _always(act.Drip(0.001))),
    Kindof(
        "drip forever",
        lambda w, p: act.Drip(0.4) if p == "list" else "test_call_deadlines.py has it: a call may take longer than a cell",
    ),
    Kindof("cut", _always(act.Cut())),
    Kindof("wrong type", _wrong_type),
    Kindof("missing field", _missing_field),
    Kindof("{}", _both(Send(b"{}"), Edit((0,), Op.REMOVE))),
    Kindof("[]", _http(Send(b"[]"))),
    Kindof("html", _both(Send(_HTML, content_type="text/html"), Send(b"HTTP/1.1 200 OK\r\n\r\n" + _HTML))),
    Kindof("not found", _not_found),
    Kindof("bare 404", _http(Send(_HTML, 404, "text/html"))),
    Kindof("other case", _listing(lambda w: Edit(w.words.name, Op.UPPER))),
    Kindof("stale", _listing(lambda w: act.Stale())),
    Kindof("duplicated", _listing(lambda w: Edit(w.words.items, Op.DOUBLE))),
    Kindof("empty", _listing(lambda w: Edit(w.words.items, Op.CLEAR))),
    Kindof("short", _listing(lambda w: Edit(w.words.items, Op.SHORTEN))),
    Kindof("endless", _endless(fresh=False)),
    Kindof("endless, fresh tokens", _endless(fresh=True)),
    Kindof("401", _status(401)),
    Kindof("403", _status(403)),
    Kindof("429", _status(429)),
    Kindof("429, retry", _status(429, "3600")),
    Kindof("500", _both(Send(b"{}", 500), Raise(1, "Server error"))),
    Kindof("502", _status(502)),
    Kindof("503", _status(503)),
    Kindof("503, retry", _status(503, "3600")),
    Kindof("503 once", _status(503), times=1),
    Kindof("lost", _always(act.Lose())),
    Kindof("lost once", _always(act.Lose()), times=1),
    Kindof("repeated", _twice),
    Kindof("expiry", _status(401), first=2),
    Kindof("elsewhere", _elsewhere),
)


def cell_of(world: World, lie: Kindof, phase: str) -> Cell:
    """Runs one cell."""
    name = f"{lie.name} × {world.name} × {phase}"
    chosen = impossible(world, lie, phase) or lie.action(world, phase)
    if isinstance(chosen, str):
        return Cell("lies", name, chosen, "cannot be", True)
    try:
        observed, problems = _bounded(lambda: run(world, Lie(_calls(world, phase), chosen, lie.first, lie.times), phase))
    finally:
        world.proxy.truthful()
    wanted = expected(world, lie.name, phase)
    text = "; ".join([observed, *problems])
    return Cell("lies", name, text, wanted, text == wanted)


def impossible(world: World, lie: Kindof, phase: str) -> str | None:
    """Why a phase cannot be in a world."""
    if phase == "alter" and world.words.alter is None:
        return "this catalog cannot alter tables"
    if phase == "describe" and world.words.describe is None:
        return "a listing brings whole tables"
    if lie.name == "expiry" and phase != "list":
        return "one call has no middle"
    return None


def run(world: World, lie: Lie, phase: str) -> tuple[str, list[str]]:
    """What the connector reported of a phase under a lie and what the server then has; and what must not be."""
    world.prepare()
    phases = {"list": _crawl, "describe": _crawl, "observe": _observe, "create": _create, "alter": _alter, "drop": _drop}
    with world.open() as catalog:
        observed, problems = phases[phase](world, catalog, lie)
    world.proxy.truthful()
    for path in world.tables:
        if world.honest.observe(path).is_absent:
            problems.append(f"{path[-1]} is gone")
    return observed, problems


def _calls(world: World, phase: str) -> str:
    return str(getattr(world.words, phase))


def _crawl(world: World, catalog: Catalog, lie: Lie) -> tuple[str, list[str]]:
    """Coverage of the namespace and the names that were read. Then a second, equal crawl: what two misses and an
    observation would do."""
    catalog.plan_shards()
    world.proxy.lie(lie)
    rows: list[Record | Coverage] = []
    for shard in catalog.plan_shards():
        # A metastore of the session holds the databases of other tests, too.
        if world.namespace in shard.namespaces or not speaks_thrift(world):
            rows += list(read_shard(catalog, shard, DEADLINE))
    problems = [] if world.proxy.met else ["the lie was not met"]
    coverage = {path_key(row.namespace): row for row in rows if isinstance(row, Coverage)}
    tables = {row.path[-1]: row for row in rows if isinstance(row, TableRecord) and row.path[:-1] == world.namespace}
    own = coverage[path_key(world.namespace)]
    if own.complete and own.records != sum(
        1 for row in rows if isinstance(row, TableRecord) and row.path[:-1] == world.namespace
    ):
        problems.append("the coverage does not count its records")
    missed = [path for path in world.tables if path[-1] not in tables and is_proven_absent(path, coverage, set(coverage))]
    world.proxy.truthful()
    wrongly = [
        path[-1] for path in missed if has_enough_misses([0.0, 600.0], 2, 600.0) and world.open().observe(path).is_absent
    ]
    problems += [f"{name} would be deregistered" for name in wrongly]
    return _coverage_text(own, tables, missed), problems


def _coverage_text(own: Coverage, tables: dict[str, TableRecord], missed: list[Path]) -> str:
    texts = [own.presence.state.value + (f" {own.presence.code}" if own.presence.code is not None else "")]
    if own.presence.complete and not own.detail.complete:
        texts.append(f"detail {own.detail.state.value} {own.detail.code}")
    if not own.found:
        texts.append("not found")
    described = sum(record.kind is Kind.TABLE for record in tables.values())
    texts.append(f"{described} read" if described == len(tables) else f"{described} of {len(tables)} read")
    if missed:
        texts.append(f"{len(missed)} missed once")
    return ", ".join(texts)


def _observe(world: World, catalog: Catalog, lie: Lie) -> tuple[str, list[str]]:
    catalog.observe(world.tables[0])
    world.proxy.lie(lie)
    try:
        observation = catalog.observe(world.tables[0])
        text = "absent" if observation.is_absent else "foreign" if observation.record is None else "there"
    except CatalogError as error:
        text = f"code {error.code}"
    return text, [] if world.proxy.met else ["the lie was not met"]


def _create(world: World, catalog: Catalog, lie: Lie) -> tuple[str, list[str]]:
    record = world.record(f"n_{secrets.token_hex(4)}", k="v")

    def state() -> str:
        return "absent" if world.honest.observe(record.path).is_absent else "there"

    try:
        return _write(world, lie, lambda: catalog.declare_table(record), state, done="there")
    finally:
        world.proxy.truthful()
        _remove(world, record.path)


def _alter(world: World, catalog: Catalog, lie: Lie) -> tuple[str, list[str]]:
    before = world.honest.describe_table(world.tables[0])
    value = secrets.token_hex(4)
    after = world.record(before.path[-1], k=value)

    def state() -> str:
        return "altered" if world.honest.describe_table(before.path).properties.get("k") == value else "as before"

    return _write(world, lie, lambda: catalog.update_table(before, after), state, done="altered")


def _drop(world: World, catalog: Catalog, lie: Lie) -> tuple[str, list[str]]:
    record = world.record(f"n_{secrets.token_hex(4)}")
    declared = world.honest.declare_table(record)

    def state() -> str:
        return "absent" if world.honest.observe(record.path).is_absent else "there"

    try:
        return _write(world, lie, lambda: catalog.deregister_table(declared), state, done="absent")
    finally:
        world.proxy.truthful()
        _remove(world, record.path)


def _write(world: World, lie: Lie, call: Callable[[], object], state: Callable[[], str], *, done: str) -> tuple[str, list[str]]:
    world.proxy.lie(lie)
    try:
        call()
        text = "ok"
    except CatalogError as error:
        text = f"code {error.code}"
    problems = [] if world.proxy.met else ["the lie was not met"]
    after = state()
    if text == "ok" and after != done:
        problems.append("a success that is none")
    return f"{text}, {after}", problems


def _remove(world: World, path: Path) -> None:
    observation = world.honest.observe(path)
    if observation.record is not None:
        world.honest.deregister_table(observation.record)


def _bounded(call: Callable[[], tuple[str, list[str]]]) -> tuple[str, list[str]]:
    result: list[tuple[str, list[str]]] = []

    def tried() -> None:
        try:
            result.append(call())
        except Exception as error:  # noqa: BLE001 - shown in the cell
            result.append((f"{type(error).__name__}: {error}"[:200], ["not one of our errors"]))

    thread = threading.Thread(target=tried, daemon=True)
    thread.start()
    thread.join(BOUND)
    return result[0] if result else ("no end", [f"took longer than {BOUND:g} s"])


def cells(world: World) -> Iterator[Cell]:
    for lie in LIES:
        for phase in PHASES:
            yield cell_of(world, lie, phase)


#: cells of connectors that no proxy can stand before
_WITHOUT = {"dir": "a directory is read through the file system: no response to lie with"}


def full(worlds: Iterable[AbstractContextManager[World]]) -> Iterator[Cell]:
    """Every cell of the given worlds, and of the connectors without a protocol."""
    for opened in worlds:
        with opened as world:
            yield from cells(world)
    for name, reason in _WITHOUT.items():
        yield from (
            Cell("lies", f"{lie.name} × {name} × {phase}", reason, "cannot be", True) for lie in LIES for phase in PHASES
        )
