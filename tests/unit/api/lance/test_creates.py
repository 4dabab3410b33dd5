"""CreateTable succeeds only after the written table was opened again; writes to one table are serialised."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pytest
import requests
from sqlalchemy import select

from federator.apply import table_locks
from federator.apply.table_locks import TableLocks
from federator.connector import ConcurrentModification
from federator.connector.errors import TableSchemaValidation
from federator.data import PrincipalPool, TableHandle, TableProcessPool
from federator.store import open_index
from federator.store import tables as t
from tests.unit.api.lance.conftest import Service

ROWS = pa.table({"id": [1, 2, 3]})


def _create(service: Service, name: str, mode: str = "create") -> requests.Response:
    sink = BytesIO()
    with pa.ipc.new_stream(sink, ROWS.schema) as stream:
        stream.write_table(ROWS)
    return requests.post(f"{service.url}/v1/table/lake%24{name}/create?mode={mode}", data=sink.getvalue(), timeout=60)


def _after_writing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """``act`` happens between the write of the rows and whatever the service does next."""
    honest = TableProcessPool._run_operation

    def ask(pool: TableProcessPool, principal: str, operation: str, *arguments: Any, **named: Any) -> Any:
        result = honest(pool, principal, operation, *arguments, **named)
        if operation == "create":
            act()
        return result

    monkeypatch.setattr(TableProcessPool, "_run_operation", ask)


def _journal(service: Service) -> list[tuple[str, str, str | None]]:
    query = select(t.journal.c.action, t.journal.c.state, t.journal.c.code).order_by(t.journal.c.intent_at)
    with service.index.read() as connection:
        return [tuple(row) for row in connection.execute(query)]


def test_rows_that_are_gone_after_the_write_are_an_error(own_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    _after_writing(monkeypatch, lambda: shutil.rmtree(own_service.root / "orders.lance"))
    response = _create(own_service, "orders")
    assert (response.status_code, response.json()["code"]) in ((409, 14), (500, 18)), response.text
    assert [row[:2] for row in _journal(own_service)] == [("declare_table", "done"), ("create_table", "failed")]


def test_a_version_that_is_gone_after_the_write_is_an_error(own_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    _after_writing(monkeypatch, lambda: shutil.rmtree(own_service.root / "orders.lance" / "_versions"))
    response = _create(own_service, "orders")
    assert (response.status_code, response.json()["code"]) == (500, 18), response.text
    assert _journal(own_service)[-1] == ("create_table", "failed", "18")


def test_a_declaration_that_is_removed_meanwhile_is_an_error(own_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with own_service.app.state.writer.facade("lake").borrow_catalog() as catalog:
        _after_writing(monkeypatch, lambda: catalog.deregister_table(catalog.describe_table(("orders",))))
        response = _create(own_service, "orders")
    assert (response.status_code, response.json()["code"]) == (409, 14), response.text
    assert _journal(own_service)[-1] == ("create_table", "failed", "14")


def _refused_bodies() -> dict[str, bytes]:
    """Streams that are refused after the write has begun: cut in the middle, and with a null where the schema allows none."""
    cut, nulls = BytesIO(), BytesIO()
    with pa.ipc.new_stream(cut, ROWS.schema) as stream:
        stream.write_table(pa.table({"id": range(100_000)}), max_chunksize=10_000)
    with pa.ipc.new_stream(nulls, schema := pa.schema([pa.field("id", pa.int64(), nullable=False)])) as stream:
        for numbers in ([1, 2], [None]):
            stream.write_batch(pa.record_batch([pa.array(numbers, pa.int64())], schema=schema))
    return {"cut": cut.getvalue()[:600_000], "nulls": nulls.getvalue()}


@pytest.mark.parametrize("body", ["cut", "nulls"])
@pytest.mark.parametrize("mode", ["create", "overwrite", "exist_ok"])
def test_the_name_of_a_refused_table_is_free(own_service: Service, body: str, mode: str) -> None:
    url = f"{own_service.url}/v1/table/lake%24orders/create?mode={mode}"
    assert requests.post(url, data=_refused_bodies()[body], timeout=60).status_code == 400
    assert own_service.post("/v1/table/lake%24orders/exists").status_code == 404
    assert _create(own_service, "orders").json()["version"] == 1


def test_a_refused_write_removes_nothing_that_was_there(own_service: Service) -> None:
    location = own_service.root / "orders.lance"
    (location / "data").mkdir(parents=True)
    with own_service.app.state.pool.open_file("") as body:
        body.path.write_bytes(_refused_bodies()["nulls"])
        with pytest.raises(TableSchemaValidation):
            PrincipalPool(own_service.app.state.pool, "").run("create", TableHandle(str(location)), input=str(body.path))
    assert (location / "data").is_dir()


def test_the_general_spec_records_the_intent_before_the_write(own_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    during: list[tuple[str, str, str | None]] = []
    _after_writing(monkeypatch, lambda: during.extend(_journal(own_service)))
    fields = [{"name": "id", "type": {"type": "int64"}, "nullable": False}]
    response = own_service.post("/CreateTable", {"name": "empty", "namespace": ["lake"], "schema": {"fields": fields}})
    assert response.status_code == 200, response.text
    assert [row[:2] for row in during] == [("declare_table", "done"), ("create_table", "intent")]
    assert [row[:2] for row in _journal(own_service)] == [("declare_table", "done"), ("create_table", "done")]


def test_a_refused_write_of_the_general_spec_is_recorded(own_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise TableSchemaValidation("refused")

    monkeypatch.setattr(TableProcessPool, "_run_operation", refuse)
    fields = [{"name": "id", "type": {"type": "int64"}, "nullable": False}]
    response = own_service.post("/CreateTable", {"name": "empty", "namespace": ["lake"], "schema": {"fields": fields}})
    assert response.status_code == 400, response.text
    states = [row[:2] for row in _journal(own_service)]
    assert states == [("declare_table", "done"), ("create_table", "failed"), ("deregister_table", "done")]


def test_a_created_table_is_there(own_service: Service) -> None:
    assert _create(own_service, "orders").json()["version"] == 1
    assert _create(own_service, "orders", "overwrite").json()["version"] == 2
    assert _create(own_service, "orders").status_code == 409
    assert _journal(own_service)[1] == ("create_table", "done", None)


def test_a_write_waits_for_another_process_and_says_so(own_service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    other = open_index("sqlite:///federator.db", base=own_service.root.parent)
    monkeypatch.setattr(table_locks, "TABLE_WAIT_SECONDS", 0.3)
    monkeypatch.setattr("federator.api.lance.table_data.TABLE_WAIT_SECONDS", 0.3)
    before = len(_journal(own_service))
    with TableLocks(other, own_service.settings).hold("lake", ("Orders",)):
        for response in (_create(own_service, "orders"), own_service.post("/v1/table/lake%24orders/declare")):
            assert (response.status_code, response.json()["code"]) == (409, 14), response.text
        for address, body in (
            ("/v1/table/lake%24orders/rename", {"new_table_name": "other"}),
            ("/v1/table/lake%24other/rename", {"new_table_name": "orders"}),
            ("/AlterTable", {"name": "orders", "namespace": ["lake"], "updates": {"a": "1"}}),
        ):
            response = own_service.post(address, body)
            assert (response.status_code, response.json()["code"]) == (409, 14), (address, response.text)
        assert own_service.post("/v1/table/lake%24items/declare").status_code == 200, "another table does not wait"
    assert len(_journal(own_service)) == before + 1
    assert _create(own_service, "orders").status_code == 200
    other.close()


def test_a_lock_is_free_after_an_error(own_service: Service, tmp_path: FilePath) -> None:
    locks = TableLocks(own_service.index, own_service.settings)
    with pytest.raises(ZeroDivisionError), locks.hold("lake", ("a",)):
        raise ZeroDivisionError
    with locks.hold("lake", ("a",)), pytest.raises(ConcurrentModification), locks.hold("lake", ("A",), wait=0.0):
        pytest.fail("held twice")
    with locks.hold("lake", ("a",), ("A",), ("b",), wait=0.0), pytest.raises(ConcurrentModification):  # noqa: SIM117
        with locks.hold("lake", ("c",), ("b",), wait=0.0):
            pytest.fail("held twice")
    with locks.hold("lake", ("a",), ("b",), ("c",), wait=0.0):
        pass
