"""Table data: roles and scopes, the record of each write in audit and index, limits, and links to other tables."""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from federator.api.lance import table_metadata, table_read, table_write
from federator.api.lance.lookup import VisibleTable
from federator.api.lance.table_data import _run_write
from federator.api.lance.table_detail import table_handle
from federator.connector import CatalogError, ConfigError, ServiceUnavailable
from federator.data import TableHandle
from federator.data.process_pool import ProcessEnded, ProcessTimeout
from federator.model import TableRecord, canonical_location
from federator.settings import SourceSettings, parse_settings
from federator.store import verifications
from federator.testing.contract import unique_name
from tests.fixtures.index_content import fill, namespace
from tests.fixtures.index_content import table as record
from tests.unit.api.lance.conftest import Service, served

ROWS = pa.table({"id": range(50)})
ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def stream(rows: pa.Table = ROWS) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


QUERY: dict[str, Any] = {"k": 1, "vector": {}}
# Every route, with a body that it takes.
READS: dict[str, Any] = {
    "count_rows": {}, "stats": {}, "query": QUERY, "explain_plan": {"query": QUERY}, "analyze_plan": QUERY, "version/list": {},
    "version/describe": {}, "tags/list": {}, "tags/version": {"tag": "x"}, "branches/list": {}, "index/list": {},
    "index/{index_name}/stats": {},
}  # fmt: skip
WRITES: dict[str, Any] = {
    "restore": {"version": 1}, "tags/create": {"tag": "x", "version": 1}, "tags/update": {"tag": "x", "version": 1},
    "tags/delete": {"tag": "x"}, "branches/create": {"name": "b"}, "branches/delete": {"name": "b"},
    "create_index": {"column": "id", "index_type": "BTREE"}, "create_scalar_index": {"column": "id", "index_type": "BTREE"},
    "index/{index_name}/drop": {}, "add_columns": {"new_columns": [{"name": "z", "expression": "1"}]},
    "alter_columns": {"alterations": [{"path": "id", "rename": "z"}]}, "drop_columns": {"columns": ["id"]},
    "schema_metadata/update": {"a": "b"}, "update_field_metadata": {"updates": [{"path": "id", "metadata": {}}]},
    "update": {"updates": [["id", "1"]]}, "delete": {"predicate": "true"}, "create": None, "insert": None, "merge_insert?on=id": None,
}  # fmt: skip


def test_the_lists_below_name_every_route() -> None:
    routes = {route.path for module in (table_read, table_metadata, table_write) for route in module.router.routes}  # type: ignore[attr-defined]
    named = {f"/v1/table/{{id}}/{path.partition('?')[0]}" for path in (*READS, *WRITES)}
    assert named == routes


@pytest.fixture(scope="module")
def table(service: Service) -> str:
    """A table that nobody may change here."""
    name = unique_name("t")
    lance.write_dataset(ROWS, str(service.root / f"{name}.lance"))
    service.crawl("lake")
    return name


def ask(service: Service, path: str, body: Any, *, id: str, caller: str | None = None) -> Any:  # noqa: A002
    url = f"/v1/table/{id}/{path.replace('{index_name}', 'x')}"
    if body is None:
        options: dict[str, Any] = {"data": stream()}
        return service.ask("POST", url, caller=caller, **options)
    return service.ask("POST", url, body, caller=caller)


@pytest.mark.parametrize("path", WRITES)
def test_viewers_and_operators_cannot_write(service: Service, table: str, path: str) -> None:
    location = str(service.root / f"{table}.lance")
    for caller in ("viewer lake", "operator lake", f"writer mem,lake${table}x"):
        response = ask(service, path, WRITES[path], id=f"lake%24{table}", caller=caller)
        assert (response.status_code, response.json()["code"]) == (403, 15), response.text
    assert (lance.dataset(location).version, lance.dataset(location).tags.list()) == (1, {})


