"""An origin that its users declare again while its copy is about to be removed or moved. Both catalogs are real servers.

A relay in front of the target counts the reads that precede the write. In a second application the origin changes while the last of
those reads passes: nothing that the executor observed earlier can show it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

import pytest

from federator.apply import Executor, Outcome
from federator.connector import Catalog, SourceSpec
from federator.model import NamespaceRecord, Path, TableRecord
from federator.planning.changes import Action, Change
from federator.planning.rule import MirrorRule
from federator.registry import open_catalog
from tests.fixtures.glue import GlueAccount
from tests.fixtures.journal import Notes
from tests.fixtures.relay import Noting
from tests.stubs.unity import UnityStub

pytestmark = pytest.mark.timeout(120)
RULE = MirrorRule(name="m", origin="origin", target="target")
#: by impl: bytes in a request that reads a table, and bytes in the requests that change one
CALLS = {
    "hive3": (b"get_table", (b"drop_table", b"alter_table")),
    "glue": (b"AWSGlue.GetTable", (b"AWSGlue.DeleteTable", b"AWSGlue.UpdateTable")),
    "unity": (b"GET /api/2.1/unity-catalog/tables/", (b"DELETE /api/2.1/unity-catalog/tables/",)),
}


@dataclass
class Pair:
    """An origin, and a target behind a relay, with a database in each."""

    origin: Catalog
    target: Catalog
    databases: dict[str, Path]
    directory: FilePath
    relay: Noting
    impl: str

    def record(self, catalog: Catalog, name: str) -> TableRecord:
        return TableRecord(
            catalog.source, (*self.databases[catalog.source], name), f"file:{self.directory}/{name}", {"team": "x"}
        )

    def apply(
        self, change: Change, at_read: int = 0, act: Callable[[], object] = lambda: None, *, other_changes: Sequence[Change] = (),
        at_write: Callable[[], object] = lambda: None, rule: MirrorRule = RULE,
    ) -> tuple[Outcome, int]:  # fmt: skip
        """Apply a change of a plan that also has ``other_changes``. Return the outcome, and the number of reads of the target before
        the write. ``act`` is called during read number ``at_read``, and ``at_write`` while the write passes."""
        read, writes = CALLS[self.impl]
        reads, written = 0, False

        def watch(data: bytes) -> None:
            nonlocal reads, written
            if not written and any(write in data for write in writes):
                written = True
                at_write()
            if read in data and not written:
                reads += 1
                if reads == at_read:
                    act()

        self.relay.before_request = watch
        # The index is as old as the plan: it still has the origin as the plan read it.
        notes = Notes(origins={part.origin_path: part.precondition["origin"] for part in (change, *other_changes)})
        outcome, *_ = Executor(notes, rule, self.origin, self.target).apply("plan", [change, *other_changes])
        self.relay.before_request = lambda _: None
        return outcome, reads

    def removal(self, name: str) -> Change:
        """Return the deregistration of a copy whose origin is absent."""
        before = self.target.declare_table(self.record(self.target, name))
        origin = self.record(self.origin, name)
        condition = {"target": before.digest, "origin": "absent"}
        return Change(
            Action.DEREGISTER_TABLE, "target", before.key, "origin", origin.key, "gone", before, precondition=condition
        )

    def move(self, name: str) -> Change:
        """Return the update of a copy to another location, as its origin has moved."""
        before = self.target.declare_table(self.record(self.target, name))
        origin = self.origin.declare_table(self.record(self.origin, f"{name}_moved"))
        condition = {"target": before.digest, "origin": origin.digest}
        after = replace(before, location=origin.location)
        return Change(
            Action.UPDATE_TABLE, "target", before.key, "origin", origin.key, "moved", before, after, precondition=condition
        )

    def rename(self, name: str) -> tuple[Change, Change]:
        """Return the deregistration and the declaration of a copy whose origin has another name now."""
        removal = replace(self.removal(name), pair=name)
        assert removal.before is not None
        origin = self.origin.declare_table(replace(self.record(self.origin, f"{name}_new"), location=removal.before.location))
        after = replace(self.record(self.target, f"{name}_new"), location=removal.before.location)
        condition = {"target": "absent", "origin": origin.digest}
        declaration = Change(
            Action.DECLARE_TABLE, "target", after.key, "origin", origin.key, "renamed", None, after,
            precondition=condition, pair=name,
        )  # fmt: skip
        return removal, declaration

    def recreation(self, name: str) -> Change:
        """Return the recreation of a copy: its origin has another property, and the target cannot alter."""
        before = self.target.declare_table(self.record(self.target, name))
        origin = self.origin.declare_table(replace(self.record(self.origin, name), properties={"team": "y"}))
        condition = {"target": before.digest, "origin": origin.digest}
        after = replace(before, properties=origin.properties)
        return Change(
            Action.RECREATE_TABLE, "target", before.key, "origin", origin.key, "changed", before, after, precondition=condition
        )


@pytest.fixture(params=["hive3 to glue", "glue to hive3"])
def pair(request: pytest.FixtureRequest, hive3_uri: str, glue_account: GlueAccount, tmp_path: FilePath) -> Iterator[Pair]:
    impls = request.param.split(" to ")
    with ExitStack() as cleanup:
        servers = {"hive3": hive3_uri, "glue": glue_account.url}
        if "unity" in impls:
            stub = cleanup.enter_context(UnityStub())
            stub.world.create_catalog({"name": "main"}, None)
            servers["unity"] = stub.url
        relay = Noting(servers[impls[1]])
        cleanup.callback(relay.close)
        opened, databases, name = [], {}, f"db_{secrets.token_hex(4)}"
        for source, impl in zip(("origin", "target"), impls, strict=True):
            uri = servers[impl] if source == "origin" else relay.uri
            properties = {
                "hive3": {"uri": uri, "client.timeout": "30"},
                "glue": {**glue_account.properties, "endpoint": uri},
                "unity": {"endpoint": uri, "catalog": "main"},
            }[impl]
            catalog = cleanup.enter_context(open_catalog(SourceSpec(source, impl, {**properties, "root": f"file:{tmp_path}"})))
            parent = {"hive3": ("hive",), "unity": ("main",)}.get(impl) or catalog.canonical_path(("any", "any"))[:-2]
            databases[source] = (*parent, name)
            catalog.create_namespace(NamespaceRecord(source, databases[source], location=f"file:{tmp_path}/{source}"))
            opened.append(catalog)
        yield Pair(opened[0], opened[1], databases, tmp_path, relay, impls[1])


def test_an_origin_that_returns_before_the_call_keeps_its_copy(pair: Pair) -> None:
    outcome, reads = pair.apply(pair.removal("control"))
    assert (outcome.state.value, outcome.code, reads > 0) == ("done", None, True)
    removal = pair.removal("t")
    outcome, _ = pair.apply(removal, reads, lambda: pair.origin.declare_table(pair.record(pair.origin, "t")))
    assert pair.target.observe((*pair.databases["target"], "t")).record == removal.before
    assert (outcome.state.value, outcome.code) == ("skipped", "still_there")


def test_an_origin_that_changes_before_the_call_moves_nothing(pair: Pair) -> None:
    outcome, reads = pair.apply(pair.move("control"))
    assert (outcome.state.value, outcome.code, reads > 0) == ("done", None, True)
    move = pair.move("t")
    origin = pair.origin.describe_table((*pair.databases["origin"], "t_moved"))
    outcome, _ = pair.apply(move, reads, lambda: pair.origin.deregister_table(origin))
    assert pair.target.observe((*pair.databases["target"], "t")).record == move.before
    assert (outcome.state.value, outcome.code) == ("skipped", "moved")


def test_a_new_name_that_goes_away_before_the_call_keeps_the_old_one(pair: Pair) -> None:
    """A rename depends on both of its names."""
    removal, declaration = pair.rename("control")
    outcome, reads = pair.apply(removal, other_changes=[declaration])
    assert (outcome.state.value, outcome.code, reads > 0) == ("done", None, True)
    removal, declaration = pair.rename("t")
    origin = pair.origin.describe_table((*pair.databases["origin"], "t_new"))
    outcome, _ = pair.apply(removal, reads, lambda: pair.origin.deregister_table(origin), other_changes=[declaration])
    assert pair.target.observe((*pair.databases["target"], "t")).record == removal.before
    assert (outcome.state.value, outcome.code) == ("skipped", "moved")
    assert pair.target.observe((*pair.databases["target"], "t_new")).is_absent


def test_an_observation_that_is_too_old_removes_nothing(pair: Pair) -> None:
    """No server answers in no time at all."""
    removal, writes = pair.removal("t"), 0

    def count() -> None:
        nonlocal writes
        writes += 1

    outcome, _ = pair.apply(removal, at_write=count, rule=replace(RULE, max_origin_age=0.0))
    assert (outcome.state.value, outcome.code, writes) == ("skipped", "observation_too_old", 0)
    assert (outcome.origin_age or 0.0) > 0
    assert pair.target.observe((*pair.databases["target"], "t")).record == removal.before


def test_an_origin_that_returns_during_the_call_is_reported(pair: Pair) -> None:
    removal = pair.removal("t")
    outcome, _ = pair.apply(removal, at_write=lambda: pair.origin.declare_table(pair.record(pair.origin, "t")))
    assert (outcome.state.value, outcome.code) == ("done", "origin_returned")
    assert 0 < (outcome.origin_age or 0.0) <= RULE.max_origin_age
    assert pair.target.observe((*pair.databases["target"], "t")).is_absent


@pytest.mark.parametrize("pair", ["hive3 to unity"], indirect=True)
def test_an_origin_that_goes_away_before_its_copy_is_recreated_keeps_it(pair: Pair) -> None:
    outcome, reads = pair.apply(pair.recreation("control"))
    assert (outcome.state.value, outcome.code, reads > 0) == ("done", None, True)
    recreation = pair.recreation("t")
    origin = pair.origin.describe_table((*pair.databases["origin"], "t"))
    outcome, _ = pair.apply(recreation, reads, lambda: pair.origin.deregister_table(origin))
    assert pair.target.observe((*pair.databases["target"], "t")).record == recreation.before, "the native id is the same"
    assert (outcome.state.value, outcome.code) == ("skipped", "moved")
