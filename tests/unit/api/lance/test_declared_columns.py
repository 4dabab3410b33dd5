"""CreateTable declares the columns of the rows that it writes, where the catalog keeps columns: Unity, as the contract stub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest

from federator.service import Federator
from federator.stages.declare import DeclareSpec
from tests.stubs.unity import UnityStub
from tests.unit.api.lance.conftest import Service, served

SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False), ("vector", pa.list_(pa.float32(), 2)), ("at", pa.timestamp("us", "UTC")),
    ("count", pa.uint32()),
])  # fmt: skip
DECLARED = [
    ("id", "bigint", "LONG", False), ("vector", "array<float>", "ARRAY", True), ("at", "timestamp", "TIMESTAMP", True),
    ("count", "bigint", "LONG", True),
]  # fmt: skip


@pytest.fixture
def unity(unity_stub: UnityStub) -> UnityStub:
    unity_stub.world.create_schema({"name": "sales", "catalog_name": "main"}, None)
    return unity_stub


def source(unity: UnityStub, root: Path) -> dict[str, dict[str, Any]]:
    return {"cat": {"impl": "unity", "unity": {"endpoint": unity.url, "root": str(root)}}}


def columns(unity: UnityStub, name: str) -> list[tuple[str, str, str, bool]]:
    row = unity.world.tables["main", "sales", name]
    return [(column["name"], column["type_text"], column["type_name"], column["nullable"]) for column in row["columns"]]


def described(service: Service, name: str) -> list[tuple[str, str, int | None]]:
    """The columns that DescribeTable returns without opening the table."""
    catalog = ln.connect("federator_connectors.unity.UnityNamespace", dict(service.settings.source("cat").spec.properties))
    schema = catalog.describe_table(ln.DescribeTableRequest(id=["main", "sales", name])).var_schema
    assert schema is not None
    return [(field.name, field.type.type, field.type.length) for field in schema.fields]


EXACT = [("id", "int64", None), ("vector", "fixed_size_list", 2), ("at", "timestamp", None), ("count", "uint32", None)]


def test_create_table_declares_the_columns_of_its_rows(unity: UnityStub, tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "vector": [[1.0, 2.0]], "at": [0], "count": [7]}, schema=SCHEMA)
    with served(tmp_path, source(unity, tmp_path / "data")) as service:
        body = pa.BufferOutputStream()
        with pa.ipc.new_stream(body, SCHEMA) as sink:
            sink.write_table(rows)
        response = service.ask("POST", "/v1/table/cat%24main%24sales%24own/create", data=body.getvalue().to_pybytes())
        assert response.status_code == 200, response.text
        assert columns(unity, "own") == DECLARED
        assert described(service, "own") == EXACT
        # What is no Arrow stream is refused before anything is declared.
        refused = service.ask("POST", "/v1/table/cat%24main%24sales%24none/create", data=b"no arrow")
        assert (refused.status_code, refused.json()["code"]) == (400, 13)
        assert ("main", "sales", "none") not in unity.world.tables
        assert not [request for request in unity.seen if request.startswith("POST") and "none" in request]


def test_the_general_spec_declares_columns(unity: UnityStub, tmp_path: Path) -> None:
    fields = [
        {"name": "id", "type": {"type": "int64"}, "nullable": False},
        {"name": "day", "type": {"type": "date32"}, "nullable": True},
    ]
    body = {"name": "empty", "namespace": ["cat", "main", "sales"], "schema": {"fields": fields}}
    with served(tmp_path, source(unity, tmp_path / "data")) as service:
        response = service.post("/CreateTable", body)
        assert response.status_code == 200, response.text
    assert columns(unity, "empty") == [("id", "bigint", "LONG", False), ("day", "date", "DATE", True)]


def test_a_declared_orphan_has_the_columns_of_its_data(unity: UnityStub, tmp_path: Path) -> None:
    lance.write_dataset(SCHEMA.empty_table(), str(tmp_path / "orphan.lance"))
    with served(tmp_path, source(unity, tmp_path / "data")) as service:
        federator = Federator.open(service.settings)
        planned = federator.declare(DeclareSpec([str(tmp_path / "orphan.lance")], ["cat"], "main$sales${table}"))
        assert federator.apply([(plan, plan.digest) for plan in planned.plans]).state == "ok"
        assert described(service, "orphan") == EXACT
    assert columns(unity, "orphan") == DECLARED
    (row,) = (table for table in unity.world.tables["main", "sales", "orphan"]["columns"] if table["name"] == "vector")
    assert json.loads(row["type_json"])["metadata"] == {"federator.arrow": "fixed_size_list<item: float>[2]"}
