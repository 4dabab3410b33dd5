"""Held plans between real catalogs, as people meet them: a configuration file, commands, the API's decisions.

The origin is behind a relay, so that it can go away between two commands.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from federator.connector.call_policy import CircuitOpen
from federator.model import NamespaceRecord, TableRecord
from federator.model import Path as TablePath
from federator.registry import open_catalog
from federator.settings import load_settings
from federator.store import open_index
from federator.store import tables as t
from tests.fixtures.glue import GlueAccount
from tests.fixtures.relay import Noting
from tests.stories.test_whole_way import glue, hive
from tests.unit.cli.conftest import Shell

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]
COUNT = 10
DAY = 86_400.0


@dataclass
class Pair:
    """An origin with ``COUNT`` tables behind a relay, a target that mirrors them, and the shell of their instance."""

    shell: Shell
    relay: Noting
    alive: str
    database: str
    origin: Any
    origin_above: TablePath
    target: Any
    target_above: TablePath
    _declared: dict[int, TableRecord] = field(default_factory=dict)

    def run(self, *words: str, code: int | None = None) -> str:
        """What a command printed, both ways; ``code`` is the exit code that it must have."""
        done = self.shell.run(*words)
        assert code is None or done.exit_code == code, (done.exit_code, done.output, done.exception)
        return str(done.output)

    def json(self, *words: str) -> Any:
        return json.loads(self.shell.run(*words, "--output", "json").stdout)

    def add(self, *numbers: int) -> None:
        for number in numbers:
            record = TableRecord("origin", (*self.origin_above, self.database, f"t{number:02}"), self.location(number))
            self._declared[number] = self.origin.declare_table(record)

    def remove(self, *numbers: int) -> None:
        for number in numbers:
            self.origin.deregister_table(self._declared.pop(number))

    def location(self, number: int) -> str:
        return f"file:{self.shell.folder}/data/{number}"

    def copied(self) -> set[int]:
        return {int(name[1:]) for name in self.target.list_tables((*self.target_above, self.database)) if name != "other"}

    def cut(self) -> None:
        """The origin's server goes away."""
        self.relay.target = "thrift://127.0.0.1:1"
        self.relay.reset()

    def restore(self) -> None:
        """It is back. A process that found it away makes no call for a while: one process runs all commands here."""
        self.relay.target = self.alive
        until = time.monotonic() + 60
        while True:
            try:
                self.origin.list_namespaces(self.origin_above)
            except CircuitOpen:
                assert time.monotonic() < until
                time.sleep(0.5)
            else:
                return

    def plan(self, state: str | None = None) -> dict[str, Any]:
        """The newest plan, in full; ``state`` is the one that it must have."""
        (newest, *_) = self.json("plans", "list")["plans"]
        assert state is None or newest["state"] == state, newest
        shown: dict[str, Any] = self.json("plans", "show", newest["digest"])
        return shown


@pytest.fixture(params=["hive3 to glue", "glue to hive3"])
def pair(request: pytest.FixtureRequest, hive3_uri: str, glue_account: GlueAccount, tmp_path: Path) -> Iterator[Pair]:
    origin, _, target = request.param.split()
    alive = {"hive3": hive3_uri, "glue": glue_account.url}[origin]
    (tmp_path / "data").mkdir()
    with ExitStack() as cleanup:
        relay = Noting(alive)
        cleanup.callback(relay.close)
        sections = {
            "hive3": lambda uri: hive("hive3", uri, tmp_path),
            "glue": lambda uri: glue(glue_account, tmp_path).replace(f'glue.endpoint = "{alive}"', f'glue.endpoint = "{uri}"'),
        }
        uris = {"hive3": hive3_uri, "glue": glue_account.url}
        database = f"db_{secrets.token_hex(4)}"
        namespace = f"{database}" if target == "glue" else f"hive${database}"
        file = tmp_path / "federator.toml"
        file.write_text(
            f'[instance]\nid = "test"\n[verify]\nenabled = false\n'
            f"[sources.origin]\n{sections[origin](relay.uri)}[sources.target]\n{sections[target](uris[target])}"
            f'[mirrors.copy]\nfrom = "origin"\nto = "target"\nnamespace = "{namespace}"\ninclude = ["*{database}$*"]\n'
            'misses_before_delete = 1\nmin_miss_interval = "0s"\n',
            encoding="utf-8",
        )
        settings = load_settings(file)
        sides = [cleanup.enter_context(open_catalog(settings.source(name).spec)) for name in ("origin", "target")]
        above = [side.canonical_path((*(("hive",) if kind == "hive3" else ()), database, "any"))[:-2]
                 for side, kind in zip(sides, (origin, target), strict=True)]  # fmt: skip
        made = Pair(Shell(tmp_path), relay, alive, database, sides[0], above[0], sides[1], above[1])
        sides[0].create_namespace(NamespaceRecord("origin", (*above[0], database), location=f"file:{tmp_path}/data"))
        made.add(*range(COUNT))
        made.run("sync", code=0)
        assert made.copied() == set(range(COUNT))
        yield made


