"""One run, top to bottom: crawl → publish → verify → plan → guard → apply → seal.

``Federator`` ties configuration, index and progress together; its methods are what the command line, the scheduler and the API call.
A source that fails is recorded and never stops the others.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from federator import audit
from federator.apply import Executor, Outcome, State
from federator.connector import FederatorError, SourceSpec
from federator.connector.options import resolve
from federator.index import (
    DatabaseError,
    Index,
    audit_log,
    coverage,
    datasets,
    journal,
    ledger,
    migrate,
    open_index,
    plans,
    records,
    revisions,
    runs,
)
from federator.index.leases import Lease, hold
from federator.index.observed import Observed, publish_observed
from federator.index.readers import IndexReader
from federator.model import canonical_json, parse_key, path_key
from federator.model.identifiers import parent
from federator.planning.changes import Change, Refusal
from federator.planning.decide import Knowledge
from federator.planning.guards import GuardFacts, objections
from federator.planning.mapping import MirrorContext
from federator.planning.plan import Plan, check, ordered, refuse_missing_locations, refuse_second_names, with_namespaces
from federator.planning.rule import MirrorRule
from federator.registry import connector, open_catalog
from federator.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from federator.pipeline.publish import Published

# A second run of the same thing waits this long for the first: most runs are shorter.
_LEASE_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """Progress: what is being done to what, and how it went (``None`` while it is going on)."""

    stage: str
    subject: str
    state: str | None = None
    detail: str = ""
    seconds: float = 0.0


@dataclass
class Result:
    """What a run came to."""

    run_id: str
    kind: str
    state: str = "ok"
    sources: dict[str, Published] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    #: digests of held plans that a person has approved
    approved: set[str] = field(default_factory=set)

    @property
    def waiting(self) -> list[Plan]:
        """Plans that a guard holds and nobody has approved."""
        return [plan for plan in self.plans if plan.held and plan.digest not in self.approved]

    @property
    def changes(self) -> int:
        return sum(len(plan.changes) for plan in self.plans)

    def settle(self) -> None:
        """Names the state: failed and partial before held, held before ok."""
        bad = [o for o in self.outcomes if o.state not in (State.DONE, State.SKIPPED)]
        incomplete = self.errors or any(p.state != "ok" for p in self.sources.values())
        useless = not self.plans and all(p.state == "failed" for p in self.sources.values())
        if bad or (incomplete and useless):
            self.state = "failed"
        elif incomplete:
            self.state = "partial"
        elif self.waiting:
            self.state = "held"

    def summary(self) -> dict[str, Any]:
        """Counts for the run's row."""
        done = [o.state.value for o in self.outcomes]
        return {
            "sources": len(self.sources),
            "tables": sum(p.tables for p in self.sources.values()),
            "changes": self.changes,
            "refusals": sum(len(plan.refusals) for plan in self.plans),
            "held": len(self.waiting),
            "outcomes": {state: done.count(state) for state in sorted(set(done))},
            "errors": self.errors,
        }


