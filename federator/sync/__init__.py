"""One run, top to bottom: resume → crawl → publish → verify → plan → guard → apply → seal.

``Federator`` ties configuration, index and progress together; its methods are what the command line, the scheduler and the API call.
A source or mirror that fails is recorded and never stops the others.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from federator import logs
from federator.audit.configuration import note_configuration
from federator.connector.options import resolve
from federator.index import Index, deployment, drift, migrate, open_index, plans, revisions, runs
from federator.index.moments import ASIDE
from federator.planning.declaring import target_of
from federator.planning.plan import Plan, check
from federator.planning.rule import MirrorRule
from federator.settings import Settings
from federator.sync.applying import apply, resume
from federator.sync.closing import finish, publish
from federator.sync.crawling import crawl
from federator.sync.declaring import Wanted, declare, rule_of
from federator.sync.declaring import check as check_wanted
from federator.sync.mirroring import plan
from federator.sync.pruning import need_policy, prune
from federator.sync.rebuilding import rebuild
from federator.sync.reporting import ReportWanted, make_report
from federator.sync.result import Interrupted, Result, Step
from federator.sync.scanning import scan
from federator.sync.telling import keep_counts, notices_of
from federator.sync.tracing import tracing
from federator.sync.work import Work

__all__ = ["Federator", "Interrupted", "Result", "Step"]


@dataclass
class Federator:
    """The service's core, over one configuration.

    ``report`` receives each Step, ``started`` each run's id and kind; ``stop`` ends a run between two steps or two writes, and
    ``max_failures`` a mirror's changes once so many have failed. ``drops_confirmed``: the caller asks a person before a namespace is
    dropped whose catalog drops it with all that is in it.
    """

    settings: Settings
    index: Index
    report: Callable[[Step], None] = lambda _: None
    stop: threading.Event = field(default_factory=threading.Event)
    started: Callable[[runs.RunHandle], None] = lambda _: None
    max_failures: int | None = None
    drops_confirmed: bool = False

    @classmethod
    def open(cls, settings: Settings, report: Callable[[Step], None] = lambda _: None, *, create: bool = True) -> Federator:
        """Opens the index; a new SQLite file gets its tables at once, any other database wants ``federator db upgrade``."""
        index = open_index(resolve(settings.index.url, where=f"{settings.path}: [index] url"), base=settings.base)
        if create and index.file is not None and not index.file.exists():
            migrate.upgrade(index)
        migrate.check(index)
        return cls(settings, index, report)

    def crawl(
        self, sources: Sequence[str] = (), *, full: bool = False, roots: Sequence[str] = (), trigger: str = "cli",
        actor: str | None = None,
    ) -> Result:  # fmt: skip
        """Reads sources (default: all) into the index, and then scans ``roots``.

        Of a source with a feed of changes only what that names, unless ``full``.
        """
        with self._run("crawl", trigger, actor) as work:
            crawl(work, list(sources) or list(self.settings.sources), full=full)
            scan(work, roots)
        return work.result

    def scan(self, roots: Sequence[str] = (), *, trigger: str = "cli", actor: str | None = None) -> Result:
        """Scans storage roots (default: all) for tables that no catalog declares."""
        with self._run("scan", trigger, actor) as work:
            scan(work, list(roots) or list(self.settings.roots))
        return work.result

    def plan(
        self, mirrors: Sequence[str] = (), *, refresh: bool = True, trigger: str = "cli", actor: str | None = None
    ) -> Result:
        """Plans mirrors (default: all), after reading their sources unless told not to."""
        rules = self._rules(mirrors)
        with self._run("plan", trigger, actor) as work:
            if refresh:
                resume(work, rules)
                crawl(work, _sources_of(rules))
            plan(work, rules)
        return work.result

    def apply(self, decided: Sequence[tuple[Plan, str]], *, trigger: str = "cli", actor: str | None = None) -> Result:
        """Applies plans that were made before, each given with its digest.

        Raises StateError for a plan that was altered, that this index did not make, or that a person rejected, and for a mirror's plan
        if its origin or target was configured differently when it was last crawled.
        """
        for made, digest in decided:
            rule = rule_of(self.settings, made.mirror)
            check(made, digest=digest, mirror_digest=rule.digest)
            with self.index.read() as connection:
                plans.applicable(connection, digest)
                for source in _sources_of([rule] if target_of(made.mirror) is None else []):
                    revisions.check_configuration(connection, source, self.settings.source(source).digest)
        with self._run("apply", trigger, actor) as work:
            work.result.plans = [made for made, _ in decided]
            apply(work)
        return work.result

    def sync(
        self, mirrors: Sequence[str] = (), *, fresh: Sequence[str] = (), trigger: str = "cli", actor: str | None = None
    ) -> Result:
        """Crawls, plans and applies: every source and mirror, or the named mirrors and their sources.

        Sources that are ``fresh`` have just been crawled, and are not crawled again.
        """
        rules = self._rules(mirrors)
        with self._run("sync", trigger, actor) as work:
            resume(work, rules)
            wanted = _sources_of(rules) if mirrors else list(self.settings.sources)
            crawl(work, [name for name in wanted if name not in fresh])
            plan(work, rules)
            apply(work)
        return work.result

    def declare(self, wanted: Wanted, *, trigger: str = "cli", actor: str | None = None) -> Result:
        """Plans the declaration of physical tables; ``apply`` carries the plans out."""
        check_wanted(self.settings, wanted)
        with self._run("declare", trigger, actor) as work:
            declare(work, wanted)
        return work.result

    def rebuild(self, mirrors: Sequence[str] = (), *, enter: bool, trigger: str = "cli", actor: str | None = None) -> Result:
        """Finds what the ledgers of mirrors (default: all) lack of what their targets hold; with ``enter`` writes it into them."""
        rules = self._rules(mirrors)
        with self._run("rebuild", trigger, actor) as work:
            rebuild(work, rules, enter=enter)
        return work.result

    def prune(self, *, keep_days: float | None = None, trigger: str = "cli", actor: str | None = None) -> Result:
        """Removes what the policy, or ``keep_days``, does not keep of the past. Raises ConfigError where there is no policy."""
        if keep_days is None:
            need_policy(self.settings)
        with self._run("prune", trigger, actor) as work:
            prune(work, keep_days=keep_days)
        return work.result

    def make_report(self, wanted: ReportWanted, *, trigger: str = "cli", actor: str | None = None) -> Result:
        """Makes a report and keeps it."""
        with self._run("report", trigger, actor) as work:
            make_report(work, wanted)
        return work.result

    def _rules(self, mirrors: Sequence[str]) -> list[MirrorRule]:
        return [self.settings.rule(name) for name in mirrors or self.settings.mirrors]

    @contextmanager
    def _run(self, kind: str, trigger: str, actor: str | None) -> Iterator[Work]:
        runs.finish_dead(self.index)
        deployment.claim(self.index, self.settings.instance)
        with (
            runs.begun(self.index, kind, trigger=trigger, actor=actor) as run,
            logs.bound(run=run.id),
            tracing(self.settings, run),
            self._recorded(run) as work,
        ):
            yield work

    @contextmanager
    def _recorded(self, run: runs.RunHandle) -> Iterator[Work]:
        result = Result(run.id, run.kind)
        work = Work(self.settings, self.index, self.report, self.stop, run, result, self.max_failures, self.drops_confirmed)
        self.started(run)
        try:
            note_configuration(self.index, self.settings, run)
            yield work
            if run.kind not in ASIDE:
                with work.recording("drift"):
                    drift.refresh(self.index, self.settings.rules, self.settings.roots)
        except BaseException as error:
            if isinstance(error, Exception) and self.stop.is_set():
                # Whatever it raised, it raised because it was stopped.
                if not isinstance(error, Interrupted):
                    work.result.errors[run.kind] = str(error)
                finish(work)
                return
            state = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            told = notices_of(work, error)
            text = str(error) or type(error).__name__
            runs.finish(self.index, run, state, summary=work.result.summary(), error=text, notices=told)
            publish(work)
            raise
        else:
            finish(work)
        finally:
            keep_counts(self.index)
            shutil.rmtree(work.staging, ignore_errors=True)


def _sources_of(rules: Sequence[MirrorRule]) -> list[str]:
    return list(dict.fromkeys(name for rule in rules for name in (rule.origin, rule.target)))