@pytest.mark.parametrize("pair", ["hive3 to glue"], indirect=True)
def test_a_hold_stays_while_the_origin_is_away_and_a_stored_plan_observes(pair: Pair) -> None:
    gone = {0, 1, 2, 3}
    pair.remove(*gone)
    pair.add(20)
    pair.run("plan", "--out", str(pair.shell.folder / "plan.json"), code=4)
    held = pair.plan("held")
    assert [each["target"][-3:] for each in held["waiting"]] == ["t00", "t01", "t02", "t03"]

    # The index has the new table and the misses; the origin is away by the next run.
    pair.cut()
    output = pair.run("sync")
    assert "waits" in output or "not_covered" in output, output
    again = pair.plan("held")
    assert pair.copied() == set(range(COUNT)), "nothing is applied out of an index that is older than the last attempt"
    assert [hold["guard"] for hold in again["plan"]["holds"]] == [hold["guard"] for hold in held["plan"]["holds"]]
    reasons = {refusal["target_path"][-3:]: refusal["reason"] for refusal in again["plan"]["refusals"]}
    assert reasons == dict.fromkeys(("t00", "t01", "t02", "t03", "t20"), "not_covered")
    assert (again["plan"]["changes"], again["guarded"]) == ([], held["guarded"])

    # A plan that nobody refreshes is as careful; one that was stored asks the origin, which does not answer.
    pair.run("plan", "--no-refresh")
    assert pair.plan("held")["plan"]["changes"] == []
    pair.run("plans", "approve", held["digest"], code=0)
    failed = pair.shell.run("apply", str(pair.shell.folder / "plan.json"))
    assert failed.exit_code == 3, failed.output
    assert pair.copied() == set(range(COUNT))

    # It is back, and one of the deleted tables with it: the approved, stored plan removes only what is absent now.
    pair.restore()
    pair.add(2)
    pair.run("apply", str(pair.shell.folder / "plan.json"), code=3)  # one change was skipped
    assert pair.copied() == {2, 20, *range(4, COUNT)}
    outcomes = pair.json("sync")
    assert (outcomes["state"], pair.copied()) == ("ok", {2, 20, *range(4, COUNT)})


def test_an_approval_lasts_on_a_busy_source(pair: Pair) -> None:
    pair.remove(0, 1, 2, 3)
    pair.run("sync", code=4)
    held = pair.plan("held")
    assert pair.copied() == set(range(COUNT))
    output = pair.run("plans", "approve", held["digest"], code=0)
    assert "approved" in output

    # Tables that nobody asked about, on both sides, and one more deletion, which is judged with the approved ones counted.
    pair.add(20, 21)
    pair.remove(4)
    path = (*pair.target_above, pair.database, "other")
    pair.target.declare_table(TableRecord("target", path, f"file:{pair.shell.folder}/data/theirs"))
    output = pair.run("sync", code=4)
    assert pair.copied() == {*range(4, COUNT), 20, 21}, output
    newer = pair.plan("held")
    assert [each["target"][-3:] for each in newer["waiting"]] == ["t04"], "only the new one waits"
    assert "5 of" in newer["held"][0]
    assert newer["guarded"] != held["guarded"]

    # Explained by the change, and not by the plan: what may go went, what waits says for what.
    waits = pair.json("explain", "$".join(("target", *pair.target_above, pair.database, "t04")))["parts"][0]
    assert (waits["reason"], f"federator plans approve {newer['digest'][:12]}" in waits["next"]) == ("held_by_guard", True)

    # The approval of a deletion ends when its origin is seen again, and after a week.
    pair.run("plans", "approve", newer["digest"], code=0)
    pair.add(4)
    pair.run("crawl", "origin", code=0)
    pair.remove(4)
    pair.run("sync", code=4)
    assert 4 in pair.copied()
    pair.run("plans", "approve", pair.plan("held")["digest"], code=0)
    _age_approvals(pair.shell, 7 * DAY)
    pair.run("sync", code=4)
    assert 4 in pair.copied()
    pair.run("plans", "approve", pair.plan("held")["digest"], code=0)
    pair.run("sync", code=0)
    assert 4 not in pair.copied()


def _age_approvals(shell: Shell, seconds: float) -> None:
    index = open_index("sqlite:///federator.db", base=shell.folder)
    with index.write() as connection:
        connection.execute(update(t.approval).values(approved_at=t.approval.c.approved_at - seconds))
    index.close()
