"""Directories with pylance's manifest, read by pylance's own namespace and by the connector, and their differences."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.connector import (
    ConfigError,
    InvalidInput,
    NamespaceNotEmpty,
    NamespaceNotFound,
    ServiceUnavailable,
    TableAlreadyExists,
    Unsupported,
)
from federator.model import ROOT, Coverage, NamespaceRecord, TableRecord
from federator.model import Path as Levels
from federator_connectors._dir.catalog import DirCatalog
from federator_connectors.dir import CONNECTOR

ROWS = pa.table({"id": [1, 2, 3]})


def catalog(root: Path, manifest: str = "true") -> DirCatalog:
    return CONNECTOR.open("d", CONNECTOR.parse_settings({"root": str(root), "manifest_enabled": manifest}))


def pylance(root: Path, **properties: str) -> ln.LanceNamespace:
    return ln.connect("dir", {"root": str(root), **properties})


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """What pylance 14 writes: namespaces with properties, tables declared, written and registered at each depth."""
    theirs = pylance(tmp_path)
    for path, properties in ((["upper"], {"team": "sales"}), (["upper", "lower"], {}), (["other"], {})):
        theirs.create_namespace(ln.CreateNamespaceRequest(id=path, properties=properties))
    for path in (["top"], ["upper", "mid"], ["upper", "lower", "sp ace"]):
        lance.write_dataset(ROWS, namespace_client=theirs, table_id=path)
    theirs.declare_table(ln.DeclareTableRequest(id=["upper", "declared"], properties={"k": "v"}))
    lance.write_dataset(ROWS, str(tmp_path / "deep" / "er" / "reg.lance"))
    theirs.register_table(ln.RegisterTableRequest(id=["other", "registered"], location="deep/er/reg.lance"))
    return tmp_path


def crawl(reader: DirCatalog) -> tuple[dict[Levels, object], dict[Levels, Coverage]]:
    items = [item for shard in reader.plan_shards() for item in reader.read_shard(shard)]
    coverage = {item.namespace: item for item in items if isinstance(item, Coverage)}
    return {item.path: item for item in items if not isinstance(item, Coverage)}, coverage


def test_both_read_the_same(world: Path) -> None:
    own, theirs = catalog(world, "auto"), pylance(world)
    for above in ([], ["upper"], ["upper", "lower"], ["other"]):
        listed = theirs.list_tables(ln.ListTablesRequest(id=above)).tables
        assert own.list_tables(tuple(above)) == sorted(listed)
        assert own.list_namespaces(tuple(above)) == sorted(
            theirs.list_namespaces(ln.ListNamespacesRequest(id=above)).namespaces
        )
        for name in listed:
            mine = own.describe_table((*above, name))
            described = theirs.describe_table(ln.DescribeTableRequest(id=[*above, name]))
            assert mine.canonical == TableRecord("d", (name,), described.location).canonical
            assert mine.properties == (described.properties or {})
            if name != "declared":
                assert lance.dataset(str(mine.location)).count_rows() == 3
            if name != "registered":
                request = ln.DescribeTableRequest(id=[*above, name], check_declared=True)
                assert own.is_only_declared(mine) is theirs.describe_table(request).is_only_declared
    assert own.describe_namespace(("upper",)).properties == {"team": "sales"}


def test_a_crawl_covers_every_namespace_from_one_snapshot(world: Path) -> None:
    records, coverage = crawl(catalog(world, "auto"))
    assert set(coverage) == {ROOT, ("upper",), ("upper", "lower"), ("other",)}
    assert all(covered.complete for covered in coverage.values())
    tables = {path for path, record in records.items() if isinstance(record, TableRecord)}
    assert tables == {("top",), ("upper", "mid"), ("upper", "declared"), ("upper", "lower", "sp ace"), ("other", "registered")}


def test_without_the_manifest_only_the_root_is_there(world: Path) -> None:
    left_out = catalog(world, "false")
    assert left_out.list_namespaces(ROOT) == []
    with pytest.raises(NamespaceNotFound):
        left_out.list_tables(("upper",))
    assert "top" in left_out.list_tables(ROOT)


def test_pylance_reads_what_we_write(world: Path) -> None:
    own, theirs = catalog(world), pylance(world)
    own.create_namespace(NamespaceRecord("d", ("made",), {"team": "ops"}))
    declared = own.declare_table(TableRecord("d", ("made", "there"), f"{world}/any where/t.lance"))
    chosen = own.declare_table(TableRecord("d", ("made", "chosen")))
    assert theirs.describe_namespace(ln.DescribeNamespaceRequest(id=["made"])).properties == {"team": "ops"}
    assert sorted(theirs.list_tables(ln.ListTablesRequest(id=["made"])).tables) == ["chosen", "there"]
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["made", "there"], mode="append")
    assert lance.dataset(str(declared.location)).count_rows() == 3
    with pytest.raises(NamespaceNotEmpty):
        own.drop_namespace(("made",))
    own.deregister_table(declared)
    own.deregister_table(chosen)
    own.drop_namespace(("made",))
    assert "made" not in theirs.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces
    assert lance.dataset(str(declared.location)).count_rows() == 3, "the data stays"


def test_what_the_manifest_refuses(world: Path) -> None:
    own = catalog(world)
    mid = own.describe_table(("upper", "mid"))
    for error, attempt in (
        (Unsupported, lambda: own.declare_table(TableRecord("d", ("upper", "x"), "s3://elsewhere/x.lance"))),
        (Unsupported, lambda: own.declare_table(TableRecord("d", ("upper", "x"), f"{world.parent}/x.lance"))),
        (TableAlreadyExists, lambda: own.declare_table(mid)),
        (NamespaceNotFound, lambda: own.declare_table(TableRecord("d", ("none", "x")))),
        (NamespaceNotFound, lambda: own.create_namespace(NamespaceRecord("d", ("none", "x")))),
        (NamespaceNotFound, lambda: own.drop_namespace(("none",))),
        (InvalidInput, lambda: own.create_namespace(NamespaceRecord("d", ("a$b",)))),
        (Unsupported, lambda: catalog(world, "auto").create_namespace(NamespaceRecord("d", ("new",)))),
    ):
        with pytest.raises(error) as caught:
            attempt()
        assert type(caught.value) is error


def test_where_pylance_differs(world: Path) -> None:
    """What docs/reference/real-servers.md says of pylance's directory namespace: when it changes, so should the page."""
    own, theirs = catalog(world), pylance(world)
    # A missing namespace is listed as empty; ours is not found.
    assert theirs.list_tables(ln.ListTablesRequest(id=["none"])).tables == []
    with pytest.raises(NamespaceNotFound):
        own.list_tables(("none",))
    # A table may be declared in a namespace that is not there; ours reports it and does not show it.
    theirs.declare_table(ln.DeclareTableRequest(id=["none", "orphan"]))
    assert "in a namespace that does not exist: none$orphan" in crawl(own)[1][ROOT].detail.reason
    # A directory without the suffix is no table; by the spec's text it is one.
    (world / "plain").mkdir()
    assert "plain" not in theirs.list_tables(ln.ListTablesRequest(id=[])).tables
    assert "plain" in own.list_tables(ROOT)
    # A table of the root that only the manifest knows is not shown; ours is.
    theirs.register_table(ln.RegisterTableRequest(id=["hidden"], location="deep/er/reg.lance"))
    assert "hidden" not in theirs.list_tables(ln.ListTablesRequest(id=[])).tables
    assert own.describe_table(("hidden",)).location == f"file://{world}/deep/er/reg.lance"
    # A registered table that has been written counts as only declared.
    request = ln.DescribeTableRequest(id=["other", "registered"], check_declared=True)
    assert theirs.describe_table(request).is_only_declared is True
    assert own.is_only_declared(own.describe_table(("other", "registered"))) is False
    # Deregistering a table of the root leaves it in the listing; ours is hidden from both.
    theirs.declare_table(ln.DeclareTableRequest(id=["again"]))
    theirs.deregister_table(ln.DeregisterTableRequest(id=["again"]))
    assert "again" in theirs.list_tables(ln.ListTablesRequest(id=[])).tables
    own.deregister_table(own.describe_table(("again",)))
    assert "again" not in own.list_tables(ROOT)
    assert "again" not in theirs.list_tables(ln.ListTablesRequest(id=[])).tables


