"""Rows of a dropped table never come back in a new one of its name: lance-spark's DROP TABLE and CREATE TABLE, in every catalog.

lance-spark's CREATE asks whether the table exists, declares it, describes it and writes to its location; DROP asks whether it exists
and deregisters it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.testing.contract import unique_name
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore
from tests.fixtures.polaris import PolarisServer
from tests.fixtures.unity import UnityCatalogOfTest
from tests.unit.api.lance.conftest import served

pytestmark = pytest.mark.timeout(120)

OLD = pa.table({"id": [1, 2, 3], "dropped": ["a", "b", "c"]})
NEW = pa.table({"word": ["x"]})


@dataclass
class World:
    """One catalog: how it is configured as a source, an empty namespace in it, and the options that open its storage."""

    impl: str
    properties: dict[str, str]
    namespace: tuple[str, ...]
    storage: Mapping[str, str] = field(default_factory=dict)

    def connect(self) -> ln.LanceNamespace:
        name = {"hive2": "Hive2", "hive3": "Hive3"}.get(self.impl, self.impl.capitalize())
        return ln.connect(f"federator_connectors.{self.impl}.{name}Namespace", self.properties)

    def source(self, directory: FilePath) -> dict[str, str]:
        """As a section of the configuration file, which takes secrets from files only."""
        found = {"impl": self.impl, **self.properties}
        for key in found:
            if key.endswith(("secret", "token", "access_key", "access_key_id")):
                (directory / key).write_text(found[key])
                found[key] = f"file:{directory / key}"
        return found


@pytest.fixture(params=["hive2", "hive3", "hive4", "glue", "unity", "polaris", "manifest"])
def world(request: pytest.FixtureRequest, tmp_path: FilePath) -> World:
    kind = request.param
    if kind.startswith("hive"):
        levels, above = (1, ()) if kind == "hive2" else (2, ("hive",))
        metastore = Metastore(request.getfixturevalue(f"{kind}_uri"), levels, above, tmp_path, int(kind[-1]))
        return World(f"hive{levels + 1}", metastore.properties, metastore.database())
    if kind == "glue":
        account: GlueAccount = request.getfixturevalue("glue_account")
        storage: dict[str, str] = request.getfixturevalue("s3_storage_options")
        account.client().create_database(DatabaseInput={"Name": "sales"})
        options = {f"storage.{key}": value for key, value in storage.items()}
        root = f"s3://lance-data/{unique_name('root')}"
        return World("glue", {**account.properties, **options, "root": root}, (account.account_id, "sales"), storage)
    root = tmp_path.as_uri()
    if kind == "unity":
        unity: UnityCatalogOfTest = request.getfixturevalue("unity_catalog")
        return World("unity", {**unity.properties, "root": root}, unity.schema())
    if kind == "polaris":
        polaris: PolarisServer = request.getfixturevalue("polaris_server")
        catalog: str = request.getfixturevalue("polaris_file_catalog")
        return World("polaris", {**polaris.properties, "root": root}, polaris.namespace((catalog, unique_name("ns"))))
    made = World("dir", {"root": str(tmp_path), "manifest_enabled": "true"}, ("sales",))
    made.connect().create_namespace(ln.CreateNamespaceRequest(id=["sales"]))
    return made


@pytest.fixture(params=["class", "v1"])
def client(request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The world's namespace and the path to it: by the connector's own class, and through the service."""
    if request.param == "class":
        yield world.connect(), [*world.namespace]
        return
    directory = tmp_path_factory.mktemp("served")
    with served(directory, {"shop": world.source(directory)}, bare=True) as service:
        service.crawl("shop")
        yield ln.connect("rest", {"uri": service.url}), ["shop", *world.namespace]


def create(facade: ln.LanceNamespace, path: list[str], rows: pa.Table, storage: Mapping[str, str]) -> str:
    with pytest.raises(ln.TableNotFoundError):
        facade.table_exists(ln.TableExistsRequest(id=path))
    declared = facade.declare_table(ln.DeclareTableRequest(id=path))
    described = facade.describe_table(ln.DescribeTableRequest(id=path))
    assert described.location == declared.location
    lance.write_dataset(rows, str(described.location), storage_options=dict(storage) or None, mode="create")
    return str(described.location)


def drop(facade: ln.LanceNamespace, path: list[str]) -> None:
    facade.table_exists(ln.TableExistsRequest(id=path))
    facade.deregister_table(ln.DeregisterTableRequest(id=path))


def opened(location: str, storage: Mapping[str, str]) -> pa.Table:
    return lance.dataset(location, storage_options=dict(storage) or None).to_table()


def test_a_new_table_of_a_dropped_name_has_its_own_rows_only(client: tuple[ln.LanceNamespace, list[str]], world: World) -> None:
    facade, namespace = client
    path = [*namespace, "orders"]
    before = create(facade, path, OLD, world.storage)
    drop(facade, path)
    after = create(facade, path, NEW, world.storage)
    assert after != before
    described = facade.describe_table(ln.DescribeTableRequest(id=path))
    assert opened(str(described.location), world.storage).equals(NEW)
    assert opened(before, world.storage).equals(OLD), "data is never touched"
    assert facade.list_tables(ln.ListTablesRequest(id=namespace)).tables == ["orders"]
    # And once more, since the first one's location stays taken.
    drop(facade, path)
    assert create(facade, path, OLD, world.storage) not in (before, after)


