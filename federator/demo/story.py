"""The demo, told step by step against real servers; each step says whether it went as it must."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath

from federator.connector import StateError
from federator.demo.cloud import PARTNER_ROLE
from federator.demo.screen import Screen
from federator.demo.world import World, build, stop_servers
from federator.index import drift, tree
from federator.model import Path
from federator.model.drift import DriftKind
from federator.planning.reasons import Reason
from federator.registry import open_catalog
from federator.sync import Federator, Result
from federator.sync.deciding import decide
from federator.sync.declaring import Wanted
from federator.sync.explaining import explain

_AT_PARTNER = (PARTNER_ROLE.split(":")[4], "market", "daily_prices")
# Each state that a location can be in, as the story says it.
_STATES = {
    "valid": "valid: a Lance table, described by its newest manifest", "missing": "missing: nothing is at its location",
    "not_lance": "not lance: other files are there", "declared_only": "declared only: the name is reserved, nothing written yet",
    "empty": "empty: a directory with nothing in it", "corrupt": "corrupt: Lance's files without a manifest that opens",
    "denied": "denied: the store refuses us, so nothing is known of it",
    "unreachable": "unreachable: the store does not answer, so nothing is known of it",
}  # fmt: skip
_GONE = ("sales", "returns")
_GONE_AT_ONCE = ("legacy", "archive")


@dataclass
class Story:
    """A telling of the demo: ``failures`` collects the expectations that did not hold."""

    world: World
    screen: Screen
    federator: Federator
    failures: list[str] = field(default_factory=list)

    def tell(self) -> None:
        """Every chapter, in order."""
        self._crawl()
        self._mirror()
        self._settled()
        self._apart()
        self._drop()
        self._held()

    def _crawl(self) -> None:
        self.screen.chapter("crawl: every catalog into one index, on Spark")
        result = self.federator.crawl()
        self.expect(result.state == "ok", f"{len(result.sources)} catalogs read")
        self.screen.chapter("the one tree, and what opening each table found")
        self.screen.say("what has no mark is valid")
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
            view = tree.table(self.federator.index, path)
            found = view.dataset["state"] if view.dataset else "not opened"
            self.expect(found == state, f"{view.id} is {_STATES[state]}")
        twice = tree.table(self.federator.index, ("lake_hive", "sales", "orders")).also_declared
        self.expect(twice == ["lake_hive$sales$orders_2024"], f"lake_hive$sales$orders is also declared as {', '.join(twice)}")

    def _mirror(self) -> None:
        self.screen.chapter("plan: what the mirrors would do")
        planned = self.federator.plan(refresh=False)
        self.screen.plans(planned.plans)
        reasons = {refusal.reason for plan in planned.plans for refusal in plan.refusals}
        self.expect(Reason.LOCATION_DECLARED in reasons, "one place gets one name: orders_2024 is not declared a second time")
        self.screen.chapter("apply: through the journal, one declaration at a time")
        applied = self.federator.apply([(plan, plan.digest) for plan in planned.plans])
        done = [outcome for outcome in applied.outcomes if outcome.state.value == "done"]
        self.expect(
            applied.state == "ok" and len(done) == planned.changes > 0, f"{len(done)} of {planned.changes} changes made"
        )
        self.expect(
            self._at_target() == {"customers", "legacy", "orders", "archive", "returns"}, "Glue now lists the tables of sales"
        )

    def _settled(self) -> None:
        self.screen.chapter("sync again: nothing left to do")
        again = self._sync()
        self.expect(again.state == "ok" and again.changes == 0, "the second sync plans nothing")

    def _apart(self) -> None:
        self.screen.chapter("drift: somebody edits the copies, and a look through the storage finds what no catalog declares")
        with open_catalog(self.world.settings.source("aws").spec) as glue:
            said, moved = (glue.describe_table(self._path_at_target(name)) for name in ("orders", "customers"))
            glue.update_table(said, replace(said, properties={**said.properties, "owner_team": "finance"}))
            glue.update_table(moved, replace(moved, location=f"{moved.location}.old"))
        scanned = self.federator.crawl(roots=list(self.world.settings.roots))
        found = drift.page(self.federator.index, limit=1000)
        self.screen.drift(found)
        kinds = set(DriftKind) - {seen.kind for seen in found}
        # A copy whose origin is gone comes in the next chapter.
        self.expect(
            scanned.state == "ok" and kinds == {DriftKind.DANGLING_MIRROR}, f"{len(DriftKind) - 1} kinds of drift are found"
        )
        (orphan,) = (seen.subject for seen in found if seen.kind == DriftKind.ORPHAN)
        self.screen.say(f"federator declare {orphan} --into aws")
        planned = self.federator.declare(Wanted([orphan], ["aws"]))
        self.screen.plans(planned.plans)
        self.federator.apply([(plan, plan.digest) for plan in planned.plans])
        put_back = self._sync()
        left = {seen.kind for seen in drift.page(self.federator.index, limit=1000)}
        mended = {DriftKind.ORPHAN, DriftKind.LOCATION_DIFFERS, DriftKind.PROPERTIES_DIFFER}
        self.expect(
            put_back.state == "ok" and not left & mended,
            "the orphan is declared, and the mirror has put back what is its own",
        )

    def _drop(self) -> None:
        self.screen.chapter("a table is dropped at the source")
        with open_catalog(self.world.settings.source("lake_hive").spec) as hive:
            hive.deregister_table(hive.describe_table(_GONE))
        first = self._sync()
        self.screen.plans(first.plans)
        waiting = [r for plan in first.plans for r in plan.refusals if r.reason is Reason.MISSES]
        self.expect(
            bool(waiting) and first.changes == 0 and "returns" in self._at_target(), "missed once: still declared in Glue"
        )
        dangling = drift.page(self.federator.index, kind=DriftKind.DANGLING_MIRROR)
        self.expect(bool(dangling), "meanwhile it is drift, the last of its kinds: a copy whose origin is gone")
        self.screen.drift(dangling)
        self.screen.say("absence is proven, not assumed: two misses, two seconds apart here, and a direct look")
        time.sleep(2.1)
        second = self._sync()
        self.screen.plans(second.plans)
        removed = [o for o in second.outcomes if o.change.action.value == "deregister_table" and o.state.value == "done"]
        self.expect(bool(removed) and "returns" not in self._at_target(), "missed twice: deregistered in Glue")
        data = self.world.directory / "lake" / "sales" / "returns.lance"
        self.expect(data.is_dir(), "its data is still there: mirroring never touches data")

    def _held(self) -> None:
        self.screen.chapter("two more go at once, and a guard asks a person")
        with open_catalog(self.world.settings.source("lake_hive").spec) as hive:
            for name in _GONE_AT_ONCE:
                hive.deregister_table(hive.describe_table(("sales", name)))
        self._sync()
        time.sleep(2.1)
        plans = self._sync().plans
        held = [plan for plan in plans if plan.mirror == "hive-to-glue"]
        self.screen.plans(held)
        self.expect(bool(held[0].held) and self._at_target() >= set(_GONE_AT_ONCE), "held: nothing is deregistered in Glue")
        # Where Hive 3 is there, the mirror into it is held for the same tables.
        for plan in plans:
            if plan.held:
                decide(self.federator.index, plan.digest, "approved", actor="demo")
                self.screen.say(f"federator plans approve {plan.digest[:12]}")
        approved = self._sync()
        self.expect(
            approved.state == "ok" and not self._at_target() & set(_GONE_AT_ONCE),
            "approved by a person: deregistered, data kept",
        )
        self.screen.chapter("explain: why a table is not there any more")
        story = explain(self.world.settings, self.federator.index, ("aws", *self._path_at_target("legacy")))
        self.screen.explanation(story)
        told = [event.what for event in story.history if event.mirror]
        self.expect(story.kind is None and told[-1:] == [f"deregister_table {story.id}: done"], "every write has its reason")

    def expect(self, ok: bool, text: str) -> None:
        self.screen.check(ok, text)
        if not ok:
            self.failures.append(text)

    def _sync(self) -> Result:
        return self.federator.sync()

    def _at_target(self) -> set[str]:
        with open_catalog(self.world.settings.source("aws").spec) as glue:
            return set(glue.list_tables(glue.canonical_path(("sales",))))

    def _path_at_target(self, table: str, database: str = "sales") -> Path:
        with open_catalog(self.world.settings.source("aws").spec) as glue:
            return glue.canonical_path((database, table))


def run(screen: Screen, *, once: bool, keep: FilePath | None) -> int:
    """Tells the story; returns the exit code. Everything is temporary and stopped afterwards unless ``keep`` names a directory."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise StateError(f"{keep} is not empty", hint=f"federator demo --stop {keep}, and remove it; or name another directory")
    directory = keep.absolute() if keep is not None else FilePath(tempfile.mkdtemp(prefix="federator-demo-"))
    screen.chapter("start: Hive metastores, Glue, a directory; real Lance tables")
    began = time.monotonic()
    try:
        world = build(directory)
        screen.check(True, f"servers and tables are ready after {time.monotonic() - began:.0f} s")
        if not world.hive3:
            screen.say("mvn was not found: the story goes on without the Hive 3.1.3 metastore")
        story = Story(world, screen, Federator.open(world.settings, screen.progress))
        story.tell()
        return _end(story, once=once, keep=keep)
    finally:
        if keep is None:
            stop_servers(directory)
            shutil.rmtree(directory, ignore_errors=True)


def stop(directory: FilePath) -> list[str]:
    """Ends the servers of a demo kept in a directory; returns their names."""
    return [server.name for server in stop_servers(directory.absolute())]


def _end(story: Story, *, once: bool, keep: FilePath | None) -> int:
    screen = story.screen
    screen.chapter("the end")
    if story.failures:
        screen.say(f"{len(story.failures)} steps did not go as they must: {'; '.join(story.failures)}")
    if keep is not None:
        screen.say(f"kept: cd {keep} && federator tree; the servers run until federator demo --stop {keep}")
    if not once and keep is None:
        from federator.api.server import serve

        screen.say("the API and the page are up until Ctrl-C")
        serve(story.world.settings)
    return 1 if story.failures else 0
