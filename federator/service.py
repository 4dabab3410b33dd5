"""The Federator: one run from start to end, as resume → crawl → publish → verify → plan → guard → apply → seal.

``Federator`` connects configuration, index and progress. The command line, the worker and the API call its methods. A source or
mirror that fails is recorded and never stops the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from federator import logs
from federator.audit.config_events import record_config_change
from federator.planning.plan import Plan, check_plan
from federator.planning.rule import MirrorRule
from federator.planning.user_declarations import user_plan_target
from federator.settings import Settings
from federator.stages.apply import apply_plans, resolve_open_intents
from federator.stages.closing import close_run, seal_run_events
from federator.stages.context import RunContext
from federator.stages.crawl import crawl_sources
from federator.stages.declare import DeclareSpec, check_declare_spec, plan_declarations, rule_for_plan
from federator.stages.direct_writes import resolve_direct_writes
from federator.stages.plan import plan_mirrors
from federator.stages.prune import prune_history, require_policy
from federator.stages.rebuild_ledger import rebuild_ledgers
from federator.stages.report import ReportSpec, make_report
from federator.stages.result import Interrupted, ProgressEvent, RunResult
from federator.stages.run_notices import build_run_notices
from federator.stages.scan import scan_roots
from federator.stages.tracing import trace_run
from federator.stages.verify import verify_tables
from federator.store import Index, call_metrics, deployment, drift_detection, migrations, open_index, plans, revisions, runs
from federator.store.failures import describe_error
from federator.store.snapshots import MAINTENANCE_RUN_KINDS

__all__ = ["Federator", "Interrupted", "ProgressEvent", "RunResult"]


@dataclass
class Federator:
    """The service's core, over one configuration.

    ``on_progress`` receives each progress event, and ``on_run_started`` each run's id and kind. ``stop`` ends a run between two
    stages or two writes. ``max_failures`` ends a mirror's changes after so many failures. ``drops_confirmed``: the
    caller has a user confirm each plan, so it may drop namespaces whose catalog would drop all their objects, too.
    """

    settings: Settings
    index: Index
    on_progress: Callable[[ProgressEvent], None] = lambda _: None
    stop: threading.Event = field(default_factory=threading.Event)
    on_run_started: Callable[[runs.RunHandle], None] = lambda _: None
    max_failures: int | None = None
    drops_confirmed: bool = False

    @classmethod
    def open(
        cls, settings: Settings, on_progress: Callable[[ProgressEvent], None] = lambda _: None, *, create: bool = True
    ) -> Federator:
        """Open the index. A new SQLite file gets its tables at once; any other database needs ``federator db upgrade``."""
        index = open_index(settings.resolve_index_url(), base=settings.base)
        if create and index.file is not None and not index.file.exists():
            migrations.upgrade_schema(index)
        migrations.require_current_schema(index)
        return cls(settings, index, on_progress)

    def crawl(
        self, sources: Sequence[str] = (), *, full: bool = False, roots: Sequence[str] = (), trigger: str = "cli",
        actor: str | None = None,
    ) -> RunResult:  # fmt: skip
        """Crawl sources (default: all) into the index, and then scan ``roots``.

        Of a source with a change feed, only the namespaces that it names are read, unless ``full``.
        """
        with self._start_run("crawl", trigger, actor) as context:
            names = list(sources) or list(self.settings.sources)
            resolve_direct_writes(context, names)
            crawl_sources(context, names, full=full)
            scan_roots(context, roots)
        return context.result

    def scan(self, roots: Sequence[str] = (), *, trigger: str = "cli", actor: str | None = None) -> RunResult:
        """Scan storage roots (default: all) for tables that no catalog declares."""
        with self._start_run("scan", trigger, actor) as context:
            scan_roots(context, list(roots) or list(self.settings.roots))
        return context.result

    def verify(self, tables: Sequence[str], *, trigger: str = "cli", actor: str | None = None) -> RunResult:
        """Open the locations of tables now, given by their object ids, and store their verification states."""
        with self._start_run("verify", trigger, actor) as context:
            verify_tables(context, tables)
        return context.result

    def plan(
        self, mirrors: Sequence[str] = (), *, refresh: bool = True, trigger: str = "cli", actor: str | None = None
    ) -> RunResult:
        """Plan mirrors (default: all). Their sources are crawled before, unless ``refresh`` is False."""
        rules = self._rules(mirrors)
        with self._start_run("plan", trigger, actor) as context:
            if refresh:
                resolve_open_intents(context, rules)
                resolve_direct_writes(context, _mirror_sources(rules))
                crawl_sources(context, _mirror_sources(rules))
            plan_mirrors(context, rules)
        return context.result

    def apply(self, decided_plans: Sequence[tuple[Plan, str]], *, trigger: str = "cli", actor: str | None = None) -> RunResult:
        """Apply existing plans, each given with its digest.

        Raise StateError for a plan that was altered, that is not in this index, or that was rejected. Also raise it for a mirror's
        plan if the configuration of its origin or target has changed since the last crawl.
        """
        for plan, digest in decided_plans:
            rule = rule_for_plan(self.settings, plan.mirror)
            check_plan(plan, digest=digest, mirror_digest=rule.digest)
            with self.index.read() as connection:
                plans.require_applicable(connection, digest)
                # A plan of declarations by users has no origin, and was not made from a crawl of its target.
                for source in _mirror_sources([rule] if user_plan_target(plan.mirror) is None else []):
                    revisions.check_configuration(connection, source, self.settings.source(source).digest)
        with self._start_run("apply", trigger, actor) as context:
            context.result.plans = [plan for plan, _ in decided_plans]
            apply_plans(context)
        return context.result

    def sync(
        self, mirrors: Sequence[str] = (), *, fresh: Sequence[str] = (), trigger: str = "cli", actor: str | None = None
    ) -> RunResult:
        """Crawl, plan and apply every source and mirror, or the named mirrors and their sources.

        Sources in ``fresh`` have just been crawled, and are not crawled again.
        """
        rules = self._rules(mirrors)
        with self._start_run("sync", trigger, actor) as context:
            resolve_open_intents(context, rules)
            names = _mirror_sources(rules) if mirrors else list(self.settings.sources)
            resolve_direct_writes(context, names)
            crawl_sources(context, [name for name in names if name not in fresh])
            plan_mirrors(context, rules)
            apply_plans(context)
        return context.result

    def declare(self, spec: DeclareSpec, *, trigger: str = "cli", actor: str | None = None) -> RunResult:
        """Plan the declaration of physical tables; ``apply`` makes the changes."""
        check_declare_spec(self.settings, spec)
        with self._start_run("declare", trigger, actor) as context:
            plan_declarations(context, spec)
        return context.result

    def rebuild_ledger(
        self, mirrors: Sequence[str] = (), *, enter: bool, trigger: str = "cli", actor: str | None = None
    ) -> RunResult:
        """Find objects of the targets that are missing in the ledgers of mirrors (default: all). With ``enter``, add them."""
        rules = self._rules(mirrors)
        with self._start_run("rebuild", trigger, actor) as context:
            rebuild_ledgers(context, rules, enter=enter)
        return context.result

    def prune(self, *, keep_days: float | None = None, trigger: str = "cli", actor: str | None = None) -> RunResult:
        """Remove the history that the policy, or ``keep_days``, does not keep. Raise ConfigError if there is no policy."""
        if keep_days is None:
            require_policy(self.settings)
        with self._start_run("prune", trigger, actor) as context:
            prune_history(context, keep_days=keep_days)
        return context.result

    def make_report(self, spec: ReportSpec, *, trigger: str = "cli", actor: str | None = None) -> RunResult:
        """Build a report and store it."""
        with self._start_run("report", trigger, actor) as context:
            make_report(context, spec)
        return context.result

    def _rules(self, mirrors: Sequence[str]) -> list[MirrorRule]:
        return [self.settings.mirror_rule(name) for name in mirrors or self.settings.mirrors]

    @contextmanager
    def _start_run(self, kind: str, trigger: str, actor: str | None) -> Iterator[RunContext]:
        runs.finish_interrupted_runs(self.index)
        deployment.claim_site(self.index, self.settings.instance)
        with (
            runs.run_lifetime(self.index, kind, trigger=trigger, actor=actor) as run,
            logs.bound(run=run.id),
            trace_run(self.settings, run),
            self._record_run(run) as context,
        ):
            yield context

    @contextmanager
    def _record_run(self, run: runs.RunHandle) -> Iterator[RunContext]:
        result = RunResult(run.id, run.kind)
        context = RunContext(
            self.settings, self.index, self.on_progress, self.stop, run, result, self.max_failures, self.drops_confirmed
        )
        self.on_run_started(run)
        try:
            record_config_change(self.index, self.settings, run)
            yield context
            # Drift depends on catalogs, plans and verification states; the other kinds of runs change none of them.
            if run.kind == "verify" or run.kind not in MAINTENANCE_RUN_KINDS:
                with context.record_errors("drift"):
                    drift_detection.refresh_drift(self.index, self.settings.mirror_rules, self.settings.roots)
        except BaseException as error:
            if isinstance(error, Exception) and self.stop.is_set():
                # An error during a stop counts as a consequence of the stop.
                if not isinstance(error, Interrupted):
                    context.result.errors[run.kind] = describe_error(error)
                close_run(context)
                return
            state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            run_notices = build_run_notices(context, error)
            summary = context.result.summary()
            runs.finish_run(self.index, run, state, summary=summary, error=describe_error(error), notices=run_notices)
            seal_run_events(context)
            raise
        else:
            close_run(context)
        finally:
            call_metrics.flush_meter(self.index)
            context.remove_staging()


def _mirror_sources(rules: Sequence[MirrorRule]) -> list[str]:
    return list(dict.fromkeys(name for rule in rules for name in (rule.origin, rule.target)))