@pytest.mark.parametrize("path", READS)
def test_a_table_outside_the_scopes_is_not_found(service: Service, table: str, path: str) -> None:
    hidden = ask(service, path, READS[path], id=f"lake%24{table}", caller="admin mem")
    missing = ask(service, path, READS[path], id="lake%24nothing", caller="admin mem")
    assert (hidden.status_code, hidden.json()["code"]) == (missing.status_code, missing.json()["code"]) == (404, 4)
    assert hidden.json()["error"].replace(table, "nothing") == missing.json()["error"]


@pytest.mark.parametrize("path", [*READS, *WRITES])
def test_a_source_may_have_its_tables_left_alone(service: Service, path: str) -> None:
    root = Path(service.settings.source("shut").properties["root"])
    if not (root / "t.lance").exists():
        lance.write_dataset(ROWS, str(root / "t.lance"))
        service.crawl("shut")
    response = ask(service, path, {**READS, **WRITES}[path], id="shut%24t")
    assert (response.status_code, response.json()["code"]) == (406, 0)
    assert "data_operations = false" in response.json()["error"]
    assert lance.dataset(str(root / "t.lance")).version == 1


def test_a_write_is_in_the_audit_and_in_the_index_at_once(service: Service) -> None:
    name = unique_name("written")
    location = service.root / f"{name}.lance"
    lance.write_dataset(ROWS, str(location))
    service.crawl("lake")
    id = f"lake%24{name}"  # noqa: A001
    created = ask(service, "insert", None, id=id, caller=f"writer lake${name}")
    assert created.json() == {"num_inserted_rows": 50, "version": 2}
    with service.index.read() as connection:
        canonical = canonical_location(str(location))
        result = verifications.find_verification(connection, "lake", canonical)
    assert result is not None
    assert (result.state, result.version, result.rows, result.checked_through) == ("valid", 2, 100, "lake")
    assert ask(service, "delete", {"predicate": "no = 1"}, id=id).status_code == 400
    events = service.get("/api/v1/audit", params={"subject": f"lake${name}", "limit": 100}).json()["events"]
    response = [(event["kind"], event["actor"], event["detail"]["action"], event["detail"]["state"]) for event in events]
    assert sorted(response) == [("own_write", "api", "delete_rows", "failed"), ("own_write", "somebody", "insert", "done")]
    assert created.headers["Federator-Operation"] in {event["run_id"] for event in events}


