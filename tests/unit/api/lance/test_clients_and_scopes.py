"""Real clients with real sources, and principals with a part of the tree in scope."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest

from tests.fixtures.glue import GlueAccount
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api.lance.conftest import Service, served


@pytest.fixture(scope="module")
def company(
    tmp_path_factory: pytest.TempPathFactory, hive3_uri: str, glue_url: str, glue_account_of_module: GlueAccount
) -> Iterator[Service]:
    """A directory, a real Hive metastore and Glue as moto serves it, behind one address."""
    location = tmp_path_factory.mktemp("hive")
    hive = {"impl": "hive3", "uri": hive3_uri, "client.pool-size": "2", "root": f"file:{location}"}
    names = ("access_key_id", "secret_access_key", "session_token")
    glue = {"impl": "glue", "root": "s3://lake", **glue_account_of_module.properties}
    for name in names:
        os.environ[f"TEST_GLUE_{name.upper()}"] = glue[name]
        glue[name] = f"${{TEST_GLUE_{name.upper()}}}"
    storage = {"storage.region": "eu-1", "storage.secret_access_key": "${TEST_GLUE_SECRET_ACCESS_KEY}"}
    sources: dict[str, dict[str, Any]] = {
        "hive": hive, "aws": {**glue, **storage, "vend": "static"},
        "drop": {"impl": "dir", "root": str(location / "drop"), "allow_drop": True},
    }  # fmt: skip
    (location / "drop").mkdir()
    with served(tmp_path_factory.mktemp("company"), sources) as running:
        yield running
    for name in names:
        os.environ.pop(f"TEST_GLUE_{name.upper()}")


@pytest.fixture(scope="module")
def glue_account_of_module(glue_url: str) -> GlueAccount:
    from tests.fixtures.glue import account

    return account(glue_url)


@pytest.fixture(scope="module")
def client(company: Service) -> Any:
    return spec.connect("rest", {"uri": company.url})


def test_the_official_client_sees_every_catalog_as_one_namespace(company: Service, client: Any) -> None:
    assert client.list_namespaces(spec.ListNamespacesRequest(id=[])).namespaces == sorted(company.settings.sources)
    for source in company.settings.sources:
        client.namespace_exists(spec.NamespaceExistsRequest(id=[source]))


@pytest.mark.parametrize("above", [["hive", "hive"], ["aws", None]])
def test_a_table_lives_in_a_real_catalog_through_the_service(
    company: Service, client: Any, above: list[Any], tmp_path: FilePath, glue_account_of_module: GlueAccount
) -> None:
    parent = [name or glue_account_of_module.account_id for name in above]
    path = [*parent, f"db_{secrets.token_hex(4)}"]
    # Its parent has to be in the index, as a crawl finds it.
    fill(company.index, above[0], namespace(above[0], *parent[1:]))
    location = {"database.location-uri": f"file:{tmp_path}/db"} if above[0] == "hive" else {}
    client.create_namespace(spec.CreateNamespaceRequest(id=path, properties={"team": "ops", **location}))
    assert client.describe_namespace(spec.DescribeNamespaceRequest(id=path)).properties["team"] == "ops"
    assert path[-1] in client.list_namespaces(spec.ListNamespacesRequest(id=parent)).namespaces

    written = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"a": [1, 2]}), str(written))
    created = client.register_table(spec.RegisterTableRequest(id=[*path, "t"], location=str(written), properties={"k": "v"}))
    assert created.location.endswith(str(written))
    assert client.list_tables(spec.ListTablesRequest(id=path)).tables == ["t"]
    response = client.describe_table(
        spec.DescribeTableRequest(id=[*path, "t"], load_detailed_metadata=True, check_declared=True, with_table_uri=True)
    )
    assert (response.version, response.is_only_declared, response.properties["k"]) == (1, False, "v")
    assert [field.name for field in response.var_schema.fields] == ["a"]
    assert response.table_uri == f"file://{written}"
    assert lance.dataset(response.location).count_rows() == 2

    with pytest.raises(spec.TableAlreadyExistsError):
        client.declare_table(spec.DeclareTableRequest(id=[*path, "t"]))
    with pytest.raises(spec.NamespaceNotEmptyError):
        client.drop_namespace(spec.DropNamespaceRequest(id=path))
    client.deregister_table(spec.DeregisterTableRequest(id=[*path, "t"]))
    with pytest.raises(spec.TableNotFoundError):
        client.describe_table(spec.DescribeTableRequest(id=[*path, "t"]))
    assert lance.dataset(str(written)).count_rows() == 2, "the data stays"
    if above[0] == "aws":
        with pytest.raises(spec.InvalidInputError, match="with every table in it"):
            client.drop_namespace(spec.DropNamespaceRequest(id=path))
    confirmed = {"header.x-federator-confirm": "cascades"}
    client.drop_namespace(spec.DropNamespaceRequest(id=path, context=confirmed))
    with pytest.raises(spec.NamespaceNotFoundError):
        client.namespace_exists(spec.NamespaceExistsRequest(id=path))


def test_hive_names_are_found_in_any_case(company: Service, client: Any, tmp_path: FilePath) -> None:
    path = ["hive", "hive", f"db_{secrets.token_hex(4)}"]
    fill(company.index, "hive", namespace("hive", "hive"))
    client.create_namespace(spec.CreateNamespaceRequest(id=path, properties={"database.location-uri": f"file:{tmp_path}/db"}))
    client.declare_table(spec.DeclareTableRequest(id=[*path, "Orders"], location=f"file:{tmp_path}/o.lance"))
    assert client.list_tables(spec.ListTablesRequest(id=path)).tables == ["orders"]
    assert client.describe_table(spec.DescribeTableRequest(id=[*path[:2], path[2].upper(), "ORDERS"])).table == "orders"


def test_pylance_writes_and_reads_through_the_service(company: Service, client: Any) -> None:
    rows = pa.table({"a": [1, 2, 3]})
    lance.write_dataset(rows, namespace_client=client, table_id=["lake", "events"], mode="create")
    assert lance.dataset(namespace_client=client, table_id=["lake", "events"]).count_rows() == 3
    lance.write_dataset(rows, namespace_client=client, table_id=["lake", "events"], mode="append")
    assert lance.dataset(namespace_client=client, table_id=["lake", "events"]).count_rows() == 6
    assert company.get("/v1/namespace/lake/table/list").json()["tables"] == ["events"]


def test_secrets_are_vended_only_when_asked_for_by_one_who_may_of_a_source_that_allows_it(
    company: Service, glue_account_of_module: GlueAccount
) -> None:
    fill(company.index, "aws", table("aws", "x", "db", "t", properties={"k": "v", "token": "t0ken"}))
    key = glue_account_of_module.credentials["aws_secret_access_key"]

    def describe_as(who: str | None, **body: Any) -> Any:
        return company.post("/v1/table/aws%24x%24db%24t/describe", body, caller=who).json()

    for answer in (
        describe_as(None),
        describe_as(None, vend_credentials=False),
        describe_as("viewer *", vend_credentials=True),
    ):
        assert answer["storage_options"] == {"region": "eu-1", "k": "v"}
        assert answer["properties"] == {"k": "v", "table_type": "lance"}
        assert key not in str(answer)
    assert describe_as("writer aws$x", vend_credentials=True)["storage_options"] == {
        "region": "eu-1",
        "secret_access_key": key,
        "k": "v",
    }


def test_dropping_deletes_data_only_where_the_source_allows_it_and_an_admin_asks(company: Service) -> None:
    root = FilePath(company.settings.sources["drop"].properties["root"])
    for name in ("one", "two", "kept"):
        lance.write_dataset(pa.table({"a": [1]}), str(root / f"{name}.lance"))
    (root / "odd.lance").mkdir()
    (root / "odd.lance" / "notes.txt").write_text("not ours")
    company.crawl("drop")
    assert company.post("/v1/table/drop%24one/drop", caller="writer *").status_code == 403
    assert (root / "one.lance").exists()
    done = company.post("/v1/table/drop%24one/drop", caller="admin drop")
    assert (done.status_code, done.json()["id"]) == (200, ["drop", "one"])
    assert not (root / "one.lance").exists()
    assert company.post("/v1/table/drop%24one/exists").status_code == 404
    # Another name for the place: somebody else would lose the data.
    fill(company.index, "hive", table("hive", "hive", "db", "two", location=str(root / "two.lance")))
    refused = company.post("/v1/table/drop%24two/drop", caller="admin drop")
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert "hive$" not in refused.text, "what the caller may not see is not named"
    assert "hive$hive$db$two" in company.post("/v1/table/drop%24two/drop").text
    fill(company.index, "hive", gone=[("hive", "db", "two")])
    assert company.post("/DropTable", {"name": "two", "namespace": ["drop"]}).json() == {}
    assert not (root / "two.lance").exists()
    assert company.post("/v1/table/drop%24odd/drop").status_code == 400
    assert (root / "odd.lance" / "notes.txt").exists()
    assert (root / "kept.lance").exists()
    assert company.post("/v1/table/lake%24events/drop").status_code == 406


def test_dropping_a_table_spares_what_lies_in_its_directory_and_no_catalog_declares(company: Service) -> None:
    root = FilePath(company.settings.sources["drop"].properties["root"])
    rows = pa.table({"a": [1]})
    for name in ("outer", "deep", "beside", "branched"):
        lance.write_dataset(rows, str(root / f"{name}.lance"))
    lance.dataset(str(root / "branched.lance")).create_branch("b/c")
    company.crawl("drop")
    # After the crawl, as another client does.
    others = [root / "outer.lance" / "inner.lance", root / "deep.lance" / "data" / "inner"]
    for other in others:
        lance.write_dataset(rows, str(other))
    (root / "beside.lance" / "export.parquet").write_bytes(b"rows")
    for name, inside in (("outer", "inner.lance"), ("deep", "data/inner"), ("beside", "export.parquet")):
        refused = company.post(f"/v1/table/drop%24{name}/drop")
        assert (refused.status_code, refused.json().get("code")) == (400, 13), refused.text
        assert inside in refused.text, "what lies there is named"
        assert company.post(f"/v1/table/drop%24{name}/exists").status_code == 200, "refused before it is deregistered"
    assert [lance.dataset(str(other)).count_rows() for other in others] == [1, 1]
    assert (root / "beside.lance" / "export.parquet").exists()
    assert company.post("/v1/table/drop%24branched/drop").status_code == 200, "a branch is the table's own"
    assert not (root / "branched.lance").exists()


# Callers who see a part.


@pytest.fixture
def parted(service: Service) -> tuple[str, str]:
    """Two namespaces of ``mem``, with a table ``t`` each, the first also with ``u``."""
    mine, other = service.namespace()[1], service.namespace()[1]
    fill(service.index, "mem", table("mem", mine, "t"), table("mem", mine, "u"), table("mem", other, "t"))
    return mine, other


def test_objects_outside_the_scopes_do_not_exist(service: Service, parted: tuple[str, str]) -> None:
    mine, other = parted
    who = f"viewer mem${mine}"
    assert service.get("/v1/namespace/%24/list", caller=who).json()["namespaces"] == ["mem"]
    assert service.get("/v1/namespace/mem/list", caller=who).json()["namespaces"] == [mine]
    assert service.get("/v1/table", caller=who).json()["tables"] == [f"mem${mine}$t", f"mem${mine}$u"]
    for existing, missing in (
        (f"table/mem%24{other}%24t/describe", f"table/mem%24{other}%24no/describe"),
        (f"namespace/mem%24{other}/describe", "namespace/mem%24no/describe"),
        (f"table/mem%24{other}%24t/exists", f"table/mem%24{other}%24no/exists"),
        ("namespace/lake/describe", "namespace/no/describe"),
    ):
        hidden, absent = (service.post(f"/v1/{path}", caller=who) for path in (existing, missing))
        assert hidden.status_code == absent.status_code == 404
        names = {"lake": "no", f"mem${other}$t": f"mem${other}$no", f"mem${other}": "mem$no"}
        response = hidden.json()["error"]
        assert absent.json()["error"] in {response.replace(a, b) for a, b in names.items()}
    for operation, body in (
        ("ListNamespaces", {"parent": ["mem", other]}), ("ListTables", {"namespace": ["mem", other]}),
        ("GetTable", {"name": "t", "namespace": ["mem", other]}),
    ):  # fmt: skip
        assert service.post(f"/{operation}", body, caller=who).status_code == 404, operation
    assert service.post("/TableExists", {"name": "t", "namespace": ["mem", other]}, caller=who).json() == {"exists": False}
    assert service.post("/ListNamespaces", {}, caller=who).json()["namespaces"] == ["mem"]


def test_a_scope_of_one_table_shows_its_namespaces_and_no_sibling(service: Service, parted: tuple[str, str]) -> None:
    mine, _ = parted
    who = f"writer mem${mine}$t"
    assert service.get(f"/v1/namespace/mem%24{mine}/table/list", caller=who).json()["tables"] == ["t"]
    assert service.post(f"/v1/namespace/mem%24{mine}/describe", caller=who).json() == {"properties": {}}
    assert service.post(f"/v1/table/mem%24{mine}%24u/describe", caller=who).status_code == 404
    before = service.store.calls()
    for path, body in (
        (f"table/mem%24{mine}%24u/deregister", {}), (f"table/mem%24{mine}%24t/rename", {"new_table_name": "u2"}),
        (f"namespace/mem%24{mine}/drop", {}), ("namespace/mem%24else/create", {}),
    ):  # fmt: skip
        response = service.post(f"/v1/{path}", body, caller=who)
        assert (response.status_code, response.json()["code"]) == (403, 15), path
    assert service.store.calls() == before, "refused before the catalog is asked"


def test_nobody_without_a_scope_sees_anything(service: Service, parted: tuple[str, str]) -> None:
    who = "admin "
    assert service.get("/v1/namespace/%24/list", caller=who).json() == {"namespaces": []}
    assert service.get("/v1/table", caller=who).json() == {"tables": []}
    assert service.get("/v1/namespace/mem/table/list", caller=who).status_code == 404