def test_a_location_that_was_declared_and_never_written_is_used_again(world: World) -> None:
    facade = world.connect()
    path = [*world.namespace, "orders"]
    declared = facade.declare_table(ln.DeclareTableRequest(id=path))
    with pytest.raises(ln.TableAlreadyExistsError):
        facade.declare_table(ln.DeclareTableRequest(id=path))
    drop(facade, path)
    again = facade.declare_table(ln.DeclareTableRequest(id=path))
    assert again.location == declared.location or world.impl == "dir", "pylance chooses another one each time"
    lance.write_dataset(NEW, str(again.location), storage_options=dict(world.storage) or None, mode="create")
    with pytest.raises(ln.TableAlreadyExistsError):
        facade.declare_table(ln.DeclareTableRequest(id=path))
    assert facade.describe_table(ln.DescribeTableRequest(id=path)).location == again.location


@pytest.mark.parametrize("through", ["class", "v1"])
@pytest.mark.parametrize("manifest", ["false", "true"])
def test_a_directorys_own_name_is_its_location_and_stays_taken(
    tmp_path: FilePath, tmp_path_factory: pytest.TempPathFactory, through: str, manifest: str
) -> None:
    world = World("dir", {"root": str(tmp_path), "manifest_enabled": manifest}, ())

    def check(facade: ln.LanceNamespace, above: list[str], written: Callable[[], str]) -> None:
        path = [*above, "orders"]
        create(facade, path, OLD, {})
        drop(facade, path)
        with pytest.raises(ln.TableAlreadyExistsError):
            facade.declare_table(ln.DeclareTableRequest(id=path))
        with pytest.raises(ln.TableNotFoundError):
            facade.table_exists(ln.TableExistsRequest(id=path))
        assert facade.list_tables(ln.ListTablesRequest(id=above)).tables == []
        assert written() == "dropped"
        # What was declared and never written is used again, and a retry is a conflict.
        other = [*above, "other"]
        facade.declare_table(ln.DeclareTableRequest(id=other))
        drop(facade, other)
        create(facade, other, NEW, {})
        with pytest.raises(ln.TableAlreadyExistsError):
            facade.declare_table(ln.DeclareTableRequest(id=other))
        # Whoever says the location wants the old rows.
        back = str(tmp_path / "orders.lance")
        facade.register_table(ln.RegisterTableRequest(id=path, location=back))
        assert opened(str(facade.describe_table(ln.DescribeTableRequest(id=path)).location), {}).equals(OLD)

    def written() -> str:
        return "dropped" if lance.dataset(str(tmp_path / "orders.lance")).to_table().equals(OLD) else "changed"

    if through == "class":
        check(world.connect(), [], written)
        return
    with served(tmp_path_factory.mktemp("served"), {"shop": {"impl": "dir", **world.properties}}, bare=True) as service:
        check(ln.connect("rest", {"uri": service.url}), ["shop"], written)
        for mode in ("Create", "ExistOk", "Overwrite"):
            drop(ln.connect("rest", {"uri": service.url}), ["shop", "orders"]) if mode == "Create" else None
            body = pa.BufferOutputStream()
            with pa.ipc.new_stream(body, NEW.schema) as stream:
                stream.write_table(NEW)
            response = service.ask(
                "POST", "/v1/table/shop$orders/create", params={"mode": mode}, data=body.getvalue().to_pybytes(),
            )  # fmt: skip
            assert (response.status_code, response.json()["code"]) == (409, 5), response.text
        assert written() == "dropped"


def test_create_table_after_a_drop_writes_beside_the_old_rows(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    """CreateTable of ``/v1``, and pylance's own ``write_dataset``, which declares and then writes."""
    directory = tmp_path_factory.mktemp("served")
    with served(directory, {"shop": world.source(directory)}, bare=True) as service:
        service.crawl("shop")
        facade: Any = ln.connect("rest", {"uri": service.url})
        path = ["shop", *world.namespace, "orders"]
        for rows in (OLD, NEW):
            body = pa.BufferOutputStream()
            with pa.ipc.new_stream(body, rows.schema) as stream:
                stream.write_table(rows)
            created = facade.create_table(ln.CreateTableRequest(id=path, mode="Create"), body.getvalue().to_pybytes())
            assert opened(str(created.location), world.storage).equals(rows)
            drop(facade, path)
    own = world.connect()
    path = [*world.namespace, "orders"]
    options = dict(world.storage) or None
    for rows in (OLD, NEW):
        lance.write_dataset(rows, namespace_client=own, table_id=path, storage_options=options, mode="create")
        described = own.describe_table(ln.DescribeTableRequest(id=path))
        assert opened(str(described.location), world.storage).equals(rows)
        drop(own, path)