@dataclass
class Federator:
    """The service's core, over one configuration. ``report`` receives each Step; ``stop`` ends a run between two writes."""

    settings: Settings
    index: Index
    report: Callable[[Step], None] = lambda _: None
    stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def open(cls, settings: Settings, report: Callable[[Step], None] = lambda _: None, *, create: bool = True) -> Federator:
        """Opens the index; a new SQLite file gets its tables at once, any other database wants ``federator db upgrade``."""
        index = open_index(resolve(settings.index.url, where=f"{settings.path}: [index] url"), base=settings.base)
        if create and index.file is not None and not index.file.exists():
            migrate.upgrade(index)
        migrate.check(index)
        return cls(settings, index, report)

    # The runs.

    def crawl(self, sources: Sequence[str] = (), *, trigger: str = "cli", actor: str | None = None) -> Result:
        """Reads sources (default: all) into the index."""
        with self._run("crawl", trigger, actor) as (run, result):
            self._crawl(run, result, list(sources) or list(self.settings.sources))
        return result

    def plan(
        self, mirrors: Sequence[str] = (), *, refresh: bool = True, trigger: str = "cli", actor: str | None = None
    ) -> Result:
        """Plans mirrors (default: all), after reading their sources unless told not to."""
        rules = [self.settings.rule(name) for name in mirrors or self.settings.mirrors]
        with self._run("plan", trigger, actor) as (run, result):
            if refresh:
                self._resume(run, result, rules)
                self._crawl(run, result, _sources_of(rules))
            self._plan(run, result, rules)
        return result

    def apply(self, decided: Sequence[tuple[Plan, str]], *, trigger: str = "cli", actor: str | None = None) -> Result:
        """Applies plans that were made before, each given with its digest. Raises StateError for altered or outdated ones."""
        for plan, digest in decided:
            check(plan, digest=digest, mirror_digest=self.settings.rule(plan.mirror).digest)
        with self._run("apply", trigger, actor) as (run, result):
            result.plans = [plan for plan, _ in decided]
            self._apply(run, result)
        return result

    def sync(self, mirrors: Sequence[str] = (), *, trigger: str = "cli", actor: str | None = None) -> Result:
        """Crawls, plans and applies: every source and mirror, or the named mirrors and their sources."""
        rules = [self.settings.rule(name) for name in mirrors or self.settings.mirrors]
        with self._run("sync", trigger, actor) as (run, result):
            self._resume(run, result, rules)
            self._crawl(run, result, _sources_of(rules) if mirrors else list(self.settings.sources))
            self._plan(run, result, rules)
            self._apply(run, result)
        return result

    # What a run that died has left.

    def _resume(self, run: runs.RunHandle, result: Result, rules: Sequence[MirrorRule]) -> None:
        """Settles open intents before anything is planned: a declaration whose record was lost is in no ledger yet."""
        for rule in rules:
            with self.index.read() as connection:
                left = len(journal.open_intents(connection, rule.name))
            if not left:
                continue
            try:
                with self._step("resume", rule.name) as done, self._executor(run, rule) as (executor, lease):
                    result.outcomes += self._settle_left(run, rule, executor, lease)
                    done("ok", f"{left} calls without an outcome")
            except FederatorError as error:
                result.errors[f"mirror {rule.name}"] = str(error)

    def _settle_left(self, run: runs.RunHandle, rule: MirrorRule, executor: Executor, lease: Lease) -> list[Outcome]:
        settled = executor.resume()
        self._publish_outcomes(run, lease, rule.target, settled)
        # A call that was made, or not made, is as good as any other; one that nobody can tell of is this run's failure too.
        return [outcome for outcome in settled if outcome.state in (State.NEEDS_ADOPTION, State.UNKNOWN)]

    @contextmanager
    def _executor(self, run: runs.RunHandle, rule: MirrorRule) -> Iterator[tuple[Executor, Lease]]:
        """What makes a mirror's changes, with its leases held; the lease is the target's."""
        keeps = connector(self.settings.source(rule.target).impl).capabilities.keeps_properties
        with (
            hold(self.index, f"mirror:{rule.name}", wait=_LEASE_PATIENCE) as mirror_lease,
            hold(self.index, f"source:{rule.target}", wait=_LEASE_PATIENCE) as lease,
            open_catalog(self._spec(rule.origin)) as origin,
            open_catalog(self._spec(rule.target)) as target,
        ):
            yield Executor(self.index, run, rule, origin, target, (mirror_lease, lease), keeps, self.stop), lease

    # Crawl.

    def _crawl(self, run: runs.RunHandle, result: Result, names: list[str]) -> None:
        spark = self._spark()
        for name in names:
            source = self.settings.source(name)
            revisions.register(self.index, name, source.impl, source.digest)
        with ThreadPoolExecutor(max_workers=max(1, len(names)), thread_name_prefix="crawl") as pool:
            pending = {name: pool.submit(self._crawl_one, spark, run, name) for name in names}
            for name, future in pending.items():
                try:
                    result.sources[name] = future.result()
                except FederatorError as error:
                    result.errors[name] = str(error)
                except DatabaseError as error:
                    result.errors[name] = f"the index did not take what {name} said: {_first_line(error)}"
        if self.settings.verify.enabled:
            for name in [name for name in names if name in result.sources]:
                try:
                    self._verify(spark, name)
                except FederatorError as error:
                    result.errors[f"verify {name}"] = str(error)

    def _crawl_one(self, spark: SparkSession, run: runs.RunHandle, name: str) -> Published:
        from federator.pipeline.crawl import stage
        from federator.pipeline.diff import diff
        from federator.pipeline.normalise import normalise
        from federator.pipeline.publish import publish
        from federator.pipeline.session import engine_errors

        source = self.settings.source(name)
        with (
            self._step("crawl", name) as done,
            hold(self.index, f"source:{name}", wait=_LEASE_PATIENCE) as lease,
            engine_errors(f"crawl {name}"),
        ):
            directory = self._staging(run)
            began_at = time.time()
            staged = stage(spark, self._spec(name), directory, deadline=source.deadline)
            crawled = normalise(spark, name, staged, began_at=began_at)
            with self.index.read() as connection:
                revision = records.published(connection, name)
            delta = diff(spark, self._reader(), crawled, revision, directory)
            published = publish(self.index, lease, crawled, delta, run_id=run.id, config_digest=source.digest)
            self._record(run, name, published)
            done(published.state, _told(published))
        return published

    def _record(self, run: runs.RunHandle, name: str, published: Published) -> None:
        fields = ("revision", "state", "message", "tables", "namespaces", "added", "changed", "removed", "failed_namespaces")
        runs.source_outcome(self.index, run, name, **{field: getattr(published, field) for field in fields})

    def _verify(self, spark: SparkSession, name: str) -> None:
        from federator.pipeline.session import engine_errors
        from federator.pipeline.verify import verify

        limits = self.settings.verify
        with self.index.read() as connection:
            due = datasets.due(connection, name, checked_before=time.time() - limits.max_age, limit=limits.max_tables)
        if not due:
            return
        with self._step("verify", name) as done, engine_errors(f"verify {name}"):
            rows = list(verify(spark, self._spec(name), [dict(row) for row in due], timeout=limits.timeout))
            with self.index.write() as connection:
                datasets.save(connection, rows)
            states = [row["state"] for row in rows]
            done("ok", ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))))

    # Plan.

    def _plan(self, run: runs.RunHandle, result: Result, rules: Sequence[MirrorRule]) -> None:
        from federator.pipeline.session import engine_errors

        for rule in rules:
            try:
                with self._step("plan", rule.name) as done, engine_errors(f"plan {rule.name}"):
                    plan = self._plan_one(run, rule)
                    result.plans.append(plan)
                    if plan.held and self._decided(plan) == "approved":
                        result.approved.add(plan.digest)
                    done(
                        "held" if plan in result.waiting else "ok",
                        f"{len(plan.changes)} changes, {len(plan.refusals)} refusals",
                    )
            except FederatorError as error:
                result.errors[f"mirror {rule.name}"] = str(error)

    def _plan_one(self, run: runs.RunHandle, rule: MirrorRule) -> Plan:
        from federator.pipeline.candidates import candidates

        context = self._context(rule)
        with self.index.read() as connection:
            at = {name: records.published(connection, name) for name in (rule.origin, rule.target)}
            # What the mirror declared in another target, before it was pointed at this one, stays there and says nothing of this one.
            entries = [e for e in ledger.with_origins(connection, rule.name) if e["target_source"] == rule.target]
            knowledge = Knowledge(
                coverage.read(connection, rule.origin, at[rule.origin]), coverage.read(connection, rule.target, at[rule.target]),
                coverage.absences(connection, rule.origin),
            )  # fmt: skip
        found = candidates(
            self._spark(), self._reader(), context, knowledge, entries,
            origin_revision=at[rule.origin], target_revision=at[rule.target],
        )  # fmt: skip
        changes = [decision for decision in found.decisions if isinstance(decision, Change)]
        refusals = [decision for decision in found.decisions if isinstance(decision, Refusal)]
        changes, more = self._reconsider(context, changes)
        plan = Plan(
            rule.name, rule.digest, at[rule.origin], at[rule.target], ordered(changes),
            tuple(sorted([*refusals, *more], key=lambda r: (r.target_path, r.origin_path, r.reason))),
            tuple(self._objections(context, changes, entries, found.selected)), found.selected,
        )  # fmt: skip
        with self.index.write() as connection:
            state = "held" if plan.held else "ready"
            plans.save(
                connection,
                digest=plan.digest,
                mirror=rule.name,
                run_id=run.id,
                state=state,
                body=canonical_json(plan.to_json()),
            )
            detail = {
                "changes": len(plan.changes),
                "refusals": len(plan.refusals),
                "held": list(plan.held),
                "plan": plan.digest,
            }
            audit_log.append(connection, "plan", actor=run.actor, run_id=run.id, subject=rule.name, detail=detail)
        return plan

    def _reconsider(self, context: MirrorContext, changes: list[Change]) -> tuple[list[Change], list[Refusal]]:
        """What only the plan as a whole shows: second names, places that do not exist, namespaces that are missing."""
        rule = context.rule
        canonicals = sorted({c.after.canonical for c in changes if c.after is not None and c.after.canonical})
        with self.index.read() as connection:
            declared = records.paths_at(connection, rule.target, canonicals)
            states = {key: str(row["state"]) for key, row in datasets.states(connection, canonicals).items()}
            existing = records.namespaces(connection, rule.target)
        leaving = {c.target_path for c in changes if c.after is None}
        changes, seconds = refuse_second_names(changes, declared, leaving)
        allowed = rule.declare_missing or not context.target.makes_location
        changes, missing = refuse_missing_locations(changes, states, allowed=allowed)
        changes, homeless = with_namespaces(context, changes, existing)
        return changes, [*seconds, *missing, *homeless]

    def _objections(
        self, context: MirrorContext, changes: list[Change], entries: list[dict[str, Any]], selected: int
    ) -> list[str]:
        rule = context.rule
        with self.index.read() as connection:
            deleted = journal.destructive_since(connection, rule.name, time.time() - rule.guard_window)
        facts = GuardFacts(
            live=len(entries),
            live_by_namespace=_by_namespace(entry["target_path"] for entry in entries),
            live_by_origin=_by_namespace(entry["origin_path"] for entry in entries),
            deleted_in_window=len(deleted),
            deleted_by_namespace=_by_namespace(deleted),
            selected=selected,
            origin_filters_listings=connector(self.settings.source(rule.origin).impl).capabilities.listing_filtered,
        )
        return objections(rule, changes, facts)

    def _context(self, rule: MirrorRule) -> MirrorContext:
        origin, target = (connector(self.settings.source(name).impl).capabilities for name in (rule.origin, rule.target))
        # A name that no catalog has: the target is asked where a path goes that leaves its home out.
        shortest = ("-",) * (target.min_depth + 1)
        with open_catalog(self._spec(rule.target)) as catalog:
            home = catalog.canonical_path(shortest)[: -len(shortest)]
        return MirrorContext(rule, self.settings.instance.id or "", origin.levels, target, home)

    # Apply.

    def _apply(self, run: runs.RunHandle, result: Result) -> None:
        for plan in result.plans:
            if not plan.changes:
                continue
            try:
                with self._step("apply", plan.mirror) as done:
                    decided = self._decided(plan)
                    if decided == "rejected":
                        done("rejected", "a person rejected this plan")
                        continue
                    if plan.held and decided != "approved":
                        done("held", plan.held[0])
                        continue
                    if plan.held:
                        result.approved.add(plan.digest)
                    outcomes = self._apply_one(run, plan)
                    result.outcomes += outcomes
                    states = [outcome.state.value for outcome in outcomes]
                    done(_worst(outcomes), ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))))
            except FederatorError as error:
                result.errors[f"mirror {plan.mirror}"] = str(error)

    def _decided(self, plan: Plan) -> str:
        with self.index.read() as connection:
            return str(plans.get(connection, plan.digest)["state"])

    def _apply_one(self, run: runs.RunHandle, plan: Plan) -> list[Outcome]:
        rule = self.settings.rule(plan.mirror)
        with self._executor(run, rule) as (executor, lease):
            left = self._settle_left(run, rule, executor, lease)
            outcomes = [*left, *executor.apply(plan.digest, plan.changes, self._outcome)]
            self._publish_outcomes(run, lease, rule.target, outcomes)
        with self.index.write() as connection:
            plans.decide(connection, plan.digest, "applied", run.actor)
        return outcomes

    def _outcome(self, outcome: Outcome) -> None:
        change = outcome.change
        self.report(
            Step(
                "change",
                f"{change.action.value} {change.target_source}${change.target_path}",
                outcome.state.value,
                outcome.message or "",
            )
        )

    def _publish_outcomes(self, run: runs.RunHandle, lease: Lease, target: str, outcomes: Sequence[Outcome]) -> None:
        seen = [
            Observed(
                parse_key(o.change.target_path), o.record, o.observed_at, is_table=o.change.action.value != "create_namespace"
            )
            for o in outcomes
            if o.state is State.DONE
        ]
        publish_observed(self.index, lease, target, run.id, seen)

    # What every run needs.

    @contextmanager
    def _run(self, kind: str, trigger: str, actor: str | None) -> Iterator[tuple[runs.RunHandle, Result]]:
        run = runs.start(self.index, kind, trigger=trigger, actor=actor)
        result = Result(run.id, kind)
        try:
            yield run, result
        except BaseException as error:
            state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            runs.finish(self.index, run, state, summary=result.summary(), error=str(error) or type(error).__name__)
            raise
        else:
            result.settle()
            if self.stop.is_set():
                result.state = "interrupted"
            runs.finish(self.index, run, result.state, summary=result.summary())
        finally:
            shutil.rmtree(self._staging(run), ignore_errors=True)
            audit.seal(self.index)

    @contextmanager
    def _step(self, stage: str, subject: str) -> Iterator[Callable[[str, str], None]]:
        began = time.monotonic()
        self.report(Step(stage, subject))

        def done(state: str, detail: str) -> None:
            self.report(Step(stage, subject, state, detail, time.monotonic() - began))

        try:
            yield done
        except FederatorError as error:
            done("failed", error.message)
            raise

    def _spark(self) -> SparkSession:
        from federator.pipeline.session import session

        return session(self.settings)

    def _spec(self, name: str) -> SourceSpec:
        return self.settings.source(name).spec

    def _reader(self) -> IndexReader:
        file = self.index.file
        return IndexReader(f"sqlite:///{file}" if file is not None else self.settings.index.url)

    def _staging(self, run: runs.RunHandle) -> Any:
        return self.settings.state_dir / "staging" / run.id


def _by_namespace(keys: Iterable[str]) -> Counter[str]:
    return Counter(path_key(parent(parse_key(key))) for key in keys)


def _first_line(error: Exception) -> str:
    # The driver's own words: the statement and its values would follow.
    return next(iter(str(getattr(error, "orig", None) or type(error).__name__).splitlines()), "")


def _sources_of(rules: Sequence[MirrorRule]) -> list[str]:
    return list(dict.fromkeys(name for rule in rules for name in (rule.origin, rule.target)))


def _told(published: Published) -> str:
    text = f"{published.tables} tables in {published.namespaces} namespaces"
    changed = [
        f"{n} {word}"
        for n, word in zip((published.added, published.changed, published.removed), ("new", "changed", "gone"), strict=True)
        if n
    ]
    return "; ".join(
        [text + (f" ({', '.join(changed)})" if changed else ""), *([published.message] if published.message else [])]
    )


def _worst(outcomes: Sequence[Outcome]) -> str:
    bad = [o for o in outcomes if o.state not in (State.DONE, State.SKIPPED)]
    return "failed" if bad else "ok"