def test_a_body_may_be_larger_than_other_requests(service: Service) -> None:
    name = unique_name("large")
    body = stream(pa.table({"text": ["x" * 1000] * 3000}))
    assert len(body) > 2_000_000
    url = f"{service.url}/v1/table/lake%24{name}/create"
    assert service.ask("POST", f"/v1/table/lake%24{name}/create", data=body).json()["version"] == 1, url
    rows = service.post(f"/v1/table/lake%24{name}/query", {"k": 0, "vector": {}})
    assert rows.headers["content-type"] == "application/vnd.apache.arrow.file"
    assert pa.ipc.open_file(rows.content).read_all().num_rows == 3000


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that gives and takes little."""
    limits = {"max_rows": 10, "max_bytes": 3000, "max_seconds": "2m", "processes": 1}
    with served(tmp_path_factory.mktemp("narrow"), {}, serve={"data": limits}) as running:
        lance.write_dataset(ROWS, str(running.root / "t.lance"))
        lance.write_dataset(pa.table({"text": ["x" * 1000] * 5}), str(running.root / "wide.lance"))
        running.crawl("lake")
        yield running


def test_an_answer_or_a_body_beyond_a_limit_names_it(narrow: Service) -> None:
    def refused(path: str, body: Any = None, **options: Any) -> str:
        response = narrow.ask("POST", f"/v1/table/lake%24{path}", body, **options)
        assert (response.status_code, response.json()["code"]) == (400, 13), response.text
        return str(response.json()["error"])

    assert "[serve.data] max_rows = 10" in refused("t/query", {"k": 0, "vector": {}})
    assert "[serve.data] max_bytes = 3000" in refused("wide/query", {"k": 5, "vector": {}})
    large = stream(pa.table({"id": range(2000)}))
    assert "[serve.data] max_bytes = 3000" in refused("t/insert", data=large)
    assert lance.dataset(str(narrow.root / "t.lance")).count_rows() == 50
    few = narrow.post("/v1/table/lake%24t/query", {"k": 10, "vector": {}})
    assert pa.ipc.open_file(few.content).read_all().num_rows == 10


@pytest.mark.parametrize("properties", [{}, {"aws_region": "elsewhere"}, {"aws_endpoint": "http://evil.example"}])
def test_only_the_sources_own_storage_opens_a_table(monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]) -> None:
    monkeypatch.setenv("DATA_SECRET", "hidden-secret")
    storage = {
        "storage.aws_region": "here", "storage.aws_endpoint": "http://store", "storage.aws_secret_access_key": "${DATA_SECRET}",
        "storage.aws_access_key_id": "${DATA_SECRET}",
    }  # fmt: skip
    source = SourceSettings(name="lake", impl="dir", properties={"root": "s3://lake", **storage})
    table = VisibleTable(("lake", "t"), source, TableRecord("lake", ("t",), "s3://lake/t.lance", properties))
    own = {"aws_region": "here", "aws_endpoint": "http://store"}
    unsigned = {"skip_signature": "true", "access_key_id": "anonymous", "secret_access_key": "anonymous"}
    keys = {"aws_secret_access_key": "hidden-secret", "aws_access_key_id": "hidden-secret"}
    assert table_handle(table).storage == own | (unsigned if "aws_endpoint" in properties else keys)
    assert "hidden-secret" not in repr(table_handle(table))


def test_a_store_that_hangs_keeps_nobody_else_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More requests hang than there are processes, and threads of the service; other routes, and then other tables, are answered."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        storage = {
            "storage.aws_endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}", "storage.allow_http": "true",
            "storage.aws_region": "us-east-1",
        }  # fmt: skip
        hanging = {"impl": "federator.testing:CONNECTOR", "store": unique_name("hang"), **storage}
        with served(tmp_path, {"hang": hanging}, serve={"data": {"max_seconds": "10m", "processes": 1}}) as service:
            fill(service.index, "hang", record("hang", "ns", "t"))
            pool = service.app.state.pool
            with ThreadPoolExecutor(60) as threads:
                request = [threads.submit(service.post, "/v1/table/hang%24ns%24t/count_rows") for _ in range(60)]
                while not pool._busy:
                    time.sleep(0.01)
                assert service.get("/api/v1/tree").status_code == 200
                assert service.post("/v1/table/hang%24ns%24t/describe").json()["location"] == "s3://lake/ns/t.lance"
                assert not any(item.done() for item in request)
                # The one that hangs is ended, and those that wait for its process are refused.
                monkeypatch.setattr(pool, "_run_operation", refuse)
                os.kill(next(iter(pool._busy)).pid, signal.SIGKILL)
                codes = sorted(item.result().json()["code"] for item in request)
    assert codes == [17] * 59 + [18]


def refuse(*_: Any, **__: Any) -> None:
    raise ServiceUnavailable("no more of this")


@pytest.mark.parametrize("error", [ProcessTimeout("no answer"), ProcessEnded("it ended")])
def test_a_write_that_nobody_heard_of_may_have_been_made(error: CatalogError) -> None:
    def ask(*_: Any, **__: Any) -> None:
        raise error

    with pytest.raises(type(error), match=f"{error.message}; .* may have succeeded") as refused:
        _run_write(ask, "insert", TableHandle("/t.lance"), {})
    assert refused.value.code == error.code


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"max_row": 1}, "max_row: unknown key; allowed: max_rows, max_seconds, max_bytes, max_memory, processes"),
        ({"max_seconds": "0s"}, "max_seconds: .*a duration above 0"),
        ({"processes": 0}, "processes: "),
    ],
)
def test_a_mistake_in_the_limits_says_where_it_is(tmp_path: Path, data: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"\[serve\.data\] {message}"):
        parse_settings({"serve": {"data": data}}, tmp_path / "federator.toml")


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Service]:
    """Tables that refer to the hidden table ``vault``: a shallow clone, a linked directory and a linked file. The root is a mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "mount").symlink_to(disk)
    vault = lance.write_dataset(pa.table({"a": [1, 2, 3]}), str(disk / "vault.lance"))
    vault.tags.create("now", 1)
    vault.shallow_clone(str(disk / "clone.lance"), "now")
    for name in ("directory", "file", "own"):
        shutil.copytree(disk / "vault.lance", disk / f"{name}.lance")
    shutil.rmtree(disk / "directory.lance" / "data")
    (disk / "directory.lance" / "data").symlink_to(disk / "vault.lance" / "data")
    (data,) = (disk / "file.lance" / "data").iterdir()
    data.unlink()
    data.symlink_to(disk / "vault.lance" / "data" / data.name)
    (disk / "whole.lance").symlink_to(disk / "vault.lance")
    lance.dataset(str(disk / "own.lance")).create_branch("b")
    sources = {"s": {"impl": "dir", "root": f"{tmp_path}/mount"}, "open": {"impl": "dir", "root": str(disk)}}
    sources["open"]["allowed_bases"] = [f"{tmp_path}/mount/vault.lance"]  # type: ignore[assignment]
    with served(tmp_path, sources) as service:
        service.crawl("s")
        service.crawl("open")
        yield service


