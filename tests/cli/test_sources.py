"""``sources confirm`` and what refuses before it, without Spark."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from federator.index import identities
from federator.model import Identity
from federator.planning.identity import IdentityReading
from federator.testing import MemoryStore
from tests.cli.conftest import Shell


@pytest.fixture
def replaced(shell: Shell) -> MemoryStore:
    """The store of ``copy``, which is another catalog than the one that the index accepted."""
    index = shell.index()
    with index.write() as connection:
        identities.check(connection, "copy", [IdentityReading(Identity.of("catalog one"))], crawl=True)
    index.close()
    store = shell.store("copy")
    store.add_namespace(("sales",))
    store.identify("catalog two")
    return store


def test_a_person_declares_nothing_in_another_catalog(shell: Shell, replaced: MemoryStore) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(shell.folder / "own.lance"))
    command = ("declare", str(shell.folder / "own.lance"), "--into", "copy", "--as", "sales$own", "--yes")
    refused = shell.run(*command)
    assert refused.exit_code in (1, 3), refused.output
    assert "another catalog answers for copy: catalog two, known is catalog one" in refused.output
    assert "federator sources confirm copy" in refused.output
    assert replaced.calls() == []
    # Now it waits for a confirmation, and says so before anything is asked.
    shown = shell.run("sources", "confirm", "copy")
    assert [line.split() for line in shown.stdout.splitlines()[1:3]] == [["known", "catalog", "one"], ["new", "catalog", "two"]]
    assert "federator sources confirm copy --yes accepts the new identity" in shown.stderr
    assert shell.json("sources", "confirm", "copy", "--yes")["confirmed"]
    declared = shell.run(*command)
    assert (declared.exit_code, replaced.calls()) == (0, ["declare_table sales$own"]), declared.output


def test_nothing_is_confirmed_while_yet_another_catalog_answers(shell: Shell, replaced: MemoryStore) -> None:
    index = shell.index()
    with index.write() as connection:
        identities.check(connection, "copy", [IdentityReading(Identity.of("catalog two"))], crawl=False)
    index.close()
    replaced.identify("catalog three")
    refused = shell.run("sources", "confirm", "copy", "--yes")
    assert (refused.exit_code, "catalog three" in refused.stderr) == (1, True)
    assert [each["value"] for each in shell.json("sources", "confirm", "copy")["seen"]] == ["catalog two"]
    assert shell.run("sources", "confirm", "nowhere").exit_code == 64
