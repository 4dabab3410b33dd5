"""The demo: a sequence of steps on real servers. Each step checks its result."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath

from federator.apply.plan_decisions import decide_plan
from federator.connector import StateError
from federator.demo.cloud import PARTNER_ROLE
from federator.demo.screen import Screen
from federator.demo.world import World, start_world, stop_servers
from federator.model import Path
from federator.model.drift import DriftKind
from federator.planning.reasons import Reason
from federator.registry import open_catalog
from federator.service import Federator
from federator.stages.declare import DeclareSpec
from federator.stages.result import ProgressEvent, RunResult
from federator.views import drift, tree
from federator.views.explain import explain_object

_AT_PARTNER = (PARTNER_ROLE.split(":")[4], "market", "daily_prices")
# Description of each verification state.
_STATES = {
    "valid": "valid: a Lance table, described by its newest manifest", "missing": "missing: its location does not exist",
    "not_lance": "not lance: its location has other files",
    "declared_only": "declared only: the name is reserved, nothing is written yet",
    "empty": "empty: its directory is empty", "corrupt": "corrupt: Lance files without a readable manifest",
    "denied": "denied: the storage denies access, so its state is unknown",
    "unreachable": "unreachable: the storage does not respond, so its state is unknown",
}  # fmt: skip
_DROPPED_TABLE = ("sales", "returns")
_DROPPED_TOGETHER = ("legacy", "archive")


@dataclass
class Story:
    """One execution of the demo. ``failures`` collects the expectations that were not met."""

    world: World
    screen: Screen
    federator: Federator
    failures: list[str] = field(default_factory=list)

    def tell(self) -> None:
        """Run all chapters in order."""
        self._crawl()
        self._mirror()
        self._sync_again()
        self._show_drift()
        self._drop()
        self._held()

    def _crawl(self) -> None:
        self.screen.chapter("crawl: read all catalogs into one index, on Spark")
        result = self.federator.crawl()
        self.expect(result.state == "ok", f"{len(result.sources)} catalogs read")
        self.screen.chapter("tree: all sources, with the verification state of each table")
        self.screen.say("tables without a state are valid")
        self.screen.tree(self.federator.index)
        for path, state in (
            (("lake_hive", "sales", "orders"), "valid"),
            (("lake_hive", "sales", "archive"), "missing"),
            (("lake_hive", "sales", "legacy"), "not_lance"),
            (("scratch", "draft"), "declared_only"),
            (("lake_hive", "ml", "planned"), "empty"),
            (("lake_hive", "ml", "torn"), "corrupt"),
            (("aws", *self._path_at_target("salaries", "finance")), "denied"),
            (("partner", *_AT_PARTNER), "unreachable"),
        ):
            view = tree.get_table(self.federator.index, path)
            verified = view.dataset.state if view.dataset else "not opened"
            self.expect(verified == state, f"{view.id} is {_STATES[state]}")
        also_declared = tree.get_table(self.federator.index, ("lake_hive", "sales", "orders")).also_declared
        self.expect(
            also_declared == ["lake_hive$sales$orders_2024"],
            f"lake_hive$sales$orders is also declared as {', '.join(also_declared)}",
        )

    def _mirror(self) -> None:
        self.screen.chapter("plan: the changes of the mirrors")
        planned = self.federator.plan(refresh=False)
        self.screen.plans(planned.plans)
        reasons = {refusal.reason for plan in planned.plans for refusal in plan.refusals}
        self.expect(
            Reason.LOCATION_DECLARED in reasons, "one location gets one name: orders_2024 is not declared a second time"
        )
        self.screen.chapter("apply: each declaration is journalled")
        applied = self.federator.apply([(plan, plan.digest) for plan in planned.plans])
        done = [outcome for outcome in applied.outcomes if outcome.state.value == "done"]
        self.expect(
            applied.state == "ok" and len(done) == planned.change_count > 0,
            f"{len(done)} of {planned.change_count} changes applied",
        )
        self.expect(
            self._at_target() == {"customers", "legacy", "orders", "archive", "returns"}, "Glue now lists the tables of sales"
        )

    def _sync_again(self) -> None:
        self.screen.chapter("sync again: nothing to do")
        again = self._sync()
        self.expect(again.state == "ok" and again.change_count == 0, "the second sync plans nothing")

    def _show_drift(self) -> None:
        self.screen.chapter("drift: somebody edits copies, and a storage scan finds tables that no catalog declares")
        with open_catalog(self.world.settings.source("aws").spec) as glue:
            edited, moved = (glue.describe_table(self._path_at_target(name)) for name in ("orders", "customers"))
            glue.update_table(edited, replace(edited, properties={**edited.properties, "owner_team": "finance"}))
            glue.update_table(moved, replace(moved, location=f"{moved.location}.old"))
        scanned = self.federator.crawl(roots=list(self.world.settings.roots))
        findings = drift.list_drift(self.federator.index, severe_first=True, limit=1000)
        self.screen.drift(findings)
        missing_kinds = set(DriftKind) - {finding.kind for finding in findings}
        # The remaining kind, a copy without an origin, follows in the next chapter.
        self.expect(
            scanned.state == "ok" and missing_kinds == {DriftKind.DANGLING_MIRROR},
            f"{len(DriftKind) - 1} kinds of drift are found",
        )
        (orphan,) = (finding.subject for finding in findings if finding.kind == DriftKind.ORPHAN)
        self.screen.say(f"federator declare {orphan} --into aws")
        planned = self.federator.declare(DeclareSpec([orphan], ["aws"]))
        self.screen.plans(planned.plans)
        self.federator.apply([(plan, plan.digest) for plan in planned.plans])
        synced = self._sync()
        open_kinds = {finding.kind for finding in drift.list_drift(self.federator.index, limit=1000)}
        repaired_kinds = {DriftKind.ORPHAN, DriftKind.LOCATION_DIFFERS, DriftKind.PROPERTIES_DIFFER}
        self.expect(
            synced.state == "ok" and not open_kinds & repaired_kinds,
            "the orphan is declared, and the mirror has repaired its declarations",
        )

    def _drop(self) -> None:
        self.screen.chapter("a table is dropped at the source")
        with open_catalog(self.world.settings.source("lake_hive").spec) as hive:
            hive.deregister_table(hive.describe_table(_DROPPED_TABLE))
        first = self._sync()
        self.screen.plans(first.plans)
        waiting = [refusal for plan in first.plans for refusal in plan.refusals if refusal.reason is Reason.MISSES]
        self.expect(
            bool(waiting) and first.change_count == 0 and "returns" in self._at_target(), "missed once: still declared in Glue"
        )
        dangling = drift.list_drift(self.federator.index, kind=DriftKind.DANGLING_MIRROR)
        self.expect(bool(dangling), "until then it is drift of the last kind: a copy without an origin")
        self.screen.drift(dangling)
        self.screen.say("a deregistration needs proof: two misses (two seconds apart in this demo) and a direct observation")
        time.sleep(2.1)
        second = self._sync()
        self.screen.plans(second.plans)
        removed = [o for o in second.outcomes if o.change.action.value == "deregister_table" and o.state.value == "done"]
        self.expect(bool(removed) and "returns" not in self._at_target(), "missed twice: deregistered in Glue")
        data = self.world.directory / "lake" / "sales" / "returns.lance"
        self.expect(data.is_dir(), "its data is still there: mirroring never touches data")

    def _held(self) -> None:
        self.screen.chapter("two more tables are dropped together, and a guard holds the plan")
        with open_catalog(self.world.settings.source("lake_hive").spec) as hive:
            for name in _DROPPED_TOGETHER:
                hive.deregister_table(hive.describe_table(("sales", name)))
        self._sync()
        time.sleep(2.1)
        plans = self._sync().plans
        held = [plan for plan in plans if plan.mirror == "hive-to-glue"]
        self.screen.plans(held)
        self.expect(bool(held[0].held) and self._at_target() >= set(_DROPPED_TOGETHER), "held: nothing is deregistered in Glue")
        # If Hive 3 is available, the plan of the mirror into it is held for the same tables.
        for plan in plans:
            if plan.held:
                decide_plan(self.federator.index, plan.digest, "approved", actor="demo")
                self.screen.say(f"federator plans approve {plan.digest[:12]}")
        approved = self._sync()
        self.expect(
            approved.state == "ok" and not self._at_target() & set(_DROPPED_TOGETHER),
            "approved by a person: deregistered, data kept",
        )
        self.screen.chapter("explain: why a table is absent")
        story = explain_object(self.world.settings, self.federator.index, ("aws", *self._path_at_target("legacy")))
        self.screen.explanation(story)
        writes = [event.what for event in story.history if event.mirror]
        self.expect(
            story.kind is None and writes[-1:] == [f"deregister_table {story.id}: done"],
            "the history contains the deregistration",
        )

    def expect(self, ok: bool, text: str) -> None:
        self.screen.check(ok, text)
        if not ok:
            self.failures.append(text)

    def _sync(self) -> RunResult:
        return self.federator.sync()

    def _at_target(self) -> set[str]:
        with open_catalog(self.world.settings.source("aws").spec) as glue:
            return set(glue.list_tables(glue.canonical_path(("sales",))))

    def _path_at_target(self, table: str, database: str = "sales") -> Path:
        with open_catalog(self.world.settings.source("aws").spec) as glue:
            return glue.canonical_path((database, table))


def run(screen: Screen, *, once: bool, keep: FilePath | None) -> int:
    """Run the demo and return the exit code. Without a ``keep`` directory, all files and servers are removed afterwards."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise StateError(
            f"{keep} is not empty", hint=f"run federator demo --stop {keep} and remove it, or choose another directory"
        )
    directory = keep.absolute() if keep is not None else FilePath(tempfile.mkdtemp(prefix="federator-demo-"))
    screen.chapter("start: Hive metastores, Glue, a directory; real Lance tables")
    started_at = time.monotonic()
    screen.progress(ProgressEvent("start", "servers and tables"))
    try:
        world = start_world(directory)
        screen.progress(ProgressEvent("start", "servers and tables", "ok", "", time.monotonic() - started_at))
        if not world.hive3:
            screen.say("mvn was not found: the demo continues without the Hive 3.1.3 metastore")
        story = Story(world, screen, Federator.open(world.settings, screen.progress))
        story.tell()
        return _end(story, once=once, keep=keep)
    finally:
        if keep is None:
            stop_servers(directory)
            shutil.rmtree(directory, ignore_errors=True)


def stop(directory: FilePath) -> list[str]:
    """Stop the servers of a kept demo. Return their names."""
    return [server.name for server in stop_servers(directory.absolute())]


def _end(story: Story, *, once: bool, keep: FilePath | None) -> int:
    screen = story.screen
    screen.chapter("the end")
    if story.failures:
        screen.say(f"{len(story.failures)} checks failed: {'; '.join(story.failures)}")
    if keep is not None:
        screen.say(f"kept: cd {keep} && federator tree; stop the servers with federator demo --stop {keep}")
    if not once and keep is None:
        from federator.api.server import run_service

        screen.say("the API and the page are available until Ctrl-C")
        settings = story.world.settings
        run_service(settings, port=choose_port(settings.serve.host, settings.serve.port))
    return 1 if story.failures else 0


def choose_port(host: str, port: int) -> int:
    """Return the port, or 0, which stands for any free one, if another process listens on it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return 0
    return port