def test_a_table_gives_no_rows_of_a_hidden_one(linked: Service) -> None:
    def count(table: str, caller: str) -> Any:
        response = linked.post(f"/v1/table/{table.replace('$', '%24')}/count_rows", caller=caller)
        return response.json() if response.status_code == 200 else (response.status_code, response.json()["code"])

    for name in ("clone", "directory", "file", "whole"):
        assert count(f"s${name}", f"viewer s${name}") == (403, 15), name
        query = linked.post(f"/v1/table/s%24{name}/query", {"k": 9, "vector": {}}, caller=f"viewer s${name}")
        assert query.status_code == 403
        assert "vault" not in query.text
        assert count(f"s${name}", f"viewer s${name},s$vault") == 3, "a caller who may see the table may read through the other"
        assert count(f"open${name}", f"viewer open${name}") == 3, "the source allows it"
    assert count("s$own", "viewer s$own") == 3
    branch = linked.post("/v1/table/s%24own/count_rows", {"branch": "b"}, caller="viewer s$own")
    assert branch.json() == 3, "a branch refers to its own table"


def test_links_above_a_table_lead_to_no_hidden_one(tmp_path: Path) -> None:
    """A hidden table is declared through a link above it, and a visible one is behind a link below the root of its source."""
    for name in ("payroll/salaries", "payroll/free", "team/own"):
        lance.write_dataset(pa.table({"a": [1, 2, 3]}), str(tmp_path / "disk" / f"{name}.lance"))
    (tmp_path / "alias").symlink_to(tmp_path / "disk" / "payroll")
    (tmp_path / "mount").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "team" / "linked").symlink_to(tmp_path / "disk" / "payroll")
    (tmp_path / "disk" / "team" / "whole.lance").symlink_to(tmp_path / "disk" / "payroll" / "salaries.lance")
    (tmp_path / "disk" / "team" / "open.lance").symlink_to(tmp_path / "disk" / "payroll" / "free.lance")
    memory = {"impl": "federator.testing:CONNECTOR", "root": f"{tmp_path}/mount"}
    sources = {name: {**memory, "store": unique_name(name)} for name in ("s", "hidden")}
    tables = {
        "whole": "team/whole", "open": "team/open", "own": "team/own", "behind": "team/linked/salaries", "free": "team/linked/free",
    }  # fmt: skip
    with served(tmp_path, sources) as service:
        fill(service.index, "s", *(record("s", "ns", n, location=f"{tmp_path}/mount/{at}.lance") for n, at in tables.items()))
        fill(service.index, "hidden", record("hidden", "ns", "salaries", location=f"{tmp_path}/alias/salaries.lance"))

        def count(name: str, caller: str) -> Any:
            response = service.post(f"/v1/table/s%24ns%24{name}/count_rows", caller=caller)
            return response.json() if response.status_code == 200 else (response.status_code, response.json()["code"])

        for name in ("whole", "behind"):
            assert count(name, "viewer s$ns") == (403, 15), name
            assert count(name, "viewer s$ns,hidden") == 3, "a caller who may see the table may read through the other"
        assert count("own", "viewer s$ns") == 3
        for name in ("open", "free"):
            assert count(name, "viewer s$ns") == (403, 15), "the target may be a table of the other source, which has this root"
            assert count(name, "viewer s,hidden") == 3, name


