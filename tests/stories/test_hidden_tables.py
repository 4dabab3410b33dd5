"""Tables that a real metastore's filter hook hides from the source of a mirror: their copies stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from federator.demo.servers import hive
from federator.model import NamespaceRecord, TableRecord
from federator.testing import MemoryStore
from federator_connectors import hive3
from tests.fixtures.filter_hook import READER, FilteringMetastore, filtering_metastore
from tests.stories.test_late_calls import configured, memory
from tests.unit.cli.conftest import Shell

pytestmark = pytest.mark.timeout(300)


def _mirror(metastore: FilteringMetastore, directory: Path, option: str) -> Shell:
    origin = f'impl = "hive3"\nuri = "{metastore.uri}"\nugi = "{READER}"\n{option}'
    return configured(directory, origin=origin, target=memory(directory / "target.json"))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("reads", "option", "reason"),
    [
        # The hook filters listings only, and each table is read by its name before its copy is removed.
        (False, "", "still_there"),
        # A listener's error is no absence.
        (True, "", "not_covered"),
        (True, "listing_filtered = true\n", "emptied_namespace"),
    ],
)
def test_copies_of_hidden_tables_stay(reads: bool, option: str, reason: str, tmp_path: Path) -> None:
    with filtering_metastore(hive.HIVE4, tmp_path, reads=reads) as metastore:
        settings = hive3.CONNECTOR.parse_settings({"uri": metastore.uri, "ugi": "writer"})
        with hive3.CONNECTOR.open("lake", settings) as writer:
            for database, names in (("sales", "ab"), ("other", "cdefg")):
                writer.create_namespace(NamespaceRecord("lake", ("hive", database), location=f"file:{tmp_path}/{database}"))
                for name in names:
                    writer.declare_table(TableRecord("lake", ("hive", database, name), f"file:{tmp_path}/{name}"))
        shell = _mirror(metastore, tmp_path, option)
        assert shell.run("sync").exit_code == 0
        target = MemoryStore(f"{tmp_path}/target.json")
        declared = target.calls()
        metastore.hide("sales.a", "sales.b")
        output = shell.run("sync").output
        assert "(2 gone)" in output, output
        assert reason in output, output
        metastore.hide()
        assert shell.run("sync").exit_code == 0
        assert target.calls() == declared
