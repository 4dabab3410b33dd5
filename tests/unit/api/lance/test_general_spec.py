"""The general spec's 14 operations, with the bodies of its early document; our own client of it is held to the suite elsewhere."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.model import Path
from federator.store import Index, audit_log, records, verifications
from federator.testing.contract import unique_name
from tests.fixtures.index_content import fill, table
from tests.stubs.general_rest import OPERATIONS
from tests.unit.api.lance.conftest import Service

_SCHEMA = {"fields": [{"name": "id", "nullable": False, "type": {"type": "int64"}}, {"name": "v", "nullable": True, "type": {
    "type": "fixed_size_list", "length": 4, "fields": [{"name": "item", "nullable": True, "type": {"type": "float32"}}]}}]}  # fmt: skip


def _ask(service: Service, operation: str, status: int = 200, **body: Any) -> Any:
    response = service.post(f"/{operation}", body)
    assert response.status_code == status, response.text
    return response.json()


def test_its_operations_are_those_of_the_spec_and_each_is_served(service: Service) -> None:
    assert _ask(service, "ListOperations") == {"operations": list(OPERATIONS)}
    for operation in OPERATIONS:
        assert service.post(f"/{operation}").status_code in (200, 400), operation
        assert service.get(f"/{operation}").status_code == 405, operation


def test_namespaces_live_and_die(service: Service) -> None:
    name = unique_name("ns")
    created = _ask(service, "CreateNamespace", name=name, parent=["mem"], mode="CREATE", options={"team": "ops"})
    assert created == {"name": name, "parent": ["mem"], "properties": {"team": "ops"}}
    assert _ask(service, "GetNamespace", name=name, parent=["mem"]) == created
    assert _ask(service, "CreateNamespace", 409, name=name, parent=["mem"], mode="CREATE")["code"] == 2
    assert _ask(service, "CreateNamespace", name=name, parent=["mem"], mode="EXIST_OK") == created
    assert name in _ask(service, "ListNamespaces", parent=["mem"])["namespaces"]
    assert _ask(service, "NamespaceExists", name=name, parent=["mem"]) == {"exists": True}
    altered = _ask(service, "AlterNamespace", name=name, parent=["mem"], updates={"a": "b"}, removals=["team"])
    assert altered == {**created, "properties": {"a": "b"}} == _ask(service, "GetNamespace", name=name, parent=["mem"])
    assert _ask(service, "DropNamespace", name=name, parent=["mem"]) == {}
    assert _ask(service, "NamespaceExists", name=name, parent=["mem"]) == {"exists": False}
    assert _ask(service, "DropNamespace", 404, name=name, parent=["mem"])["code"] == 1
    assert _ask(service, "ListNamespaces", parent=None)["namespaces"] == sorted(service.settings.sources)
    assert _ask(service, "GetNamespace", name="mem", parent=None)["parent"] == []


def test_tables_are_registered_altered_and_listed_in_pages(service: Service) -> None:
    path = list(service.namespace())
    for name in ("a", "b", "c"):
        created = _ask(
            service, "RegisterTable", name=name, namespace=path, location=f"s3://b/{name}.lance", properties={"k": "1"}
        )
    assert created == {
        "name": "c", "namespace": path, "location": "s3://b/c.lance", "properties": {"k": "1"}, "managedBy": "storage",
    }  # fmt: skip
    first = _ask(service, "ListTables", namespace=path, pageSize=2)
    assert first["tables"] == ["a", "b"]
    assert _ask(service, "ListTables", namespace=path, pageToken=first["nextPageToken"]) == {"tables": ["c"]}
    altered = _ask(service, "AlterTable", name="a", namespace=path, updates={"new": "2"}, removals=["k"])
    assert altered["properties"] == {"new": "2"}
    assert _ask(service, "GetTable", name="a", namespace=path) == altered
    assert _ask(service, "RegisterTable", 409, name="a", namespace=path, location="s3://b/x.lance")["code"] == 5
    assert _ask(service, "AlterTable", 404, name="no", namespace=path, updates={})["code"] == 4
    assert _ask(service, "DropTable", 406, name="a", namespace=path)["code"] == 0


def test_altering_without_the_capability_is_unsupported(service: Service) -> None:
    name = unique_name("ns")
    _ask(service, "CreateNamespace", name=name, parent=["plain"])
    _ask(service, "RegisterTable", name="t", namespace=["plain", name], location="s3://b/t.lance")
    assert _ask(service, "AlterNamespace", 406, name=name, parent=["plain"], updates={"a": "b"})["code"] == 0
    assert _ask(service, "AlterTable", 406, name="t", namespace=["plain", name], updates={"a": "b"})["code"] == 0


@pytest.mark.parametrize("operation", ["AlterNamespace", "AlterTable"])
def test_altering_is_a_write_of_the_caller_journalled_and_audited(service: Service, operation: str) -> None:
    path = service.namespace()
    body = {"name": path[1], "parent": ["mem"]}
    if operation == "AlterTable":
        _ask(service, "RegisterTable", name="t", namespace=list(path), location=f"s3://b/{path[1]}/t.lance")
        body = {"name": "t", "namespace": list(path)}
    for caller in ("viewer *", "writer lake"):
        assert service.post(f"/{operation}", {**body, "updates": {"a": "b"}}, caller=caller).status_code == 403
    answer = service.post(f"/{operation}", {**body, "updates": {"a": "b"}}, caller="writer mem")
    assert (answer.status_code, answer.headers["Federator-Index"]) == (200, "published")
    response = audit_log.list_recent_events(service.index, audit_log.AuditFilter(run=answer.headers["Federator-Operation"]))
    assert [(row.kind, row.actor) for row in response] == [("own_write", "somebody")]
    marked = service.post(f"/{operation}", {**body, "updates": {"federator.mirror": "m"}})
    assert (marked.status_code, marked.json()["code"]) == (400, 13)


def test_a_table_is_created_with_its_schema_and_dropped_with_its_data(service: Service) -> None:
    created = _ask(service, "CreateTable", name="made", namespace=["open"], schema=_SCHEMA)
    written = lance.dataset(created["location"].removeprefix("file://"))
    assert written.count_rows() == 0
    assert written.schema == pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.list_(pa.float32(), 4))])
    assert _ask(service, "CreateTable", 409, name="made", namespace=["open"], schema=_SCHEMA)["code"] == 5
    assert _ask(service, "DropTable", name="made", namespace=["open"]) == {}
    assert not FilePath(created["location"].removeprefix("file://")).exists()
    assert _ask(service, "TableExists", name="made", namespace=["open"]) == {"exists": False}


def test_a_table_that_cannot_be_written_is_not_left_declared(service: Service, tmp_path: FilePath) -> None:
    path = list(service.namespace())
    taken = tmp_path / "taken.lance"
    lance.write_dataset(pa.table({"a": [1]}), str(taken))
    _ask(service, "CreateTable", 409, name="t", namespace=path, location=str(taken), schema=_SCHEMA)
    assert _ask(service, "TableExists", name="t", namespace=path) == {"exists": False}
    assert lance.dataset(str(taken)).count_rows() == 1
    assert _ask(service, "CreateTable", 400, name="t", namespace=path, schema={"fields": []})["code"] == 13
    unknown = {"fields": [{"name": "a", "nullable": True, "type": {"type": "quaternion"}}]}
    assert "quaternion" in _ask(service, "CreateTable", 400, name="t", namespace=path, schema=unknown)["detail"]
    assert _ask(service, "CreateTable", 406, name="never", namespace=["shut"], schema=_SCHEMA)["code"] == 0
    assert service.post("/v1/table/shut%24never/exists").status_code == 404


@pytest.mark.parametrize(
    "root",
    [{}, {"name": None}, {"name": "", "parent": []}, {"name": "", "parent": None}, {"id": None}, {"id": []}, {"id": ""}],
)
def test_the_root_is_a_namespace(service: Service, root: dict[str, Any]) -> None:
    described = _ask(service, "GetNamespace", **root)
    assert described == {
        "name": "",
        "parent": [],
        "properties": service.post("/v1/namespace/%24/describe").json()["properties"],
    }
    assert list(described["properties"]) == ["federator.deployment"]
    assert _ask(service, "NamespaceExists", **root) == {"exists": True}
    assert _ask(service, "GetNamespace", 400, name="", parent=["mem"])["code"] == 13


def test_a_request_without_a_body_is_about_the_root(service: Service) -> None:
    assert service.ask("POST", "/GetNamespace").json() == _ask(service, "GetNamespace", name="", parent=[])
    assert service.ask("POST", "/NamespaceExists").json() == {"exists": True}


def test_a_list_identifier_names_a_namespace(service: Service) -> None:
    path = list(service.namespace())
    by_name = _ask(service, "GetNamespace", name=path[-1], parent=path[:-1])
    assert _ask(service, "GetNamespace", id=path) == by_name
    assert _ask(service, "NamespaceExists", id=[*path, "none"]) == {"exists": False}
    assert path[-1] in _ask(service, "ListNamespaces", id=path[:-1], pageSize=10_000)["namespaces"]
    assert _ask(service, "RegisterTable", name="t", namespace=path, location="s3://lake/t.lance")["name"] == "t"
    assert _ask(service, "ListTables", id=path)["tables"] == _ask(service, "ListTables", namespace=path)["tables"] == ["t"]
    for root in ({}, {"id": []}, {"id": None}, {"id": ""}):
        assert _ask(service, "ListNamespaces", **root) == _ask(service, "ListNamespaces", parent=[])
    for both in ({"id": path, "name": path[-1]}, {"id": "mem"}, {"id": [*path, ""]}, {"id": [""]}):
        assert _ask(service, "NamespaceExists", 400, **both)["code"] == 13


def test_an_empty_directory_is_a_table_that_cannot_be_loaded(service: Service) -> None:
    name = unique_name("empty")
    (service.root / f"{name}.lance").mkdir()
    service.crawl("lake")
    assert _ask(service, "TableExists", name=name, namespace=["lake"]) == {"exists": True}
    detailed = service.post(f"/v1/table/lake%24{name}/describe", {"load_detailed_metadata": True})
    assert (detailed.status_code, detailed.json()["code"]) == (409, 19)
    assert "does not follow the Lance table format" in detailed.json()["error"]
    assert service.post(f"/v1/table/lake%24{name}/describe", {"check_declared": True}).json()["is_only_declared"] is True
    _verified(service.index, "lake", (name,), "empty")
    assert "does not follow the Lance table format" in _ask(service, "GetTable", 400, name=name, namespace=["lake"])["detail"]
    declared = unique_name("declared")
    assert service.post(f"/v1/table/lake%24{declared}/declare").status_code == 200
    detailed = service.post(f"/v1/table/lake%24{declared}/describe", {"load_detailed_metadata": True})
    assert detailed.json()["is_only_declared"] is True


@pytest.mark.parametrize(("state", "status"), [("not_lance", 400), ("corrupt", 400), ("declared_only", 200), ("valid", 200)])
def test_a_foreign_table_exists_and_cannot_be_described(service: Service, state: str, status: int) -> None:
    path = list(service.namespace())
    location = f"s3://b/{path[1]}/t.lance"
    fill(service.index, "mem", table("mem", path[1], "t", location=location))
    _verified(service.index, "mem", (path[1], "t"), state)
    assert _ask(service, "TableExists", name="t", namespace=path) == {"exists": True}
    assert _ask(service, "ListTables", namespace=path) == {"tables": ["t"]}
    response = _ask(service, "GetTable", status, name="t", namespace=path)
    assert status == 200 or "does not follow the Lance table format" in response["detail"]
    # The official protocol leaves out what is not written, where it is asked to.
    listed = service.get(f"/v1/namespace/mem%24{path[1]}/table/list", params={"include_declared": "false"}).json()["tables"]
    assert listed == ([] if state == "declared_only" else ["t"])


def _verified(index: Index, source: str, path: Path, state: str) -> None:
    with index.write() as connection:
        found = records.find_record(connection, source, path, is_table=True)
        assert found is not None
        checked = {
            "canonical": found.canonical, "location": found.record.location, "state": state, "message": "a look", "version": None,
            "rows": None, "fragments": None, "schema": None, "checked_at": 1.0, "checked_through": source, "access": "",
        }  # fmt: skip
        verifications.save_verifications(connection, [checked])
