"""The directory catalog with Lance's own clients: pylance writes, appends, overwrites and reads through it."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.connector import ConfigError, InvalidInput, ServiceUnavailable, Unsupported
from federator.model import ROOT, Coverage, CoverageState, TableRecord
from federator_connectors._dir.catalog import DirCatalog
from federator_connectors.dir import CONNECTOR
from tests.fixtures.file_capabilities import run_python_bound

ROWS = pa.table({"id": [1, 2, 3]})
NAMES = ["orders", "sp ace", "em😀ji", "a$b", "a.b", "x.lance", "a%20b", "a#b", "a?b", "a\\b", "a:b*[", "ü", "n" * 249]


def connect(root: object) -> ln.LanceNamespace:
    return ln.connect("federator_connectors.dir.DirNamespace", {"dir.path": str(root)})


def catalog(root: object) -> DirCatalog:
    return CONNECTOR.open("d", CONNECTOR.parse_settings({"root": str(root)}))


def listed(facade: ln.LanceNamespace) -> list[str]:
    return list(facade.list_tables(ln.ListTablesRequest(id=[])).tables)


@pytest.mark.parametrize("name", NAMES)
def test_pylance_writes_and_reads_any_name(tmp_path: Path, name: str) -> None:
    facade = connect(tmp_path)
    lance.write_dataset(ROWS, namespace_client=facade, table_id=[name])
    assert (tmp_path / f"{name}.lance" / "_versions").is_dir()
    lance.write_dataset(ROWS, namespace_client=facade, table_id=[name], mode="append")
    assert lance.dataset(namespace_client=facade, table_id=[name]).count_rows() == 6
    lance.write_dataset(ROWS, namespace_client=facade, table_id=[name], mode="overwrite")
    described = facade.describe_table(ln.DescribeTableRequest(id=[name], with_table_uri=True, check_declared=True))
    assert lance.dataset(described.location).count_rows() == 3
    assert lance.dataset(described.table_uri).count_rows() == 3
    assert described.is_only_declared is False
    assert listed(facade) == [name]


@pytest.mark.parametrize("name", ["", "_x", ".x", "a/b", "a\0b", "new\nline", "n" * 250, "ü" * 125, "\udcff"])
def test_a_name_that_cannot_be_a_directory_is_invalid(tmp_path: Path, name: str) -> None:
    with pytest.raises(ln.InvalidInputError):
        connect(tmp_path).declare_table(ln.DeclareTableRequest(id=[name]))
    assert list(tmp_path.iterdir()) == []


def test_a_deregistered_table_keeps_its_data_and_can_come_back(tmp_path: Path) -> None:
    facade = connect(tmp_path)
    lance.write_dataset(ROWS, namespace_client=facade, table_id=["orders"])
    facade.deregister_table(ln.DeregisterTableRequest(id=["orders"]))
    assert listed(facade) == []
    with pytest.raises(ln.TableNotFoundError):
        facade.describe_table(ln.DescribeTableRequest(id=["orders"]))
    assert lance.dataset(str(tmp_path / "orders.lance")).count_rows() == 3
    facade.register_table(ln.RegisterTableRequest(id=["orders"], location=str(tmp_path / "orders.lance")))
    assert lance.dataset(namespace_client=facade, table_id=["orders"]).count_rows() == 3


def test_pylances_own_directory_namespace_sees_the_same_tables(tmp_path: Path) -> None:
    own, theirs = connect(tmp_path), ln.connect("dir", {"root": str(tmp_path), "manifest_enabled": "false"})
    lance.write_dataset(ROWS, namespace_client=own, table_id=["one"])
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["two"])
    own.declare_table(ln.DeclareTableRequest(id=["declared"]))
    theirs.declare_table(ln.DeclareTableRequest(id=["declared_too"]))
    for name, by in (("gone", own), ("gone_too", theirs)):
        by.declare_table(ln.DeclareTableRequest(id=[name]))
        by.deregister_table(ln.DeregisterTableRequest(id=[name]))
    assert listed(own) == ["declared", "declared_too", "one", "two"] == sorted(listed(theirs))
    for name, declared in (("declared", True), ("declared_too", True), ("one", False), ("two", False)):
        request = ln.DescribeTableRequest(id=[name], check_declared=True)
        assert own.describe_table(request).is_only_declared is declared
        assert theirs.describe_table(request).is_only_declared is declared
    assert own.list_tables(ln.ListTablesRequest(id=[], include_declared=False)).tables == ["one", "two"]


def test_what_is_a_table_and_what_is_not(tmp_path: Path) -> None:
    for directory in ("a.lance", "b", "empty.lance", "__manifest", "_x.lance", ".hidden", ".lance", "dup", "dup.lance"):
        (tmp_path / directory).mkdir()
    (tmp_path / "file.lance").write_text("no directory")
    (tmp_path / "linked").symlink_to(tmp_path / "b")
    opened = catalog(tmp_path)
    assert opened.list_tables(ROOT) == ["a", "b", "dup", "empty", "linked"]
    assert opened.describe_table(("dup",)).location == f"file://{tmp_path}/dup.lance"
    assert opened.describe_table(("b",)).location == f"file://{tmp_path}/b"
    for name in ("file", "_x", ".hidden", "a.lance", "__manifest", "", "../x", "dup.lance"):
        assert opened.observe((name,)).is_absent, name
    (coverage,) = (item for item in opened.read_shard(opened.plan_shards()[0]) if isinstance(item, Coverage))
    assert coverage.complete
    assert coverage.detail.complete
    assert coverage.detail.reason == "hidden by a .lance directory of the same name: dup/"


def test_a_hidden_table_does_not_uncover_another_of_its_name(tmp_path: Path) -> None:
    for directory in ("dup", "dup.lance"):
        (tmp_path / directory).mkdir()
    opened = catalog(tmp_path)
    opened.deregister_table(opened.describe_table(("dup",)))
    assert opened.observe(("dup",)).is_absent
    assert opened.list_tables(ROOT) == []


def test_a_name_that_is_no_text_is_reported_and_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "ok.lance").mkdir()
    try:
        os.mkdir(os.fsencode(tmp_path) + b"/\xff.lance")  # noqa: PTH102 - pathlib has no bytes
    except OSError:
        return  # a file system that takes UTF-8 only cannot have such a name
    items = list(catalog(tmp_path).read_shard(catalog(tmp_path).plan_shards()[0]))
    assert [item.path for item in items if isinstance(item, TableRecord)] == [("ok",)]
    assert "not UTF-8: 1" in next(item for item in items if isinstance(item, Coverage)).detail.reason


def test_a_link_that_leads_nowhere_hides_no_other_table(tmp_path: Path) -> None:
    (tmp_path / "ok.lance").mkdir()
    (tmp_path / "dangling.lance").symlink_to("absent")
    items = list(catalog(tmp_path).read_shard(catalog(tmp_path).plan_shards()[0]))
    assert [item.path for item in items if isinstance(item, TableRecord)] == [("ok",)]
    assert [item.detail.state for item in items if isinstance(item, Coverage)] == [CoverageState.COMPLETE]
    assert catalog(tmp_path).observe(("dangling",)).is_absent


_READ = """
import sys
from federator.connector import CatalogError
from federator.model import Coverage
from tests.servers.dir.test_clients import catalog
opened = catalog(sys.argv[1])
*records, coverage = opened.read_shard(opened.plan_shards()[0])
names = [record.path[0] for record in records]
assert opened.list_tables(()) == names
print({record.path[0]: record.problem and record.problem.partition(";")[0] for record in records})
print(coverage.presence.state, coverage.detail.state, coverage.detail.reason.split()[0], coverage.detail.reason.rpartition("; ")[2])
for name in names:
    try:
        print(name, "present" if not opened.observe((name,)).is_absent else "absent")
    except CatalogError as error:
        print(name, error.code)
