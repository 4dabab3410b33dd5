"""The namespace facade where it does more than its catalog: construction, identity, errors, CASCADE, threads."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import lance as dataset
import lance_namespace as lance
import pyarrow as pa
import pytest

import federator.testing.memory
from federator.connector import Catalog, CatalogError, ServiceUnavailable, Throttled
from federator.connector.catalog_pool import CatalogPool
from federator.lance.facade import facade_class
from federator.model import Kind
from federator.testing import CONNECTOR, PLAIN, MemorySettings, MemoryStore, get_memory_store
from federator.testing.contract import unique_name

PATH = "federator.testing.memory.MemoryNamespace"


@pytest.fixture
def store() -> tuple[str, MemoryStore]:
    name = unique_name("store")
    return name, get_memory_store(name)


def test_connect_takes_keys_bare_or_prefixed(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("sales", "orders"), "s3://b/orders.lance")
    for key in ("store", "memory.store"):
        facade = lance.connect(PATH, {key: store[0]})
        assert facade.list_tables(lance.ListTablesRequest(id=["sales"])).tables == ["orders"]


def test_a_mistake_in_the_properties_is_named() -> None:
    with pytest.raises(ValueError, match="stor: unknown key"):
        lance.connect(PATH, {"stor": "x"})
    with pytest.raises(lance.InvalidInputError, match="store"):
        federator.testing.memory.MemoryNamespace(stor="x")


def test_importing_a_connector_does_not_import_lance() -> None:
    code = "import sys, federator.testing, federator_connectors.dir; assert 'lance_namespace' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_class_is_one_object_and_instances_travel(store: tuple[str, MemoryStore]) -> None:
    made = federator.testing.memory.MemoryNamespace
    assert made is federator.testing.memory.MemoryNamespace
    store[1].add_namespace(("sales",))
    copy = pickle.loads(pickle.dumps(made(store=store[0])))
    assert type(copy) is made
    assert copy.list_namespaces(lance.ListNamespacesRequest()).namespaces == ["sales"]
    with pytest.raises(AttributeError, match="OtherNamespace"):
        federator.testing.memory.OtherNamespace  # noqa: B018


def test_the_facade_of_a_configured_source_cannot_be_pickled(store: tuple[str, MemoryStore]) -> None:
    facade = federator.testing.memory.MemoryNamespace.for_source("lake", MemorySettings(store=store[0]))
    with pytest.raises(lance.NamespaceNotFoundError, match=r"^lake: "):
        facade.describe_namespace(lance.DescribeNamespaceRequest(id=["none"]))
    with pytest.raises(TypeError, match="lake"):
        pickle.dumps(facade)


def test_an_id_tells_secrets_apart_and_shows_none() -> None:
    one, other, again = (
        lance.connect(PATH, {"root": "s3://lake", "storage.secret_access_key": secret}).namespace_id()
        for secret in ("hush-1", "hush-2", "hush-1")
    )
    assert one != other
    assert one == again
    assert "hush" not in one + repr(lance.connect(PATH, {"storage.password": "hush"}))
    assert "s3://lake" in one


def test_every_error_becomes_its_official_class(store: tuple[str, MemoryStore]) -> None:
    store[1].add_namespace(("sales",))
    facade = lance.connect(PATH, {"store": store[0]})
    for kind in CatalogError.__subclasses__():
        store[1].faults(f"fail:sales={kind.code}")
        with pytest.raises(lance.LanceNamespaceError) as caught:
            facade.list_tables(lance.ListTablesRequest(id=["sales"]))
        assert caught.value.code == kind.code
        assert isinstance(caught.value.__cause__, kind)


def test_overwrite_replaces_an_empty_namespace(store: tuple[str, MemoryStore]) -> None:
    facade = lance.connect(PATH, {"store": store[0]})
    facade.create_namespace(lance.CreateNamespaceRequest(id=["sales"], properties={"a": "1"}))
    created = facade.create_namespace(lance.CreateNamespaceRequest(id=["sales"], properties={"b": "2"}, mode="Overwrite"))
    assert created.properties == {"b": "2"}
    kept = facade.create_namespace(lance.CreateNamespaceRequest(id=["sales"], properties={"c": "3"}, mode="ExistOk"))
    assert kept.properties == {"b": "2"}


def test_register_replaces_a_declaration_on_request(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("sales", "orders"), "s3://b/old.lance")
    facade = lance.connect(PATH, {"store": store[0]})
    request = lance.RegisterTableRequest(id=["sales", "orders"], location="s3://b/new.lance", mode="OVERWRITE")
    assert facade.register_table(request).location == "s3://b/new.lance"
    plain = facade_class(PLAIN, "Plain")(store=store[0])
    with pytest.raises(lance.UnsupportedOperationError):
        plain.register_table(request)
    with pytest.raises(lance.InvalidInputError, match="is not a location"):
        facade.declare_table(lance.DeclareTableRequest(id=["sales", "x"], location="relative/x.lance"))


def test_every_table_below_a_namespace(store: tuple[str, MemoryStore]) -> None:
    for path in (("a", "t1"), ("a", "b$", "t2"), ("c", "d", "e", "t3")):
        store[1].add_table(path)
    store[1].add_table(("c", "hidden"), kind=Kind.MANAGED_TABLE)
    facade = lance.connect(PATH, {"store": store[0]})
    assert facade.list_all_tables(lance.ListTablesRequest()).tables == ["a$b%24$t2", "a$t1", "c$d$e$t3"]
    assert facade.list_all_tables(lance.ListTablesRequest(id=["a"], limit=1)).tables == ["a$b%24$t2"]


def test_cascade_includes_all_levels(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("a", "b", "t1"))
    store[1].add_table(("a", "b", "c", "t2"))
    store[1].add_table(("other", "t3"))
    facade = lance.connect(PATH, {"store": store[0]})
    facade.drop_namespace(lance.DropNamespaceRequest(id=["a"], behavior="Cascade"))
    assert facade.list_namespaces(lance.ListNamespacesRequest()).namespaces == ["other"]
    with store[1].locked_state() as state:
        assert list(state["tables"]) == ["other$t3"]


@pytest.mark.parametrize("hidden", ["a view", "a managed table"])
def test_a_refused_cascade_leaves_everything_declared(store: tuple[str, MemoryStore], hidden: str) -> None:
    store[1].add_table(("a", "b", "t1"), "s3://b/t1.lance", properties={"team": "x"})
    store[1].add_namespace(("a", "c"), properties={"k": "v"})
    if hidden == "a view":
        store[1].add_foreign(("a", "view"))
    else:
        store[1].add_table(("a", "managed"), kind=Kind.MANAGED_TABLE)
    facade = lance.connect(PATH, {"store": store[0]})
    with pytest.raises(lance.NamespaceNotEmptyError):
        facade.drop_namespace(lance.DropNamespaceRequest(id=["a"], behavior="Cascade"))
    described = facade.describe_table(lance.DescribeTableRequest(id=["a", "b", "t1"]))
    assert (described.location, described.properties) == ("s3://b/t1.lance", {"team": "x", "table_type": "lance"})
    assert facade.describe_namespace(lance.DescribeNamespaceRequest(id=["a", "c"])).properties == {"k": "v"}


def test_a_stopped_cascade_names_what_it_dropped_and_declares_nothing_again(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("a", "t1"), "s3://b/t1.lance")
    store[1].add_namespace(("a", "b"))
    store[1].faults("refuse:a=17")
    facade = lance.connect(PATH, {"store": store[0]})
    with pytest.raises(lance.ServiceUnavailableError, match=r"dropped before that: a\$t1 at s3://b/t1.lance, a\$b\n"):
        facade.drop_namespace(lance.DropNamespaceRequest(id=["a"], behavior="Cascade"))
    with store[1].locked_state() as state:
        assert (list(state["tables"]), list(state["namespaces"])) == ([], ["a"])


def test_the_storage_shows_which_tables_are_only_declared(store: tuple[str, MemoryStore], tmp_path: Path) -> None:
    written, declared = str(tmp_path / "t1.lance"), str(tmp_path / "t2.lance")
    dataset.write_dataset(pa.table({"a": [1]}), written)
    store[1].add_table(("a", "t1"), written)
    store[1].add_table(("a", "t2"), declared)
    facade = lance.connect(PATH, {"store": store[0]})
    assert facade.list_tables(lance.ListTablesRequest(id=["a"], include_declared=True)).tables == ["t1", "t2"]
    assert facade.list_tables(lance.ListTablesRequest(id=["a"], include_declared=False)).tables == ["t1"]
    for name, is_only_declared in (("t1", False), ("t2", True)):
        described = facade.describe_table(lance.DescribeTableRequest(id=["a", name], check_declared=True))
        assert (described.is_only_declared, described.managed_versioning) == (is_only_declared, False)
    assert facade.describe_table(lance.DescribeTableRequest(id=["a", "t1"])).is_only_declared is None
    declared_now = facade.declare_table(lance.DeclareTableRequest(id=["a", "t3"], location=str(tmp_path / "t3.lance")))
    assert declared_now.managed_versioning is False
    for field in ({"version": 3}, {"tag": "v1"}, {"branch": "main"}):
        with pytest.raises(lance.UnsupportedOperationError):
            facade.describe_table(lance.DescribeTableRequest(id=["a", "t1"], **field))


def test_levels_without_tables_or_namespaces_list_as_empty_once_seen(store: tuple[str, MemoryStore]) -> None:
    store[1].add_namespace(("a", "b", "c"))
    facade = lance.connect(PATH, {"store": store[0]})
    assert facade.list_tables(lance.ListTablesRequest(id=[])).tables == []
    assert facade.list_namespaces(lance.ListNamespacesRequest(id=["a", "b", "c"])).namespaces == []
    with pytest.raises(lance.NamespaceNotFoundError):
        facade.list_namespaces(lance.ListNamespacesRequest(id=["a", "b", "x"]))


def test_a_hanging_operation_does_not_hold_the_others(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("slow", "t"))
    store[1].add_table(("fast", "t"))
    store[1].faults("hang:slow=1")
    facade = lance.connect(PATH, {"store": store[0]})
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(facade.list_tables, lance.ListTablesRequest(id=["slow"]))
        assert facade.list_tables(lance.ListTablesRequest(id=["fast"])).tables == ["t"]
        assert not slow.done()
        assert slow.result().tables == ["t"]


def test_a_pool_lends_each_catalog_to_one_and_drops_dead_ones() -> None:
    opened: list[Any] = []

    class Counting(federator.testing.memory.MemoryCatalog):
        closed = False

        def close(self) -> None:
            self.closed = True

    def connect() -> Catalog:
        opened.append(Counting("s", MemorySettings(), CONNECTOR.capabilities))
        return opened[-1]

    pool = CatalogPool(connect, keep=1)
    with pool.borrow() as one, pool.borrow() as other:
        assert one is not other
    assert [catalog.closed for catalog in opened] == [True, False] or [c.closed for c in opened] == [False, True]
    for error, again in ((Throttled("busy"), True), (ServiceUnavailable("dead"), False), (KeyboardInterrupt(), False)):
        with pytest.raises(type(error)), pool.borrow() as lent:
            raise error
        assert lent.closed is not again  # type: ignore[attr-defined]
    with pool.borrow():
        pass
    pool.close()
    assert all(catalog.closed for catalog in opened)


def test_a_thread_safe_catalog_is_lent_to_all_and_opening_one_waits_for_no_other() -> None:
    opened: list[Any] = []
    both = Barrier(2)

    class Shared(federator.testing.memory.MemoryCatalog):
        thread_safe = True
        closed = False

        def close(self) -> None:
            self.closed = True

    def connect() -> Catalog:
        catalog = Shared("s", MemorySettings(), CONNECTOR.capabilities)
        opened.append(catalog)
        # Both threads are here at once: neither waits for the catalog of the other.
        both.wait(60)
        return catalog

    pool = CatalogPool(connect)

    def borrow(_: int) -> Catalog:
        with pool.borrow() as lent:
            return lent

    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(borrow, range(2))
    assert one is other
    assert sorted(catalog.closed for catalog in opened) == [False, True]
    with pool.borrow() as lent:
        assert lent is one
    pool.close()
    assert all(catalog.closed for catalog in opened)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Catalog:
        raise ModuleNotFoundError("No module named 'thrift'", name="thrift")

    monkeypatch.setattr(type(CONNECTOR), "open", missing)
    monkeypatch.setattr(type(CONNECTOR), "extra", "hive")
    with pytest.raises(lance.InvalidInputError, match=r"thrift(.|\n)*lance-federator\[hive\]"):
        lance.connect(PATH, {}).list_namespaces(lance.ListNamespacesRequest())