def test_a_row_of_the_manifest_takes_precedence_over_a_directory(world: Path) -> None:
    """As the text of V2 says, and pylance does with ``dir_listing_enabled = false``. Otherwise pylance 14 opens ``x.lance``."""
    own, theirs = catalog(world), pylance(world)
    lance.write_dataset(pa.table({"id": [1]}), str(world / "both.lance"))
    (world / "bare").mkdir()
    for name in ("both", "bare"):
        theirs.register_table(ln.RegisterTableRequest(id=[name], location="deep/er/reg.lance"))
    of_manifest, request = pylance(world, dir_listing_enabled="false"), ln.DescribeTableRequest(id=["both"])
    assert of_manifest.describe_table(request).location == f"file://{world}/deep/er/reg.lance"
    assert str(theirs.describe_table(request).location).endswith("/both.lance")
    records, coverage = crawl(own)
    for name in ("both", "bare"):
        for record in (own.describe_table((name,)), records[(name,)]):
            assert isinstance(record, TableRecord)
            assert lance.dataset(str(record.location)).count_rows() == 3
    assert "hidden by a table of the manifest at another location: bare, both" in coverage[ROOT].detail.reason
    # Without the row, the directory is the table again: it was never the one that is deregistered here.
    own.deregister_table(own.describe_table(("both",)))
    assert lance.dataset(str(own.describe_table(("both",)).location)).count_rows() == 1
    assert [*(world / "both.lance").glob(".lance-*")] == []


