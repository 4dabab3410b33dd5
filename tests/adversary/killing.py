"""Changes on a real catalog, made by processes that are killed, or held up, exactly where a test says.

A process counts the moments of its run: before and after each record in the journal, before and after each write at the target.
``Orders`` name the moment at which it sends itself a signal. What it did is in a log that outlives it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from sqlalchemy import select, text

from federator.apply import Executor, Intent, Journal, Outcome
from federator.apply.store_journal import StoreJournal
from federator.connector import Catalog, NamespaceNotFound, SourceSpec
from federator.model import NamespaceRecord, TableRecord, parse_path_key
from federator.planning.changes import Action, Change, record_to_json
from federator.planning.journal_lines import JournalEffect, Question, list_removals, list_unfinished_renames
from federator.planning.ownership import OwnershipMarker, find_bound_marker
from federator.planning.reasons import ApplyCode
from federator.planning.rule import MirrorRule
from federator.registry import open_catalog
from federator.store import Index, journal, leases, ledger, open_index, runs
from federator.store import tables as t
from federator.store.leases import Lease, acquire_lease
from federator.store.plan_facts import PlanFacts
from federator.testing.memory_store import MemoryStore

ORIGIN, TARGET = "a", "lake"
WRITES = ("create_namespace", "drop_namespace", "declare_table", "update_table", "deregister_table")
#: every kind of step that a plan has, in a plan's order
SUBJECTS = ("deregister", "create", "rename", "update", "recreate", "adopt", "declare", "drop")
_MEMORY = "federator.testing:CONNECTOR"


def workers(number: int) -> ProcessPoolExecutor:
    """Processes without threads of their own, so that they may fork, with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(number, mp_context=context)


def _catalogs(spec: SourceSpec) -> tuple[Catalog, Catalog]:
    """One for this process, and one without a connection as yet, for the processes that it forks: opening takes long."""
    return _opened(spec.name, spec.impl, tuple(sorted(spec.properties.items())))


@cache
def _opened(name: str, impl: str, properties: tuple[tuple[str, str], ...]) -> tuple[Catalog, Catalog]:
    spec = SourceSpec(name, impl, dict(properties))
    return open_catalog(spec), open_catalog(spec)


@dataclass(frozen=True)
class Orders:
    """The signal that a process sends itself at its moment of that number; ``ttl``, ``deadline`` and ``wait`` are seconds."""

    at: int | None = None
    signal: int = signal.SIGKILL
    ttl: float = 60.0
    deadline: float = 60.0
    wait: float = 10.0
    #: carry the plan out again while the lease was too short for some of it
    again: bool = False


@dataclass
class Moments:
    """Counts a process's moments, writes them down, and strikes at the one it was told."""

    orders: Orders
    log: Path
    phase: str = "resume"
    count: int = 0

    def reach(self, what: str) -> None:
        at, self.count = self.count, self.count + 1
        self.note(what, at=at)
        if at == self.orders.at:
            os.kill(os.getpid(), self.orders.signal)

    def note(self, what: str, **more: Any) -> None:
        line = {"pid": os.getpid(), "time": time.time(), "phase": self.phase, "what": what, **more}
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")


@dataclass
class WatchedJournal:
    """A journal whose every record has a moment before and one after it."""

    inner: Journal
    moments: Moments

    def list_open_intents(self) -> list[Intent]:
        return self.inner.list_open_intents()

    def can_call_within(self, seconds: float) -> bool:
        return self.inner.can_call_within(seconds)

    def record_intent(self, intent: Intent) -> None:
        what = f"{intent.change.action.value} {intent.change.target_path}"
        self.moments.reach(f"before intend {what}")
        self.inner.record_intent(intent)
        self.moments.reach(f"after intend {what}")

    def record_outcome(self, intent: Intent, outcome: Outcome) -> None:
        what = f"{intent.change.action.value} {intent.change.target_path}"
        self.moments.reach(f"before settle {what}")
        self.inner.record_outcome(intent, outcome)
        self.moments.reach(f"after settle {what}")

    def paths_at(self, canonical: str) -> Collection[str]:
        return self.inner.paths_at(canonical)

    def paths_declared_at(self, canonical: str) -> Collection[str]:
        return self.inner.paths_declared_at(canonical)

    def paths_pending_at(self, canonical: str) -> Collection[str]:
        return self.inner.paths_pending_at(canonical)

    def origin_digest(self, path: str) -> str | None:
        return self.inner.origin_digest(path)