def test_a_writer_registers_no_path_of_the_host_outside_its_source(tmp_path: Path) -> None:
    for name in ("private", "shared", "root"):
        lance.write_dataset(ROWS, str(tmp_path / name / "t.lance"))
    (tmp_path / "root" / "link").symlink_to(tmp_path / "private")
    memory = {
        "impl": "federator.testing:CONNECTOR",
        "root": str(tmp_path / "root"),
        "allowed_bases": [str(tmp_path / "shared")],
    }
    with served(tmp_path, {"s": {**memory, "store": unique_name("s")}}) as service:
        fill(service.index, "s", namespace("s", "ns"))
        service.post("/v1/namespace/s%24ns/create")

        def register(name: str, location: str, caller: str | None) -> Any:
            return service.post(f"/v1/table/s%24ns%24{name}/register", {"location": location}, caller=caller)

        inside = f"{tmp_path}/root/../private/t.lance"
        hosts = [f"file://{host}{tmp_path}/private/t.lance" for host in ("x", "127.0.0.1", "%2e%2e", "x.y:1")]
        paths = ["file:/etc", f"{tmp_path}/private/t.lance", f"file:{inside}", f"{tmp_path}/root/link/t.lance"]
        for location in (*paths, *hosts, f"FILE+uring://{tmp_path}/private/t.lance"):
            for caller in ("writer s", "admin *"):
                refused = register("t", location, caller)
                assert (refused.status_code, refused.json()["code"]) == (403, 15), (location, refused.text)
        for location in (f"{tmp_path}/root/t.lance\n", "s3://lake/t.lance\r\n", "s3://lake/\x1bt.lance"):
            for caller in ("writer s", None):
                odd = register("t", location, caller)
                assert (odd.status_code, odd.json()["code"]) == (400, 13), (location, odd.text)
        broken = service.post(
            "/v1/namespace/s%24broken/create", {"properties": {"location": "s3://lake/x\n"}}, caller="writer s"
        )
        assert (broken.status_code, broken.json()["code"]) == (400, 13), broken.text
        properties = {"properties": {"location": f"file:{tmp_path}/private"}}
        assert service.post("/v1/namespace/s%24other/create", properties, caller="writer s").status_code == 403
        for name, location in (("own", "root"), ("shared", "shared")):
            assert register(name, f"{tmp_path}/{location}/t.lance", "writer s").status_code == 200
            assert service.post(f"/v1/table/s%24ns%24{name}/count_rows", caller="writer s").json() == len(ROWS)
        assert register("any", f"{tmp_path}/private/t.lance", None).status_code == 200, "the user of this machine"
        # Lance ignores the host of a file URI and opens the path on this machine, so the service does not open such a table at all.
        assert register("host", f"file://x{tmp_path}/private/t.lance", None).status_code == 200
        denied = service.post("/v1/table/s%24ns%24host/count_rows", caller="admin *")
        assert (denied.status_code, denied.json()["code"]) == (403, 15), denied.text
