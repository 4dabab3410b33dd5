"""The snippets of a table open exactly this table: they are run with pylance, lancedb and DuckDB against the service."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest

from federator.lance.snippets import TOKEN_VARIABLE, build_snippets
from federator.model import Kind, path_key
from federator.model.scopes import Scopes
from federator.store import tokens
from federator.testing.contract import unique_name
from tests.fixtures.index_content import fill, table
from tests.unit.api.lance.conftest import Service, served

_NAMES = ["orders", "dol$lar", "a b+c%20/d", "it's \"`q`\\ \u202egnp.\U0001f600\t"]


def _snippets(service: Service, *path: str) -> dict[str, str]:
    response = service.get(f"/api/v1/snippets/{quote(path_key(path), safe='')}")
    assert response.status_code == 200, response.text
    return {each["client"]: each["code"] for each in response.json()["snippets"]}


def _run(code: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(code, "snippet", "exec"), scope)
    return scope


@pytest.mark.parametrize("number", range(len(_NAMES)))
def test_each_client_opens_this_table_and_no_other(service: Service, tmp_path: Path, capsys: Any, number: int) -> None:
    _, namespace = service.namespace()
    for rows, name in enumerate(_NAMES, start=1):
        location = str(tmp_path / f"{rows}.lance")
        lance.write_dataset(pa.table({"id": list(range(rows)), "mark": [f"row of table {rows}"] * rows}), location)
        fill(service.index, "mem", table("mem", namespace, name, location=location))
    code = _snippets(service, "mem", namespace, _NAMES[number])
    assert list(code) == ["pylance", "lancedb", "spark", "duckdb"]
    assert all(text.isprintable() for snippet in code.values() for text in snippet.splitlines())
    assert _run(code["pylance"])["dataset"].count_rows() == number + 1
    assert _run(code["lancedb"])["table"].count_rows() == number + 1
    capsys.readouterr()
    _run(code["duckdb"])
    printed = capsys.readouterr().out
    assert printed.count(f"row of table {number + 1}") == number + 1


@pytest.mark.parametrize("name", _NAMES)
def test_the_spark_code_is_valid_python_with_the_table_as_an_identifier(name: str) -> None:
    """It is not run: the connector's jars are not among those that the tests fetch."""
    (code,) = (
        build_snippet.code
        for build_snippet in build_snippets("http://h:1", ("mem", name), requires_token=True)
        if build_snippet.client == "spark"
    )
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    settings = {ast.literal_eval(call.args[0]): call.args[1] for call in calls if call.func.attr == "config"}  # type: ignore[attr-defined]
    assert ast.literal_eval(settings["spark.sql.catalog.federator.uri"]) == "http://h:1"
    assert TOKEN_VARIABLE in ast.unparse(settings["spark.sql.catalog.federator.headers.Authorization"])
    (identifier,) = (ast.literal_eval(call.args[0]) for call in calls if call.func.attr == "table")  # type: ignore[attr-defined]
    assert re.sub(r"`(?:[^`]|``)*`", "_", identifier) == "federator._._"
    assert [part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)*)`", identifier)] == ["mem", name]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("guarded"), {}, serve={"auth": "required"}) as running:
        yield running


def test_a_token_is_read_from_the_environment(guarded: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    lance.write_dataset(pa.table({"id": [1, 2, 3]}), str(guarded.root / "orders.lance"))
    guarded.crawl("lake")
    secret, _ = tokens.create_token(
        guarded.index, unique_name("snippets"), role="viewer", scopes=Scopes.parse(["lake"]), lifetime=None, actor="tests"
    )
    response = guarded.get("/api/v1/snippets/lake%24orders", params={"uri": f"{guarded.url}/"}, auth=("any", secret))
    assert response.status_code == 200
    assert secret not in response.text
    code = {each["client"]: each["code"] for each in response.json()["snippets"]}
    for client, name in (("pylance", "dataset"), ("lancedb", "table"), ("duckdb", "dataset")):
        monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
        with pytest.raises(KeyError, match=TOKEN_VARIABLE):
            _run(code[client])
        monkeypatch.setenv(TOKEN_VARIABLE, "wrong")
        with pytest.raises(Exception, match=r"(?i)unauthenticated|token is unknown|401"):
            _run(code[client])
        monkeypatch.setenv(TOKEN_VARIABLE, secret)
        assert _run(code[client])[name].count_rows() == 3


@pytest.mark.parametrize(
    "uri",
    ["http://user:pass@h", "http://h/?token=x", "http://h/#x", "file:///etc", "javascript:1", "", "http://[", "http://a\nb",
     "http://h:99999", "http://h:", "http://h?", "http://h#", "http://a\\@h", "http://@h", "http://a b", "http:///x", "http://h/'x", "http://[::1",
     "http://\u212a", "http://h:\u0661", "ftp://h", "http://h/\u200b"],
)  # fmt: skip
def test_an_address_is_one_of_a_service(service: Service, uri: str) -> None:
    _, namespace = service.namespace()
    fill(service.index, "mem", table("mem", namespace, "t"))
    response = service.get(f"/api/v1/snippets/mem%24{namespace}%24t", params={"uri": uri})
    assert (response.status_code, response.json()["code"]) == (400, 13)


@pytest.mark.parametrize("uri", ["http://h", "HTTPS://a_b.example:8443/federator/", "http://127.0.0.1:1", "http://[::1]:8042"])
def test_an_address_is_in_the_code(service: Service, uri: str) -> None:
    _, namespace = service.namespace()
    fill(service.index, "mem", table("mem", namespace, "t"))
    response = service.get(f"/api/v1/snippets/mem%24{namespace}%24t", params={"uri": uri})
    assert all(uri.rstrip("/") in snippet["code"] for snippet in response.json()["snippets"])


def test_a_table_that_clients_cannot_open_has_no_code(service: Service) -> None:
    _, namespace = service.namespace()
    fill(
        service.index, "mem", table("mem", namespace, "managed", kind=Kind.MANAGED_TABLE),
        table("mem", namespace, "undescribed", kind=Kind.UNDESCRIBED, problem="timeout"),
        table("mem", namespace, "bare", location=None),
    )  # fmt: skip
    for name, obstacle in (("managed", "managed by its catalog"), ("undescribed", "could not describe"), ("bare", "stored")):
        body = service.get(f"/api/v1/snippets/mem%24{namespace}%24{name}").json()
        assert body["snippets"] == []
        assert obstacle in body["obstacle"]