"""


def test_a_table_that_may_not_be_read_is_neither_gone_nor_hides_others(tmp_path: Path) -> None:
    """Links to what may not be read, or that nobody can follow, and a directory that may not be entered."""
    lake, closed = tmp_path / "lake", tmp_path / "closed"
    for directory in (lake / "entered.lance", lake / "ok.lance", closed / "t.lance"):
        directory.mkdir(parents=True)
    for name, target in (
        ("denied", closed / "t.lance"),
        ("long", "n" * 300),
        ("loop", "loop.lance"),
        ("_ignored", closed / "t"),
    ):
        (lake / f"{name}.lance").symlink_to(target)
    closed.chmod(0)
    (lake / "entered.lance").chmod(0)
    try:
        printed = run_python_bound(_READ, str(lake)).splitlines()
    finally:
        closed.chmod(0o755)
        (lake / "entered.lance").chmod(0o755)
    assert ast.literal_eval(printed[0]) == {
        "denied": f"{lake}/denied.lance: Permission denied", "entered": f"{lake}/entered.lance: Permission denied",
        "long": f"{lake}/long.lance: File name too long", "loop": f"{lake}/loop.lance: Too many levels of symbolic links", "ok": None,
    }  # fmt: skip
    assert printed[1] == "complete failed 4 let the service read it and what it links to, or remove it"
    assert printed[2:] == ["denied 15", "entered 15", "long 17", "loop 17", "ok present"]


def test_a_missing_root_is_unavailable_and_proves_nothing(tmp_path: Path) -> None:
    opened = catalog(tmp_path / "unmounted")
    record = TableRecord("d", ("x",), None)
    for attempt in (
        lambda: opened.list_tables(ROOT),
        lambda: opened.observe(("x",)),
        lambda: opened.declare_table(record),
        lambda: opened.deregister_table(record),
        opened.ping,
    ):
        with pytest.raises(ServiceUnavailable, match="unmounted"):
            attempt()
    (coverage,) = opened.read_shard(opened.plan_shards()[0])
    assert isinstance(coverage, Coverage)
    assert (coverage.complete, coverage.presence.code, coverage.found) == (False, 17, True)
    assert not (tmp_path / "unmounted").exists()


def test_a_directory_without_a_manifest_has_no_namespaces_inside(tmp_path: Path) -> None:
    for properties in ({}, {"manifest_enabled": "false"}):
        facade = ln.connect("federator_connectors.dir.DirNamespace", {"root": str(tmp_path), **properties})
        with pytest.raises((ln.UnsupportedOperationError, ln.InvalidInputError)):
            facade.create_namespace(ln.CreateNamespaceRequest(id=["ns"]))
    assert list(tmp_path.iterdir()) == []
    facade = ln.connect("federator_connectors.dir.DirNamespace", {"root": str(tmp_path), "manifest_enabled": "true"})
    facade.create_namespace(ln.CreateNamespaceRequest(id=["ns"]))
    assert ln.connect("dir", {"root": str(tmp_path)}).list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == ["ns"]


def test_a_directory_points_nowhere_else(tmp_path: Path) -> None:
    opened = catalog(tmp_path)
    with pytest.raises(Unsupported, match="elsewhere"):
        opened.declare_table(TableRecord("d", ("x",), "s3://elsewhere/x.lance"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "plain").mkdir()
    opened.deregister_table(opened.describe_table(("plain",)))
    assert opened.default_location(("plain",)) == f"file://{tmp_path}/plain"
    assert opened.declare_table(TableRecord("d", ("plain",), str(tmp_path / "plain"))).location == f"file://{tmp_path}/plain"


def test_the_directory_is_written_in_several_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "root dir" / "a.lance").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for root in (
        "root dir",
        "./root dir/",
        str(tmp_path / "root dir"),
        f"file://{tmp_path}/root%20dir",
        f"file:{tmp_path}/root dir",
    ):
        assert catalog(root).describe_table(("a",)).location == f"file://{tmp_path}/root dir/a.lance"
    monkeypatch.chdir(tmp_path / "root dir")
    with CONNECTOR.open("d", CONNECTOR.parse_settings({})) as opened:
        assert opened.list_tables(ROOT) == ["a"]
    with pytest.raises(ConfigError, match="one setting"):
        CONNECTOR.parse_settings({"dir.path": "/a", "dir.root": "/b"})
    for root, error in (("ftp://host/x", Unsupported), ("s3://", InvalidInput)):
        with pytest.raises(error):
            catalog(root)