class WatchedCatalog:
    """A catalog whose every write has a moment before and one after it. It can save any table whole, as far as its record tells.

    As a write begins, ``witness`` says how the lease stands.
    """

    def __init__(self, inner: Catalog, moments: Moments, witness: Callable[[], dict[str, Any]]) -> None:
        self._inner, self._moments, self._witness = inner, moments, witness

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._watched(name, found) if name in WRITES else found

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(subject: Any, *more: Any, **options: Any) -> Any:
            path = subject if isinstance(subject, tuple) else subject.path
            what = f"{name} {'$'.join(path)}"
            self._moments.reach(f"before call {what}")
            self._moments.note(f"begin call {what}", **self._witness())
            made = call(subject, *more, **options)
            self._moments.reach(f"after call {what}")
            return made

        return watched

    def read_native(self, path: tuple[str, ...]) -> dict[str, Any]:
        return record_to_json(self._inner.describe_table(path))

    def describe_recreate_loss(self, native: Any) -> None:
        return None


@dataclass(frozen=True)
class Site:
    """A server with room for many worlds. ``above`` is the level over the namespaces, if there is one; ``location`` is where tables
    are declared to lie. ``url`` is an index that all share; without it each world has a copy of the file ``template``."""

    directory: Path
    target: SourceSpec
    location: str
    above: str = ""
    url: str = ""
    template: Path | None = None

    def world(self, name: str, *subjects: str) -> World:
        directory = self.directory / name
        directory.mkdir()
        url = self.url or f"sqlite:///{directory}/index.db"
        if self.template is not None:
            shutil.copyfile(self.template, directory / "index.db")
        target = self.target
        if target.impl == _MEMORY:
            target = replace(target, properties={"file": str(directory / "target.json")})
        return World(directory, target, f"{self.directory.name}_{name}", self.location, self.above, url, subjects).build()


