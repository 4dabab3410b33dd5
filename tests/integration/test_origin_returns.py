"""An origin that its users declare again while its copy is about to be removed or moved. Both catalogs are real servers.

A relay in front of the target counts the reads that precede the write. In a second application the origin changes while the last of
those reads passes: nothing that the executor observed earlier can show it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
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

pytestmark = pytest.mark.timeout(120)
RULE = MirrorRule(name="m", origin="origin", target="target")
#: of each impl: what a request that reads a table holds, and what those that change one hold
CALLS = {
    "hive3": (b"get_table", (b"drop_table", b"alter_table")),
    "glue": (b"AWSGlue.GetTable", (b"AWSGlue.DeleteTable", b"AWSGlue.UpdateTable")),
}


@dataclass
class Pair:
    """An origin, and a target behind a relay, with a database in each."""

    origin: Catalog
    target: Catalog
    databases: dict[str, Path]
    place: FilePath
    relay: Noting
    impl: str

    def record(self, catalog: Catalog, name: str) -> TableRecord:
        return TableRecord(catalog.source, (*self.databases[catalog.source], name), f"file:{self.place}/{name}", {"team": "x"})

    def apply(self, change: Change, at_read: int = 0, meddle: Callable[[], object] = lambda: None) -> tuple[Outcome, int]:
        """Returns the outcome, and how many reads of the target preceded the write; ``meddle`` acts during read ``at_read``."""
        read, writes = CALLS[self.impl]
        reads, written = 0, False

        def watch(data: bytes) -> None:
            nonlocal reads, written
            written = written or any(write in data for write in writes)
            if read in data and not written:
                reads += 1
                if reads == at_read:
                    meddle()

        self.relay.before_request = watch
        # The index is as old as the plan: it still has the origin as the plan read it.
        notes = Notes(origins={change.origin_path: change.precondition["origin"]})
        (outcome,) = Executor(notes, RULE, self.origin, self.target).apply("plan", [change])
        self.relay.before_request = lambda _: None
        return outcome, reads

    def removal(self, name: str) -> Change:
        """Of a copy whose origin is absent."""
        before = self.target.declare_table(self.record(self.target, name))
        origin = self.record(self.origin, name)
        condition = {"target": before.digest, "origin": "absent"}
        return Change(
            Action.DEREGISTER_TABLE, "target", before.key, "origin", origin.key, "gone", before, precondition=condition
        )

    def move(self, name: str) -> Change:
        """Of a copy to another location, as its origin has moved."""
        before = self.target.declare_table(self.record(self.target, name))
        origin = self.origin.declare_table(self.record(self.origin, f"{name}_moved"))
        condition = {"target": before.digest, "origin": origin.digest}
        after = replace(before, location=origin.location)
        return Change(
            Action.UPDATE_TABLE, "target", before.key, "origin", origin.key, "moved", before, after, precondition=condition
        )


@pytest.fixture(params=["hive3 to glue", "glue to hive3"])
def pair(request: pytest.FixtureRequest, hive3_uri: str, glue_account: GlueAccount, tmp_path: FilePath) -> Iterator[Pair]:
    impls = request.param.split(" to ")
    with ExitStack() as cleanup:
        relay = Noting({"hive3": hive3_uri, "glue": glue_account.url}[impls[1]])
        cleanup.callback(relay.close)
        opened, databases, name = [], {}, f"db_{secrets.token_hex(4)}"
        for source, impl in zip(("origin", "target"), impls, strict=True):
            uri = {"hive3": hive3_uri, "glue": glue_account.url}[impl] if source == "origin" else relay.uri
            properties = (
                {"uri": uri, "client.timeout": "30"} if impl == "hive3" else {**glue_account.properties, "endpoint": uri}
            )
            catalog = cleanup.enter_context(open_catalog(SourceSpec(source, impl, {**properties, "root": f"file:{tmp_path}"})))
            above = ("hive",) if impl == "hive3" else catalog.canonical_path(("any", "any"))[:-2]
            databases[source] = (*above, name)
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
