"""The contract suite detects faulty connectors: each connector here has one fault and must fail."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from federator.testing import contract
from federator.testing.contract.base import Contract

HEAD = """
import time
from dataclasses import replace
import pytest
from federator.connector import CatalogError, InvalidInput, NamespaceNotFound, Observation, PermissionDenied, Shard
from federator.model import Coverage, Kind, TableRecord, path_key
from federator.testing import ConnectorContract, MemoryCatalog as Base, MemoryConnector, get_memory_store
from federator.testing.contract import unique_name


class Suite(ConnectorContract):
    unreachable = {"faults": "fail:*; undescribed:*; refuse:*=17"}
    native_page = 3

    @pytest.fixture
    def properties(self):
        self.name = unique_name("store")
        return {"store": self.name}

    @pytest.fixture
    def namespace(self, properties):
        return get_memory_store(self.name).add_namespace((unique_name("ns"),)).path

    @pytest.fixture
    def location(self):
        return lambda name: f"s3://b/{name}.lance"

    def make_managed(self, namespace, name):
        get_memory_store(self.name).add_table((*namespace, name), kind=Kind.MANAGED_TABLE)

    def make_foreign(self, namespace, name):
        get_memory_store(self.name).add_foreign((*namespace, name))

    def deny(self, namespace):
        return {"faults": f"deny:{path_key(namespace)}"}
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
    def _read_namespace(self, namespace):
        for item in super()._read_namespace(namespace):
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
    def _read_namespace(self, namespace):
        return (item for item in super()._read_namespace(namespace) if not isinstance(item, TableRecord))""",
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
    def _stored_properties(self, properties):
        return {k: v for k, v in properties.items() if not k.startswith("federator.")}""",
        "test_properties_come_back_and_marks_stay_out_of_storage_options",
    ),
    "what has moved is written over": (
        """class Catalog(Base):
    def _get_unchanged_table(self, state, expected, confirm=lambda: None):
        confirm()
        return self._get_table(state, expected.path)""",
        "test_what_has_moved_is_not_written_over",
    ),
    "a managed table is listed": (
        """class Catalog(Base):
    def list_tables(self, namespace):
        with self._open_for_read(namespace) as state:
            return [key.split("$")[-1] for key in state["tables"]]""",
        "test_a_managed_table_is_never_listed",
    ),
    "a table that is not empty goes with its namespace": (
        """class Catalog(Base):
    def drop_namespace(self, path):
        self._store.remove(path)""",
        "test_what_is_not_empty_is_neither_dropped_nor_overwritten",
    ),
    "the token of the next page is dropped": (
        """class Catalog(Base):
    def list_tables(self, namespace):
        return super().list_tables(namespace)[:3]""",
        "test_more_tables_than_a_native_page_are_listed_and_crawled",
    ),
    "a page of the crawl is read twice": (
        """class Catalog(Base):
    def _read_namespace(self, namespace):
        for item in super()._read_namespace(namespace):
            yield item
            if isinstance(item, TableRecord):
                yield item""",
        "test_the_crawl_says_what_a_direct_look_says",
    ),
    "a listing error is swallowed": (
        """class Catalog(Base):
    def list_tables(self, namespace):
        try:
            return super().list_tables(namespace)
        except NamespaceNotFound:
            raise
        except CatalogError:
            return []""",
        "test_an_unreachable_catalog_is_unavailable_whatever_is_asked",
    ),
    "a table that cannot be reached is absent": (
        """class Catalog(Base):
    def describe_table(self, path):
        try:
            return super().describe_table(path)
        except CatalogError as error:
            raise (error if error.code != 17 else NamespaceNotFound("no answer"))""",
        "test_an_unreachable_catalog_is_unavailable_whatever_is_asked",
    ),
    "a denied namespace is empty": (
        """class Catalog(Base):
    def _read_namespace(self, namespace):
        try:
            self._parse_faults({"faults": ""}).before_read(namespace)
        except PermissionDenied:
            yield Coverage(self.source, namespace)
            return
        yield from super()._read_namespace(namespace)""",
        "test_what_is_denied_is_neither_empty_nor_gone",
    ),
    "a denied namespace is gone": (
        """class Catalog(Base):
    def _read_namespace(self, namespace):
        for item in super()._read_namespace(namespace):
            yield replace(item, found=False) if isinstance(item, Coverage) and not item.complete else item""",
        "test_what_is_denied_is_neither_empty_nor_gone",
    ),
    "a namespace that does not answer is gone": (
        """class Catalog(Base):
    def _read_namespace(self, namespace):
        for item in super()._read_namespace(namespace):
            yield replace(item, found=False) if isinstance(item, Coverage) and item.presence.code == 17 else item""",
        "test_a_shard_that_cannot_be_read_is_covered_as_failed",
    ),
    "a namespace that is gone is empty": (
        """class Catalog(Base):
    def _read_namespace(self, namespace):
        for item in super()._read_namespace(namespace):
            gone = isinstance(item, Coverage) and not item.found
            yield Coverage(self.source, namespace) if gone else item""",
        "test_a_namespace_that_went_away_is_not_empty_but_gone",
    ),
    "shards are read only where they were cut": (
        """class Catalog(Base):
    def plan_shards(self):
        self.cut = list(super().plan_shards())
        return [Shard(each.namespaces, number) for number, each in enumerate(self.cut)]

    def read_shard(self, shard):
        yield from super().read_shard(self.cut[shard.payload])""",
        "test_the_crawl_says_what_a_direct_look_says",
    ),
    "shards do not travel": (
        """class Catalog(Base):
    def plan_shards(self):
        return [replace(each, payload=lambda: None) for each in super().plan_shards()]""",
        "test_the_root_and_every_namespace_are_covered",
    ),
    "the digest holds what is volatile": (
        """class Catalog(Base):
    def _read_namespace(self, namespace):
        for item in super()._read_namespace(namespace):
            if isinstance(item, TableRecord):
                item = replace(item, properties={"seen": str(time.time_ns())})
            yield item""",
        "test_a_second_crawl_has_the_same_digests",
    ),
    "an error is not of the tree": (
        """class Catalog(Base):
    def describe_table(self, path):
        with self._store.locked_state() as state:
            state["tables"][path_key(path)]
        return super().describe_table(path)""",
        "test_a_missing_table_is_not_found",
    ),
    "a name becomes another": (
        """class Catalog(Base):
    def declare_table(self, record):
        return super().declare_table(replace(record, path=(*record.path[:-1], record.path[-1].strip())))""",
        "test_every_name_is_kept_or_refused",
    ),
    "a name that the rules allow is refused": (
        """class Catalog(Base):
    def create_namespace(self, record):
        if " " in record.path[-1]:
            raise InvalidInput("no spaces")
        return super().create_namespace(record)""",
        "test_every_namespace_name_is_kept_or_refused",
    ),
    "threads share what is one's own": (
        """class Catalog(Base):
    def declare_table(self, record):
        Catalog.wanted = record
        time.sleep(0.02)
        return super().declare_table(Catalog.wanted)""",
        "test_eight_threads_use_one_namespace_and_do_not_mix",
    ),
    "a second declaration replaces the first": (
        """class Catalog(Base):
    def declare_table(self, record):
        with self._store.locked_state(write=True) as state:
            state["tables"].pop(path_key(record.path), None)
        return super().declare_table(record)""",
        "test_of_eight_that_declare_one_name_one_wins",
    ),
    "properties of a namespace stay when it is replaced": (
        """class Catalog(Base):
    kept = {}

    def create_namespace(self, record):
        self.kept.setdefault(record.path, {}).update(record.properties)
        return super().create_namespace(replace(record, properties=self.kept[record.path]))""",
        "test_exist_ok_keeps_what_is_there_and_overwrite_replaces_it",
    ),
    "a location is changed": (
        """class Catalog(Base):
    def declare_table(self, record):
        return super().declare_table(replace(record, location=record.location.replace("t_", "T_")))""",
        "test_a_table_is_registered_and_registered_again",
    ),
    "a rename moves the location": (
        """class Catalog(Base):
    def rename_table(self, before, new_path):
        made = super().rename_table(before, new_path)
        return self.update_table(made, replace(made, location=self.default_location(new_path)))""",
        "test_a_rename_keeps_the_declaration_or_is_unsupported",
    ),
    "a rename replaces what has the name": (
        """class Catalog(Base):
    def rename_table(self, before, new_path):
        with self._store.locked_state(write=True) as state:
            state["tables"].pop(path_key(new_path), None)
        return super().rename_table(before, new_path)""",
        "test_a_rename_keeps_the_declaration_or_is_unsupported",
    ),
    "a removal is confirmed too late": (
        """class Catalog(Base):
    def deregister_table(self, expected, *, confirm=lambda: None):
        super().deregister_table(expected)
        confirm()""",
        "test_a_removal_is_confirmed_once_and_last",
    ),
    "a removal is not confirmed": (
        """class Catalog(Base):
    def deregister_table(self, expected, *, confirm=lambda: None):
        super().deregister_table(expected)""",
        "test_a_removal_is_confirmed_once_and_last",
    ),
    "recreated on update": (
        """class Catalog(Base):
    def update_table(self, before, after, *, confirm=lambda: None):
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
def test_the_suite_fails_for_each_faulty_connector(failures: str, number: int, wrong: str) -> None:
    catching = WRONG[wrong][1]
    if catching:
        assert f"Test{number}::{catching}" in failures
    else:
        assert f"Test{number}::" not in failures
        assert " passed" in failures


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *options, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout


def test_tests_that_do_not_apply_are_not_collected(tmp_path: Path) -> None:
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


def test_the_example_of_the_docstring_passes(tmp_path: Path) -> None:
    text = str(contract.__doc__).split("runs the suite for your own connector::")[1].split("\nThe three fixtures")[0]
    (tmp_path / "test_example.py").write_text(textwrap.dedent(text))
    output = run(tmp_path)
    assert " passed" in output
    assert "failed" not in output
    assert "error" not in output


def test_failures_show_the_compared_values(tmp_path: Path) -> None:
    sabotage, catching = WRONG["the token of the next page is dropped"]
    (tmp_path / "test_wrong.py").write_text(HEAD + CASE.format(sabotage=sabotage, number=0))
    (tmp_path / "conftest.py").write_text("import pytest\npytest.register_assert_rewrite('federator.testing.contract')\n")
    output = run(tmp_path, "-k", catching)
    assert "AssertionError: a page of the listing was lost or repeated" in output
    assert "Right contains 4 more items" in output


def test_every_attribute_is_explained() -> None:
    """What a third party may set is what the docstring's table lists."""
    hooks = {name for name, value in vars(Contract).items() if not name.startswith(("_", "test")) and not _is_fixture(value)}
    explained = set(re.findall(r"^``(\w+)``  ", str(contract.__doc__), re.MULTILINE))
    assert explained == hooks - {"declare_new_table", "default_operation", "record_unsupported"}


def _is_fixture(value: object) -> bool:
    return "fixture" in type(value).__name__.lower()