@dataclass
class World:
    """Tables of ours in namespaces whose names begin with ``prefix``, and a plan of some subjects and one declaration at the end."""

    directory: Path
    target: SourceSpec
    prefix: str
    location: str
    above: str
    url: str
    subjects: Sequence[str]
    changes: list[Change] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.directory / "moments.jsonl"

    @property
    def origin(self) -> SourceSpec:
        return SourceSpec(ORIGIN, _MEMORY, {"file": str(self.directory / "origin.json")})

    @property
    def rule(self) -> MirrorRule:
        return MirrorRule(name=self.prefix, origin=ORIGIN, target=TARGET)

    @contextmanager
    def index(self) -> Iterator[Index]:
        opened = open_index(self.url)
        try:
            yield opened
        finally:
            opened.close()

    def build(self) -> World:
        """Makes what is there before through the executor itself, then the plan of what comes next."""
        owned_names = {"deregister": "gone", "rename": "old", "update": "changed", "recreate": "again"}
        setup = [self._namespace(Action.CREATE_NAMESPACE, "s")]
        setup += [self._declare("s", name, name) for subject, name in owned_names.items() if subject in self.subjects]
        if "drop" in self.subjects:
            setup.append(self._namespace(Action.CREATE_NAMESPACE, "empty"))
        target, _ = _catalogs(self.target)
        with self.index() as index, acquire_lease(index, f"mirror:{self.prefix}") as lease:
            run = runs.insert_run(index, "apply", actor="test")
            executor = Executor(StoreJournal(index, run, self.rule, [lease]), self.rule, open_catalog(self.origin), target)
            outcomes = executor.apply("setup", setup)
            assert {o.state.value for o in outcomes} == {"done"}, [(o.change.target_path, o.code, o.message) for o in outcomes]
            if "adopt" in self.subjects:
                path = parse_path_key(self.key("s", "theirs"))
                target.declare_table(TableRecord(TARGET, path, self._location("theirs"), {"v": "1"}))
            self.changes = [change for subject in self.subjects for change in self._planned(subject, target)]
        self.changes.append(self._declare("s", "last", "last"))
        return self

    def _planned(self, subject: str, catalog: Catalog) -> list[Change]:
        if subject == "deregister":
            return [self._remove(catalog, "gone")]
        if subject == "create":
            return [self._namespace(Action.CREATE_NAMESPACE, "fresh"), self._declare("fresh", "t", "t")]
        if subject == "rename":
            return [self._remove(catalog, "old", pair="old -> new"), self._declare("s", "new", "old", pair="old -> new")]
        if subject == "update":
            return [self._altered(catalog, Action.UPDATE_TABLE, "changed")]
        if subject == "recreate":
            return [self._altered(catalog, Action.RECREATE_TABLE, "again")]
        if subject == "adopt":
            return [self._altered(catalog, Action.ADOPT, "theirs")]
        if subject == "declare":
            return [self._declare("s", "made", "made")]
        record = catalog.describe_namespace(parse_path_key(self.key("empty")))
        condition = {"target": record.digest, "origin": "any"}
        drop = Change(Action.DROP_NAMESPACE, TARGET, self.key("empty"), ORIGIN, "empty", "test", precondition=condition)
        return [replace(drop, namespace=record)]

    def key(self, *names: str) -> str:
        return "$".join((*self.above.split(), f"{self.prefix}_{names[0]}", *names[1:]))

    def _location(self, name: str) -> str:
        return f"{self.location}/{self.prefix}_data/{name}"

    def _mark(self, key: str, name: str) -> dict[str, str]:
        return OwnershipMarker("one", self.rule.name, f"{ORIGIN}$s${name}", "planned").to_properties(parse_path_key(key))

    def _namespace(self, action: Action, name: str) -> Change:
        path = parse_path_key(self.key(name))
        record = NamespaceRecord(TARGET, path, self._mark(self.key(name), name), f"{self.location}/{path[-1]}")
        return Change(action, TARGET, self.key(name), ORIGIN, name, "test", precondition={"target": "absent"}, namespace=record)

    def _declare(self, namespace: str, name: str, data: str, pair: str | None = None) -> Change:
        key = self.key(namespace, name)
        after = TableRecord(TARGET, parse_path_key(key), self._location(data), {"v": "1", **self._mark(key, name)})
        condition = {"target": "absent", "origin": "any"}
        change = Change(Action.DECLARE_TABLE, TARGET, key, ORIGIN, f"s${name}", "test", precondition=condition)
        return replace(change, after=after, pair=pair)

    def _remove(self, catalog: Catalog, name: str, pair: str | None = None) -> Change:
        before = catalog.describe_table(parse_path_key(self.key("s", name)))
        condition = {"target": before.digest, "origin": "absent"}
        change = Change(Action.DEREGISTER_TABLE, TARGET, before.key, ORIGIN, f"s${name}", "test", precondition=condition)
        return replace(change, before=before, pair=pair)

    def _altered(self, catalog: Catalog, action: Action, name: str) -> Change:
        before = catalog.describe_table(parse_path_key(self.key("s", name)))
        after = replace(before, properties={**before.properties, "v": "2", **self._mark(before.key, name)})
        condition = {"target": before.digest, "origin": "any"}
        change = Change(action, TARGET, before.key, ORIGIN, f"s${name}", "test", precondition=condition)
        return replace(change, before=before, after=after)

    # Processes.

    def start(self, orders: Orders | None = None) -> BaseProcess:
        """A process of its own that settles what is open and carries out the plan."""
        _catalogs(self.target)
        process = multiprocessing.get_context("fork").Process(target=_work, args=(self, orders or Orders()), daemon=True)
        process.start()
        return process

    def run(self, orders: Orders | None = None) -> int:
        """Runs such a process to its end; returns its exit code, negative for a signal."""
        process = self.start(orders)
        process.join(240)
        assert process.exitcode is not None, "the process did not end"
        return process.exitcode

    # What there is in the end.

    def log_lines(self) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [{**line, "what": self._plain(line["what"])} for line in map(json.loads, lines)]

    def moments(self) -> list[dict[str, Any]]:
        """The moments that were reached, in their order, by every process."""
        return [line for line in self.log_lines() if "at" in line]

    def state(self) -> dict[str, Any]:
        """The target and what the index says of it, without what differs from world to world; and what must never be."""
        catalog, _ = _catalogs(self.target)
        tables = {record.key: record for record in self._tables(catalog)}
        namespaces = [name for name in ("s", "fresh", "empty") if self._exists(catalog, name)]
        with self.index() as index, index.read() as connection:
            rows = ledger.list_entries(connection, self.rule.name)
            left = journal.list_open_intents(connection, self.rule.name)
            deleted = list_removals(
                journal.iter_lines(connection, self.rule.name, Question.REMOVALS, 0), PlanFacts(connection).table
            )
            unfinished = list_unfinished_renames(journal.iter_lines(connection, self.rule.name, Question.RENAMES, 0))
            made = select(t.journal.c.action, t.journal.c.target_path, t.journal.c.code)
            done = connection.execute(made.where(t.journal.c.mirror == self.rule.name, t.journal.c.state == "done")).all()
        owned = {entry.target_path: entry for entry in rows if entry.is_table}
        marks = {key: find_bound_marker(record) for key, record in tables.items()}
        counted = Counter(f"{action} {self._plain(path)}" for action, path, code in done if code != JournalEffect.ALREADY_GONE)
        return {
            "tables": {self._plain(key): (self._plain(r.location or ""), r.properties["v"]) for key, r in tables.items()},
            "namespaces": namespaces,
            "ledger": sorted((self._plain(entry.target_path), entry.is_table) for entry in rows),
            "locations": len({record.canonical for record in tables.values()}),
            "orphans": sorted(self._plain(key) for key in set(owned) ^ set(tables)),
            "strangers": sorted(
                self._plain(key) for key, entry in owned.items() if (mark := marks.get(key)) and mark.op_id != entry.op_id
            ),
            "open": [intent.target_path for intent in left],
            "done": sorted(counted.items()),
            "deleted": sorted(self._plain(path) for path in deleted),
            "unfinished": unfinished,
        }

    def target_calls(self) -> list[str]:
        """The writes that a target in memory says were made, in their order."""
        return [self._plain(call) for call in MemoryStore(str(self.target.properties["file"])).calls()]

    def repeated(self) -> list[str]:
        """The writes that happened more than once."""
        calls = Counter(line["what"] for line in self.log_lines() if line["what"].startswith("after call"))
        return [what for what, times in calls.items() if times > 1]

    def _tables(self, catalog: Catalog) -> Iterator[TableRecord]:
        for name in ("s", "fresh", "empty"):
            namespace = parse_path_key(self.key(name))
            if self._exists(catalog, name):
                for table in catalog.list_tables(namespace):
                    yield catalog.describe_table((*namespace, table))

    def _exists(self, catalog: Catalog, name: str) -> bool:
        try:
            catalog.describe_namespace(parse_path_key(self.key(name)))
        except NamespaceNotFound:
            return False
        return True

    def _plain(self, name: str) -> str:
        return re.sub(rf"{self.prefix}_|{self.above or self.prefix}\$", "", name)


