"""Concurrent creates of one table in real Hive metastores, the short form of the adversary's ``creates``: nobody's rows are lost."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pytest
import requests
from sqlalchemy import insert

from federator.data import TableProcessPool
from federator.model import Path, TableRecord, path_key
from federator.store import tables as t
from federator_connectors._hive import records
from tests.adversary import creates
from tests.fixtures.hive import Metastore
from tests.unit.api.lance.conftest import Service, served

#: the last way is the first one's code under pylance's own call
ROUNDS = dict.fromkeys(creates.WAYS, 8) | {"pylance directly": 4}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", creates.WAYS)
def test_one_client_wins_and_its_rows_are_there(metastore: Metastore, way: str, tmp_path: FilePath) -> None:
    tally = creates.race(metastore, way, tmp_path, ROUNDS[way])
    assert tally.clean, f"{tally}; {dict(tally.refusals)}"


def _service(metastore: Metastore, directory: FilePath) -> AbstractContextManager[Service]:
    (own := directory / "service").mkdir()
    return served(own, {"lake": {"impl": metastore.connector.impl, **metastore.properties}}, bare=True)


def _interrupt(metastore: Metastore, path: Path, op_id: str) -> None:
    """Leave what a process leaves that ends between the two calls of a declaration."""
    calls, record = metastore.calls(), TableRecord("lake", path, metastore.location("left.lance"))
    calls.create_table(path, records.unfinished_table(record, calls.catalog_of(path[:-1]), op_id))
    calls.close()


def _intend(service: Service, path: Path, op_id: str, *, mirror: str = "") -> None:
    row = {
        "op_id": op_id, "run_id": op_id, "plan": "", "mirror": mirror, "seq": 0, "action": "declare_table", "target_source": "lake",
        "target_path": path_key(path), "change": "{}", "state": "intent", "intent_at": 1.0,
    }  # fmt: skip
    with service.index.write() as connection:
        connection.execute(insert(t.journal), [row])


@pytest.mark.timeout(120)
def test_a_write_finishes_what_an_interrupted_one_left(metastore: Metastore, tmp_path: FilePath) -> None:
    database, sink = metastore.database(), BytesIO()
    with pa.ipc.new_stream(sink, creates.rows(7).schema) as stream:
        stream.write_table(creates.rows(7))
    with _service(metastore, tmp_path) as service, metastore.open() as catalog:
        # The first write removes what is left from long ago; this is about what a later one meets.
        assert service.post(f"/v1/table/lake%24{'%24'.join((*database, 'first'))}/declare").status_code == 200
        for name, op_id, mirror in (("own", "op-1", ""), ("unknown", None, ""), ("mirrored", "op-3", "m")):
            _interrupt(metastore, (*database, name), op_id or "op-2")
            if op_id:
                _intend(service, (*database, name), op_id, mirror=mirror)
            url = f"{service.url}/v1/table/lake%24{'%24'.join((*database, name))}/create"
            response = requests.post(url, data=sink.getvalue(), timeout=60)
            if name == "own":
                assert response.status_code == 200, response.text
                assert creates.rows_of(catalog.describe_table((*database, name)).location or "") == [7] * creates.ROWS
            else:
                assert (response.status_code, response.json()["code"]) == (409, 5), response.text
                assert "DROP VIEW" in response.json()["detail"]
                assert catalog.observe((*database, name)).unfinished == (op_id or "op-2")


@pytest.mark.timeout(120)
def test_the_first_write_removes_what_a_process_left_long_ago(metastore: Metastore, tmp_path: FilePath) -> None:
    database = metastore.database()
    with _service(metastore, tmp_path) as service, metastore.open() as catalog:
        _interrupt(metastore, (*database, "left"), "op-1")
        _intend(service, (*database, "left"), "op-1")
        assert service.post(f"/v1/table/lake%24{'%24'.join((*database, 'other'))}/declare").status_code == 200
        assert catalog.observe((*database, "left")).is_absent


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("meddle", "status", "code"),
    [("dropped", 409, 14), ("moved", 409, 14), ("files", 500, 18), ("nothing", 200, None)],
)
def test_a_create_without_rows_succeeds_only_if_the_table_can_be_opened(
    hive3_uri: str, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, meddle: str, status: int, code: int | None
) -> None:
    metastore = Metastore(hive3_uri, 2, ("hive",), tmp_path)
    path = (*metastore.database(), "orders")
    honest = TableProcessPool._run_operation

    def ask(pool: TableProcessPool, principal: str, operation: str, *arguments: Any, **named: Any) -> Any:
        result = honest(pool, principal, operation, *arguments, **named)
        if operation == "create":
            calls = metastore.calls()
            table = calls.get_table(path)
            if meddle == "dropped":
                calls.drop_table(path)
            elif meddle == "moved":
                table.sd.location = metastore.location("elsewhere")
                calls.alter_table(path, table)
            elif meddle == "files":
                shutil.rmtree(table.sd.location.removeprefix("file:"))
            calls.close()
        return result

    monkeypatch.setattr(TableProcessPool, "_run_operation", ask)
    schema = {"fields": [{"name": "id", "type": {"type": "int64"}, "nullable": True}]}
    with _service(metastore, tmp_path) as service:
        body = {"name": path[-1], "namespace": ["lake", *path[:-1]], "schema": schema}
        response = requests.post(f"{service.url}/CreateTable", json=body, timeout=60)
    assert (response.status_code, response.json().get("code")) == (status, code), response.text
