"""The namespace face where it is more than its catalog: construction, identity, errors, CASCADE, threads."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lance_namespace as lance
import pytest

import federator.testing.memory
from federator.connector import Catalog, CatalogError, ServiceUnavailable, Throttled
from federator.connector.pool import CatalogPool
from federator.model import Kind
from federator.testing import CONNECTOR, PLAIN, MemorySettings, MemoryStore, memory_store
from federator.testing.contract import fresh

PATH = "federator.testing.memory.MemoryNamespace"


@pytest.fixture
def store() -> tuple[str, MemoryStore]:
    name = fresh("store")
    return name, memory_store(name)


def test_connect_takes_keys_bare_or_prefixed(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("sales", "orders"), "s3://b/orders.lance")
    for key in ("store", "memory.store"):
        face = lance.connect(PATH, {key: store[0]})
        assert face.list_tables(lance.ListTablesRequest(id=["sales"])).tables == ["orders"]


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


def test_the_face_of_a_configured_source_stays_here(store: tuple[str, MemoryStore]) -> None:
    face = federator.testing.memory.MemoryNamespace.of("lake", MemorySettings(store=store[0]))
    with pytest.raises(lance.NamespaceNotFoundError, match=r"^lake: "):
        face.describe_namespace(lance.DescribeNamespaceRequest(id=["none"]))
    with pytest.raises(TypeError, match="lake"):
        pickle.dumps(face)


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
    face = lance.connect(PATH, {"store": store[0]})
    for kind in CatalogError.__subclasses__():
        store[1].faults(f"fail:sales={kind.code}")
        with pytest.raises(lance.LanceNamespaceError) as caught:
            face.list_tables(lance.ListTablesRequest(id=["sales"]))
        assert caught.value.code == kind.code
        assert isinstance(caught.value.__cause__, kind)


def test_overwrite_replaces_an_empty_namespace(store: tuple[str, MemoryStore]) -> None:
    face = lance.connect(PATH, {"store": store[0]})
    face.create_namespace(lance.CreateNamespaceRequest(id=["sales"], properties={"a": "1"}))
    made = face.create_namespace(lance.CreateNamespaceRequest(id=["sales"], properties={"b": "2"}, mode="Overwrite"))
    assert made.properties == {"b": "2"}
    kept = face.create_namespace(lance.CreateNamespaceRequest(id=["sales"], properties={"c": "3"}, mode="ExistOk"))
    assert kept.properties == {"b": "2"}


def test_register_replaces_a_declaration_on_request(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("sales", "orders"), "s3://b/old.lance")
    face = lance.connect(PATH, {"store": store[0]})
    request = lance.RegisterTableRequest(id=["sales", "orders"], location="s3://b/new.lance", mode="OVERWRITE")
    assert face.register_table(request).location == "s3://b/new.lance"
    plain = federator.connector.namespace.namespace_class(PLAIN, "Plain")(store=store[0])
    with pytest.raises(lance.UnsupportedOperationError):
        plain.register_table(request)
    with pytest.raises(lance.InvalidInputError, match="no location"):
        face.declare_table(lance.DeclareTableRequest(id=["sales", "x"], location="relative/x.lance"))


def test_every_table_below_a_namespace(store: tuple[str, MemoryStore]) -> None:
    for path in (("a", "t1"), ("a", "b$", "t2"), ("c", "d", "e", "t3")):
        store[1].add_table(path)
    store[1].add_table(("c", "hidden"), kind=Kind.MANAGED_TABLE)
    face = lance.connect(PATH, {"store": store[0]})
    assert face.list_all_tables(lance.ListTablesRequest()).tables == ["a$b%24$t2", "a$t1", "c$d$e$t3"]
    assert face.list_all_tables(lance.ListTablesRequest(id=["a"], limit=1)).tables == ["a$b%24$t2"]


def test_cascade_goes_down_to_the_last_level(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("a", "b", "t1"))
    store[1].add_table(("a", "b", "c", "t2"))
    store[1].add_table(("other", "t3"))
    face = lance.connect(PATH, {"store": store[0]})
    face.drop_namespace(lance.DropNamespaceRequest(id=["a"], behavior="Cascade"))
    assert face.list_namespaces(lance.ListNamespacesRequest()).namespaces == ["other"]
    with store[1].state() as state:
        assert list(state["tables"]) == ["other$t3"]


@pytest.mark.parametrize("hidden", ["a view", "a managed table"])
def test_a_refused_cascade_leaves_everything_declared(store: tuple[str, MemoryStore], hidden: str) -> None:
    store[1].add_table(("a", "b", "t1"), "s3://b/t1.lance", properties={"team": "x"})
    store[1].add_namespace(("a", "c"), properties={"k": "v"})
    if hidden == "a view":
        store[1].add_foreign(("a", "view"))
    else:
        store[1].add_table(("a", "managed"), kind=Kind.MANAGED_TABLE)
    face = lance.connect(PATH, {"store": store[0]})
    with pytest.raises(lance.NamespaceNotEmptyError):
        face.drop_namespace(lance.DropNamespaceRequest(id=["a"], behavior="Cascade"))
    described = face.describe_table(lance.DescribeTableRequest(id=["a", "b", "t1"]))
    assert (described.location, described.properties) == ("s3://b/t1.lance", {"team": "x"})
    assert face.describe_namespace(lance.DescribeNamespaceRequest(id=["a", "c"])).properties == {"k": "v"}


def test_a_stopped_cascade_names_what_it_dropped_and_declares_nothing_again(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("a", "t1"), "s3://b/t1.lance")
    store[1].add_namespace(("a", "b"))
    store[1].faults("refuse:a=17")
    face = lance.connect(PATH, {"store": store[0]})
    with pytest.raises(lance.ServiceUnavailableError, match=r"dropped before that: a\$t1 at s3://b/t1.lance, a\$b\n"):
        face.drop_namespace(lance.DropNamespaceRequest(id=["a"], behavior="Cascade"))
    with store[1].state() as state:
        assert (list(state["tables"]), list(state["namespaces"])) == ([], ["a"])


def test_include_declared_needs_a_catalog_that_sees_storage(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("a", "t1"))
    face = lance.connect(PATH, {"store": store[0]})
    assert face.list_tables(lance.ListTablesRequest(id=["a"], include_declared=True)).tables == ["t1"]
    with pytest.raises(lance.UnsupportedOperationError):
        face.list_tables(lance.ListTablesRequest(id=["a"], include_declared=False))
    request = lance.DescribeTableRequest(id=["a", "t1"], check_declared=True)
    assert face.describe_table(request).is_only_declared is None
    for field in ({"version": 3}, {"tag": "v1"}, {"branch": "main"}):
        with pytest.raises(lance.UnsupportedOperationError):
            face.describe_table(lance.DescribeTableRequest(id=["a", "t1"], **field))


def test_levels_without_tables_or_namespaces_list_as_empty_once_seen(store: tuple[str, MemoryStore]) -> None:
    store[1].add_namespace(("a", "b", "c"))
    face = lance.connect(PATH, {"store": store[0]})
    assert face.list_tables(lance.ListTablesRequest(id=[])).tables == []
    assert face.list_namespaces(lance.ListNamespacesRequest(id=["a", "b", "c"])).namespaces == []
    with pytest.raises(lance.NamespaceNotFoundError):
        face.list_namespaces(lance.ListNamespacesRequest(id=["a", "b", "x"]))


def test_a_hanging_operation_does_not_hold_the_others(store: tuple[str, MemoryStore]) -> None:
    store[1].add_table(("slow", "t"))
    store[1].add_table(("fast", "t"))
    store[1].faults("hang:slow=1")
    face = lance.connect(PATH, {"store": store[0]})
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(face.list_tables, lance.ListTablesRequest(id=["slow"]))
        assert face.list_tables(lance.ListTablesRequest(id=["fast"])).tables == ["t"]
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
    with pool.lend() as one, pool.lend() as other:
        assert one is not other
    assert [catalog.closed for catalog in opened] == [True, False] or [c.closed for c in opened] == [False, True]
    for error, again in ((Throttled("busy"), True), (ServiceUnavailable("dead"), False), (KeyboardInterrupt(), False)):
        with pytest.raises(type(error)), pool.lend() as lent:
            raise error
        assert lent.closed is not again  # type: ignore[attr-defined]
    with pool.lend():
        pass
    pool.close()
    assert all(catalog.closed for catalog in opened)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Catalog:
        raise ModuleNotFoundError("No module named 'thrift'", name="thrift")

    monkeypatch.setattr(type(CONNECTOR), "open", missing)
    monkeypatch.setattr(type(CONNECTOR), "extra", "hive")
    with pytest.raises(lance.InvalidInputError, match=r"thrift(.|\n)*lance-federator\[hive\]"):
        lance.connect(PATH, {}).list_namespaces(lance.ListNamespacesRequest())