def _work(world: World, orders: Orders) -> None:
    leases.LEASE_TTL_SECONDS, leases.CALL_DEADLINE_SECONDS = orders.ttl, orders.deadline
    moments, name = Moments(orders, world.log), world.rule.name
    with (
        world.index() as index,
        acquire_lease(index, f"mirror:{name}", wait=orders.wait) as lease,
        open_catalog(world.origin) as origin,
    ):
        _, target = _catalogs(world.target)
        run = runs.insert_run(index, "apply", actor="test")
        watched: Any = WatchedCatalog(target, moments, lambda: _standing(index, lease))
        written = WatchedJournal(StoreJournal(index, run, world.rule, [lease]), moments)
        executor = Executor(written, world.rule, origin, watched, deadline=orders.deadline)
        executor.resolve_open_intents()
        moments.phase = "apply"
        outcomes = executor.apply("plan", world.changes)
        while orders.again and any(outcome.code is ApplyCode.LEASE for outcome in outcomes):
            outcomes = executor.apply("plan", world.changes)


def _standing(index: Index, lease: Lease) -> dict[str, Any]:
    """How a lease stands by the database's own clock: whether it is ours, and the seconds that are left of it."""
    if index.is_sqlite:
        return {}
    query = text("SELECT token, expires_at - extract(epoch FROM clock_timestamp()) FROM lease WHERE name = :name")
    with index.read() as connection:
        token, left = connection.execute(query, {"name": lease.name}).one()
    return {"ours": token == lease.token, "left": float(left)}
