"""``sources confirm`` and its refusals, without Spark."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from federator.model import Identity
from federator.planning.identity import IdentityReading
from federator.store import identities
from federator.testing import MemoryStore
from tests.unit.cli.conftest import Shell
from tests.unit.cli.test_plans import plan, saved


@pytest.fixture
def replaced(shell: Shell) -> MemoryStore:
    """The store of ``copy``, which is another catalog than the one that the index accepted."""
    index = shell.index()
    with index.write() as connection:
        identities.judge_readings(connection, "copy", [IdentityReading(Identity.of("catalog one"))], crawl=True)
    index.close()
    store = shell.store("copy")
    store.add_namespace(("sales",))
    store.identify("catalog two")
    return store


def declared(shell: Shell, name: str) -> bool:
    """Whether a person may declare a table of this name in ``copy``."""
    location = str(shell.folder / f"{name}.lance")
    lance.write_dataset(pa.table({"id": [1]}), location)
    return shell.run("declare", location, "--into", "copy", "--as", f"sales${name}", "--yes").exit_code == 0


def test_a_person_declares_nothing_in_another_catalog(shell: Shell, replaced: MemoryStore) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(shell.folder / "own.lance"))
    command = ("declare", str(shell.folder / "own.lance"), "--into", "copy", "--as", "sales$own", "--yes")
    refused = shell.run(*command)
    assert refused.exit_code in (1, 3), refused.output
    assert "another catalog responds for copy: catalog two, known is catalog one" in refused.output
    assert "federator sources confirm copy" in refused.output
    assert replaced.calls() == []
    # Now it waits for a confirmation, and says so before anything is asked.
    shown = shell.run("sources", "confirm", "copy")
    assert [line.split() for line in shown.stdout.splitlines()[1:3]] == [["known", "catalog", "one"], ["new", "catalog", "two"]]
    assert "accept the new identity with federator sources confirm copy --yes" in shown.stderr
    assert shell.json("sources", "confirm", "copy", "--yes")["confirmed"]
    done = shell.run(*command)
    assert (done.exit_code, replaced.calls()) == (0, ["declare_table sales$own"]), done.output


def test_nothing_is_confirmed_while_yet_another_catalog_answers(shell: Shell, replaced: MemoryStore) -> None:
    index = shell.index()
    with index.write() as connection:
        identities.judge_readings(connection, "copy", [IdentityReading(Identity.of("catalog two"))], crawl=False)
    index.close()
    replaced.identify("catalog three")
    refused = shell.run("sources", "confirm", "copy", "--yes")
    assert (refused.exit_code, "catalog three" in refused.stderr) == (1, True)
    assert [item["value"] for item in shell.json("sources", "confirm", "copy")["seen"]] == ["catalog two"]
    assert shell.run("sources", "confirm", "nowhere").exit_code == 64


def test_a_confirmed_identity_is_accepted_beside_the_old_one(shell: Shell, replaced: MemoryStore) -> None:
    """Replicas: going to and fro between them needs no second confirmation, and a third catalog does."""
    assert not declared(shell, "a")
    assert shell.json("sources", "confirm", "copy", "--yes")["confirmed"]
    accepted = {}
    for number, identity in enumerate(("catalog two", "catalog one", "catalog two", "catalog three")):
        replaced.identify(identity)
        accepted[number] = declared(shell, f"t{number}")
    assert accepted == {0: True, 1: True, 2: True, 3: False}
    assert replaced.calls() == [f"declare_table sales$t{number}" for number in range(3)]


def test_a_confirmation_approves_no_plan(shell: Shell, replaced: MemoryStore) -> None:
    held = plan(held=True)
    saved(shell, held)
    assert not declared(shell, "a")
    waiting = shell.json("plans", "show", held.digest)["waiting"]
    assert waiting
    assert shell.json("sources", "confirm", "copy", "--yes")["confirmed"]
    shown = shell.json("plans", "show", held.digest)
    assert (shown["state"], shown["waiting"]) == ("held", waiting)
