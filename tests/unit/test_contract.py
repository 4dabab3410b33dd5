"""The contract suite catches connectors that are wrong in the ways that hurt: each of these must fail it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
from dataclasses import replace
import pytest
from federator.connector import NamespaceNotFound
from federator.model import Coverage, Kind, TableRecord
from federator.testing import MemoryCatalog as Base, MemoryConnector, memory_store
from federator.testing.contract import ConnectorContract, fresh


class Suite(ConnectorContract):
    unreachable = {"faults": "fail:*"}

    @pytest.fixture
    def properties(self):
        self.name = fresh("store")
        return {"store": self.name}

    @pytest.fixture
    def namespace(self, properties):
        return memory_store(self.name).add_namespace((fresh("ns"),)).path

    @pytest.fixture
    def location(self):
        return lambda name: f"s3://b/{name}.lance"

    def make_managed(self, namespace, name):
        memory_store(self.name).add_table((*namespace, name), kind=Kind.MANAGED_TABLE)

    def make_foreign(self, namespace, name):
        memory_store(self.name).add_foreign((*namespace, name))
"""
CASE = """

{sabotage}


class Connector{number}(MemoryConnector):
    catalog = Catalog

    def open(self, source, settings):
        return self.catalog(source, settings, self.capabilities)


class Test{number}(Suite):
    connector = Connector{number}()
"""
#: what is wrong, and one test that must say so
WRONG = {
    "nothing": ("class Catalog(Base): pass", ""),
    "a failed listing is empty": (
        """class Catalog(Base):
    def _read(self, namespace):
        for item in super()._read(namespace):
            yield Coverage(self.source, namespace) if isinstance(item, Coverage) and not item.complete else item""",
        "test_a_catalog_that_does_not_answer_is_an_error_and_not_empty",
    ),
    "a missing namespace lists as empty": (
        """class Catalog(Base):
    def list_tables(self, namespace):
        try:
            return super().list_tables(namespace)
        except NamespaceNotFound:
            return []""",
        "test_a_missing_namespace_is_not_found",
    ),
    "the crawl loses a row": (
        """class Catalog(Base):
    def _read(self, namespace):
        return (item for item in super()._read(namespace) if not isinstance(item, TableRecord))""",
        "test_the_crawl_says_what_a_direct_look_says",
    ),
    "the crawl says something else than a direct look": (
        """class Catalog(Base):
    def describe_table(self, path):
        return replace(super().describe_table(path), owner="direct")""",
        "test_the_crawl_says_what_a_direct_look_says",
    ),
    "the mark is dropped": (
        """class Catalog(Base):
    def _kept(self, properties):
        return {k: v for k, v in properties.items() if not k.startswith("federator.")}""",
        "test_properties_come_back_and_marks_stay_out_of_storage_options",
    ),
    "what has moved is written over": (
        """class Catalog(Base):
    def _expected(self, state, expected):
        return self._table(state, expected.path)""",
        "test_what_has_moved_is_not_written_over",
    ),
    "a managed table is listed": (
        """class Catalog(Base):
    def list_tables(self, namespace):
        with self._reading(namespace) as state:
            return [key.split("$")[-1] for key in state["tables"]]""",
        "test_a_managed_table_is_never_listed",
    ),
    "a table that is not empty goes with its namespace": (
        """class Catalog(Base):
    def drop_namespace(self, path):
        self._store.remove(path)""",
        "test_what_is_not_empty_is_neither_dropped_nor_overwritten",
    ),
    "recreated on update": (
        """class Catalog(Base):
    def update_table(self, before, after):
        self.deregister_table(before)
        return self.declare_table(after)""",
        "test_an_update_changes_what_it_is_given",
    ),
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the suite says of all of them, in one run."""
    folder = tmp_path_factory.mktemp("wrong")
    cases = [CASE.format(sabotage=sabotage, number=number) for number, (sabotage, _) in enumerate(WRONG.values())]
    (folder / "test_wrong.py").write_text(HEAD + "".join(cases))
    return run(folder, "--tb=no")


@pytest.mark.parametrize(("number", "wrong"), list(enumerate(WRONG)), ids=list(WRONG))
def test_the_suite_fails_what_is_wrong(failures: str, number: int, wrong: str) -> None:
    catching = WRONG[wrong][1]
    if catching:
        assert f"Test{number}::{catching}" in failures
    else:
        assert f"Test{number}::" not in failures
        assert " passed" in failures


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout


def test_what_does_not_apply_is_not_collected(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "from federator.testing import PLAIN\nfrom federator.testing.contract import ConnectorContract\n"
        "class TestPlain(ConnectorContract):\n    connector = PLAIN\n"
    )
    listed = run(tmp_path, "--collect-only")
    assert "test_cascade_is_unsupported" in listed
    assert "test_altering_is_unsupported" in listed
    for absent in (
        "test_cascade_removes",
        "test_an_update_changes",
        "managed",
        "foreign",
        "marks_stay_out",
        "test_a_namespace_needs",
    ):
        assert absent not in listed