def test_the_properties_of_the_directory_are_the_metadata_of_the_manifest(world: Path) -> None:
    assert catalog(world).describe_namespace(ROOT).properties == {}
    lance.dataset(str(world / "__manifest")).update_metadata({"team": "data", "schema": "{}"})
    for writer in (pylance(world), catalog(world)):
        described = catalog(world, "auto").describe_namespace(ROOT)
        assert (described.properties, described.location) == ({"team": "data", "schema": "{}"}, f"file://{world}")
        # They are kept by both.
        if isinstance(writer, DirCatalog):
            writer.create_namespace(NamespaceRecord("d", ("ours",)))
        else:
            writer.create_namespace(ln.CreateNamespaceRequest(id=["theirs"]))
    assert catalog(world, "false").describe_namespace(ROOT).properties == {}


def test_columns_of_an_extension_are_kept(world: Path) -> None:
    """pylance 14 removes columns that it does not know with its next write, so such a manifest is read and not written."""
    own, path = catalog(world), str(world / "__manifest")
    mid = own.describe_table(("upper", "mid"))
    lance.dataset(path).add_columns({"partition_of": "'p'"})
    for attempt in (
        lambda: own.create_namespace(NamespaceRecord("d", ("new",))),
        lambda: own.drop_namespace(("upper", "lower")),
        lambda: own.declare_table(TableRecord("d", ("upper", "new"))),
        lambda: own.declare_table(TableRecord("d", ("upper", "new"), f"{world}/new.lance")),
        lambda: own.deregister_table(mid),
    ):
        with pytest.raises(Unsupported, match="would remove the columns partition_of"):
            attempt()
    assert "partition_of" in lance.dataset(path).schema.names
    assert own.describe_table(("upper", "mid")) == mid
    assert "sp ace" in own.list_tables(("upper", "lower"))
    pylance(world).create_namespace(ln.CreateNamespaceRequest(id=["theirs"]))
    assert "partition_of" not in lance.dataset(path).schema.names, "pylance keeps them now: let it write"


def test_a_manifest_that_cannot_be_read_proves_nothing(world: Path) -> None:
    shutil.rmtree(world / "__manifest" / "_versions")
    own = catalog(world, "auto")
    for attempt in (lambda: own.list_namespaces(ROOT), lambda: own.list_tables(ROOT), lambda: own.observe(("upper", "mid"))):
        with pytest.raises(ServiceUnavailable, match="the manifest cannot be read"):
            attempt()
    _, coverage = crawl(own)
    assert set(coverage) == {ROOT}
    assert not coverage[ROOT].complete


def test_nothing_is_made_where_nothing_is_mounted(tmp_path: Path) -> None:
    with pytest.raises(ServiceUnavailable):
        catalog(tmp_path / "unmounted").create_namespace(NamespaceRecord("d", ("ns",)))
    assert not (tmp_path / "unmounted").exists()


def test_a_missing_pylance_is_named(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(ConfigError, match="needs the module") as caught:
        catalog(world, "auto").list_tables(ROOT)
    assert "manifest_enabled = false" in (caught.value.hint or "")


def test_the_manifest_is_read_on_s3(s3_storage_options: dict[str, str]) -> None:
    from federator.testing.contract import unique_name

    root, storage = (
        f"s3://lance-data/{unique_name('pre fix')}",
        {f"storage.{key}": value for key, value in s3_storage_options.items()},
    )
    theirs = ln.connect("dir", {"root": root, **storage})
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["ns"]))
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["ns", "t"], storage_options=s3_storage_options)
    with CONNECTOR.open("d", CONNECTOR.parse_settings({"root": root, "manifest_enabled": "true", **storage})) as own:
        assert own.list_tables(("ns",)) == ["t"]
        location = str(own.describe_table(("ns", "t")).location)
        assert lance.dataset(location, storage_options=s3_storage_options).count_rows() == 3
        own.declare_table(TableRecord("d", ("ns", "u"), f"{root}/a b/u.lance"))
        assert sorted(theirs.list_tables(ln.ListTablesRequest(id=["ns"])).tables) == ["t", "u"]
