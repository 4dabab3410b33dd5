"""All stages on real servers: from one catalog through Spark and the index into another."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from federator.demo.servers.process import Server
from federator.model import NamespaceRecord, TableRecord
from federator.registry import open_catalog
from federator.service import Federator
from federator.settings import Settings, load_settings
from federator.store import migrations, open_index
from federator.views import tree
from tests.fixtures.glue import GlueAccount
from tests.fixtures.iceberg import WAREHOUSE, IcebergServer

DATABASE = "sales"


def hive(impl: str, uri: str, directory: Path) -> str:
    return f'impl = "{impl}"\n{impl}.uri = "{uri}"\n{impl}.client.timeout = 20\n{impl}.root = "file:{directory}"\n'


def glue(account: GlueAccount, directory: Path) -> str:
    lines = ['impl = "glue"']
    for key, value in account.properties.items():
        if key in ("access_key_id", "secret_access_key", "session_token"):
            secret = directory / key
            secret.write_text(value, encoding="utf-8")
            value = f"file:{secret}"
        lines.append(f'glue.{key} = "{value}"')
    return "\n".join(lines) + "\n"


def iceberg(server: IcebergServer) -> str:
    return "".join(f'{key} = "{value}"\n' for key, value in {"impl": "iceberg", **server.properties}.items())


def configured(directory: Path, origin: str, target: str, mirror: str) -> Settings:
    """A configuration of two sources and one mirror between them, in a directory of its own."""
    directory.mkdir(exist_ok=True)
    file = directory / "federator.toml"
    file.write_text(
        f'[instance]\nid = "test"\n[spark]\nmaster = "local[4,4]"\n[sources.origin]\n{origin}[sources.target]\n{target}'
        f'[mirrors.copy]\nfrom = "origin"\nto = "target"\nmin_miss_interval = "0s"\n{mirror}',
        encoding="utf-8",
    )
    return load_settings(file)


def declare(settings: Settings, source: str, namespace: tuple[str, ...], names: list[str], directory: Path) -> None:
    """Real Lance tables, declared in a new namespace of a source."""
    with open_catalog(settings.source(source).spec) as catalog:
        namespace = catalog.canonical_path((*namespace, "any"))[:-1]
        catalog.create_namespace(NamespaceRecord(source, namespace))
        for number, name in enumerate(names):
            location = directory / f"{name}.lance"
            lance.write_dataset(pa.table({"id": list(range(number + 1))}), str(location))
            catalog.declare_table(TableRecord(source, (*namespace, name), str(location), {"team": "data"}))


def declared_at(settings: Settings, namespace: tuple[str, ...]) -> dict[str, TableRecord]:
    with open_catalog(settings.source("target").spec) as catalog:
        path = catalog.canonical_path((*namespace, "any"))[:-1]
        return {name: catalog.describe_table((*path, name)) for name in catalog.list_tables(path)}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


def assert_mirrored(settings: Settings, source_directory: Path, target_namespace: tuple[str, ...]) -> None:
    """One sync declares the two tables with our mark, the next finds nothing to do."""
    federator = Federator.open(settings)
    first = federator.sync()
    assert (first.state, first.errors) == ("ok", {})
    declared = declared_at(settings, target_namespace)
    assert sorted(declared) == ["customers", "orders"]
    for name, record in declared.items():
        assert record.canonical == f"file://{source_directory}/{name}.lance"
        assert record.properties["team"] == "data"
        assert record.properties["federator.instance"] == "test"
        assert record.properties["federator.path"] == record.key
    second = federator.sync()
    assert (second.state, second.change_count) == ("ok", 0)
    view = tree.get_table(federator.index, ("target", *next(iter(declared.values())).path))
    assert view.dataset is not None
    assert view.dataset.state == "valid"
    assert len(view.also_declared) == 1


def test_hive_2_into_glue(hive2_uri: str, glue_account: GlueAccount, directory: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'include = ["{database}$*"]\n'
    settings = configured(directory, hive("hive2", hive2_uri, directory), glue(glue_account, directory), mirror)
    declare(settings, "origin", (database,), ["orders", "customers"], directory)
    assert_mirrored(settings, directory, (database,))


def test_a_copy_without_credentials_for_the_storage_is_not_what_a_valid_dataset_is_opened_through(
    glue_account: GlueAccount, s3_storage_options: dict[str, str], directory: Path
) -> None:
    """A directory on S3 with credentials into Glue, whose source has none for S3. The copy is found by the second crawl."""
    root = f"s3://lance-data/{secrets.token_hex(4)}"
    lance.write_dataset(pa.table({"id": [1]}), f"{root}/orders.lance", storage_options=s3_storage_options)
    options = dict(s3_storage_options)
    for key in ("aws_access_key_id", "aws_secret_access_key"):
        stored = directory / key
        stored.write_text(options[key], encoding="utf-8")
        options[key] = f"file:{stored}"
    origin = f'impl = "dir"\ndir.root = "{root}"\n' + "".join(
        f'dir.storage.{key} = "{value}"\n' for key, value in options.items()
    )
    mirror = f'include = ["*"]\nnamespace = "{DATABASE}"\n'
    endpoint = f'glue.storage.endpoint = "{options["aws_endpoint"]}"\nglue.storage.allow_http = "true"\n'
    settings = configured(directory, origin, glue(glue_account, directory) + endpoint, mirror)
    federator = Federator.open(settings)
    states = []
    for _ in range(2):
        assert federator.sync().errors == {}
        view = tree.get_table(federator.index, ("origin", "orders"))
        assert view.dataset is not None
        assert len(view.also_declared) == 1
        states.append((view.dataset.state, view.dataset.checked_through))
    # moto's S3 also answers requests without credentials, so that the second state tells by whom it was read.
    assert states == [("valid", "origin")] * 2


@pytest.mark.parametrize("on_missing", ["report", "recreate"])
def test_a_copy_that_became_an_iceberg_table_is_not_reported_as_removed(
    hive2_uri: str, glue_account: GlueAccount, directory: Path, on_missing: str
) -> None:
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'include = ["{database}$*"]\non_missing = "{on_missing}"\n'
    settings = configured(directory, hive("hive2", hive2_uri, directory), glue(glue_account, directory), mirror)
    declare(settings, "origin", (database,), ["orders"], directory)
    federator = Federator.open(settings)
    assert federator.sync().change_count == 2
    client = glue_account.client()
    native = client.get_table(DatabaseName=database, Name="orders")["Table"]
    iceberg = {**native["Parameters"], "table_type": "ICEBERG"}
    kept = {"Name", "StorageDescriptor", "TableType"}
    table = {**{key: value for key, value in native.items() if key in kept}, "Parameters": iceberg}
    client.update_table(DatabaseName=database, TableInput=table)
    result = federator.sync()
    (refusal,) = result.plans[0].refusals
    assert (result.change_count, refusal.reason.value) == (0, "name_taken")
    assert "is not a Lance table" in refusal.detail or "is no Lance table" in refusal.detail
    assert client.get_table(DatabaseName=database, Name="orders")["Table"]["Parameters"] == iceberg


def test_glue_into_hive_3(hive3_uri: str, glue_account: GlueAccount, directory: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'namespace = "hive$from_glue_{{database}}"\ninclude = ["*${database}$*"]\n'
    settings = configured(directory, glue(glue_account, directory), hive("hive3", hive3_uri, directory), mirror)
    declare(settings, "origin", (database,), ["orders", "customers"], directory)
    assert_mirrored(settings, directory, ("hive", f"from_glue_{database}"))


def test_glue_into_hive_2(hive2_uri: str, glue_account: GlueAccount, directory: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'namespace = "{{database}}"\ninclude = ["*${database}$*"]\n'
    settings = configured(directory, glue(glue_account, directory), hive("hive2", hive2_uri, directory), mirror)
    declare(settings, "origin", (database,), ["orders", "customers"], directory)
    assert_mirrored(settings, directory, (database,))


def test_hive_2_into_hive_3(hive2_uri: str, hive3_uri: str, directory: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'namespace = "hive${{database}}"\ninclude = ["{database}$*"]\n'
    settings = configured(directory, hive("hive2", hive2_uri, directory), hive("hive3", hive3_uri, directory), mirror)
    declare(settings, "origin", (database,), ["orders", "customers"], directory)
    assert_mirrored(settings, directory, ("hive", database))


def test_a_stopped_metastore_deregisters_nothing(hive2_throwaway: Server, glue_account: GlueAccount, directory: Path) -> None:
    settings = configured(directory, hive("hive2", hive2_throwaway.uri, directory), glue(glue_account, directory), "")
    declare(settings, "origin", (DATABASE,), ["orders", "customers"], directory)
    federator = Federator.open(settings)
    assert federator.sync().state == "ok"
    hive2_throwaway.stop()
    for _ in range(3):
        result = federator.sync()
        assert result.state == "partial"
        assert result.sources["origin"].state == "failed"
        assert result.sources["target"].state == "ok"
        assert result.change_count == 0
    assert sorted(declared_at(settings, (DATABASE,))) == ["customers", "orders"]
    assert [node.name for node in tree.list_children(federator.index, ("origin", DATABASE)).nodes] == ["customers", "orders"]


def test_a_narrowed_include_deregisters_nothing(hive2_uri: str, glue_account: GlueAccount, directory: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    both = (hive("hive2", hive2_uri, directory), glue(glue_account, directory))
    wide = configured(directory, *both, f'include = ["{database}$*"]\n')
    declare(wide, "origin", (database,), ["orders", "customers"], directory)
    assert Federator.open(wide).sync().state == "ok"
    narrow = Federator.open(configured(directory, *both, f'include = ["{database}$orders"]\n'))
    for _ in range(3):
        result = narrow.sync()
        assert result.change_count == 0
        assert [refusal.reason.value for refusal in result.plans[0].refusals] == ["unselected"]
    assert sorted(declared_at(wide, (database,))) == ["customers", "orders"]


def test_a_dropped_table_is_deregistered_after_two_misses(hive2_uri: str, glue_account: GlueAccount, directory: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'include = ["{database}$*"]\n'
    settings = configured(directory, hive("hive2", hive2_uri, directory), glue(glue_account, directory), mirror)
    declare(settings, "origin", (database,), ["orders", "customers"], directory)
    federator = Federator.open(settings)
    federator.sync()
    with open_catalog(settings.source("origin").spec) as origin:
        origin.deregister_table(origin.describe_table((database, "orders")))
    first = federator.sync()
    assert [refusal.reason.value for refusal in first.plans[0].refusals] == ["misses"]
    assert sorted(declared_at(settings, (database,))) == ["customers", "orders"]
    second = federator.sync()
    assert [outcome.state.value for outcome in second.outcomes] == ["done"]
    assert sorted(declared_at(settings, (database,))) == ["customers"]
    assert (directory / "orders.lance").is_dir()


def test_the_same_sources_give_the_same_tree_from_sqlite_and_postgresql(
    hive2_uri: str, glue_account: GlueAccount, postgres_database: Callable[[], str], directory: Path
) -> None:
    database = f"db_{secrets.token_hex(4)}"
    settings = configured(directory, hive("hive2", hive2_uri, directory), glue(glue_account, directory), "")
    declare(settings, "origin", (database,), ["orders", "customers"], directory)
    declare(settings, "target", ("elsewhere",), ["returns"], directory)
    other = directory / "postgresql.toml"
    # A test's database has no password, and a URL without one is no secret.
    other.write_text(f'[index]\nurl = "{postgres_database()}"\n' + settings.path.read_text(encoding="utf-8"), encoding="utf-8")
    trees = []
    for file in (settings.path, other):
        opened = load_settings(file)
        migrations.upgrade_schema(open_index(opened.index.url, base=opened.base))
        assert Federator.open(opened).crawl().state == "ok"
        command = [str(Path(sys.executable).with_name("federator")), "-c", str(file), "tree", "--output", "json"]
        trees.append(subprocess.run(command, check=True, capture_output=True).stdout)
    assert b"orders" in trees[0]
    assert trees[0] == trees[1]


def test_hive_2_into_iceberg_and_away_again(hive2_uri: str, iceberg_server: IcebergServer, directory: Path) -> None:
    """A foreign table takes a name until it is dropped, and data stays."""
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'namespace = "{WAREHOUSE}${{database}}"\ninclude = ["{database}$*"]\n'
    settings = configured(directory, hive("hive2", hive2_uri, directory), iceberg(iceberg_server), mirror)
    declare(settings, "origin", (database,), ["orders", "customers"], directory)
    namespace = iceberg_server.namespace((WAREHOUSE, database))
    iceberg_server.table((*namespace, "customers"))
    federator = Federator.open(settings)
    assert [outcome.code_text for outcome in federator.sync().outcomes if outcome.state.value == "skipped"] == ["moved"]
    (refusal,) = federator.sync().plans[0].refusals
    assert (refusal.reason.value, refusal.detail.partition("$")[0]) == (
        "name_taken", f"an object that is not a Lance table has the name: target: {WAREHOUSE}"
    )  # fmt: skip
    assert sorted(declared_at(settings, namespace)) == ["orders"]
    iceberg_server.call("DELETE", f"/namespaces/{database}/tables/customers?purgeRequested=false")
    assert_mirrored(settings, directory, namespace)
    with open_catalog(settings.source("origin").spec) as origin:
        origin.deregister_table(origin.describe_table((database, "orders")))
    for reasons in (["misses"], []):
        result = federator.sync()
        assert [refusal.reason.value for refusal in result.plans[0].refusals] == reasons
    assert sorted(declared_at(settings, namespace)) == ["customers"]
    assert lance.dataset(str(directory / "orders.lance")).count_rows() == 1


def test_a_directory_into_iceberg(iceberg_server: IcebergServer, directory: Path) -> None:
    tables, namespace = directory / "tables", (WAREHOUSE, f"db_{secrets.token_hex(4)}")
    for name in ("orders", "customers"):
        lance.write_dataset(pa.table({"id": [1]}), str(tables / f"{name}.lance"))
    mirror = f'namespace = "{"$".join(namespace)}"\n'
    settings = configured(directory, f'impl = "dir"\ndir.path = "{tables}"\n', iceberg(iceberg_server), mirror)
    federator = Federator.open(settings)
    assert federator.sync().state == "ok"
    declared = declared_at(settings, namespace)
    assert {name: record.canonical for name, record in declared.items()} == {
        name: f"file://{tables}/{name}.lance" for name in ("orders", "customers")
    }
    # The companions' metadata is in the directory, and is none of its tables.
    assert (tables / "_iceberg" / "orders").is_dir()
    again = federator.sync()
    assert (again.state, again.change_count, again.sources["origin"].tables) == ("ok", 0, 2)


def test_iceberg_into_hive_2(hive2_uri: str, iceberg_server: IcebergServer, directory: Path) -> None:
    database = f"db_{secrets.token_hex(4)}"
    mirror = f'namespace = "{{namespace}}"\ninclude = ["{WAREHOUSE}${database}$*"]\n'
    settings = configured(directory, iceberg(iceberg_server), hive("hive2", hive2_uri, directory), mirror)
    declare(settings, "origin", (WAREHOUSE, database), ["orders", "customers"], directory)
    iceberg_server.table((WAREHOUSE, database, "foreign"))
    iceberg_server.view((WAREHOUSE, database, "view"))
    assert_mirrored(settings, directory, (database,))


def test_iceberg_into_a_directory(iceberg_server: IcebergServer, directory: Path) -> None:
    """A directory takes tables that are below it, and keeps no marker: the ledger alone knows what the mirror declared."""
    database, tables = f"db_{secrets.token_hex(4)}", directory / "tables"
    mirror = f'namespace = "sales"\ninclude = ["{WAREHOUSE}${database}$*"]\n'
    target = f'impl = "dir"\ndir.path = "{tables}"\ndir.manifest_enabled = "true"\n'
    settings = configured(directory, iceberg(iceberg_server), target, mirror)
    declare(settings, "origin", (WAREHOUSE, database), ["orders", "customers"], tables / "_data")
    federator = Federator.open(settings)
    for count in (3, 0):
        result = federator.sync()
        assert (result.state, result.change_count, result.plans[0].refusals) == ("ok", count, ())
    assert {name: record.canonical for name, record in declared_at(settings, ("sales",)).items()} == {
        name: f"file://{tables}/_data/{name}.lance" for name in ("orders", "customers")
    }


def test_glue_into_a_directory(glue_account: GlueAccount, directory: Path) -> None:
    """The plan refuses what a directory cannot declare. A refusal that only the directory knows makes the run partial."""
    database, tables = f"db_{secrets.token_hex(4)}", directory / "tables"
    (tables / "shown.lance").mkdir(parents=True)
    (tables / "shown.lance" / ".lance-deregistered").touch()
    mirror = f'namespace = ""\ninclude = ["*${database}$*"]\ndeclare_missing = true\n'
    settings = configured(directory, glue(glue_account, directory), f'impl = "dir"\ndir.path = "{tables}"\n', mirror)
    declare(settings, "origin", (database,), ["orders"], directory / "elsewhere")
    declare_more = {"renamed": f"{tables}/_data/other.lance", "shown": f"{tables}/shown.lance", "late": f"{tables}/late"}
    with open_catalog(settings.source("origin").spec) as catalog:
        for name, location in declare_more.items():
            path = catalog.canonical_path((database, name))
            catalog.declare_table(TableRecord("origin", path, location))
    result = Federator.open(settings).sync()
    assert {(refusal.target_path, refusal.reason.value, refusal.detail) for refusal in result.plans[0].refusals} == {
        (
            "orders", "no_location",
            (f"the target declares only tables below file://{tables}, not {directory}/elsewhere/orders.lance: choose a target that "
            "stores locations, or map the location to a copy below that directory"),
        ),
        (
            "renamed", "no_location",
            (f"without a namespace, the target has 'renamed' only at file://{tables}/renamed.lance, not at {tables}/_data/other.lance: "
            "map the table to a namespace, or to that name"),
        ),
    }  # fmt: skip
    assert {(outcome.change.target_path, outcome.state.value, outcome.code) for outcome in result.outcomes} == {
        ("shown", "done", None), ("late", "skipped", 0),
    }  # fmt: skip
    assert result.state == "partial"
    assert sorted(declared_at(settings, ())) == ["shown"]
