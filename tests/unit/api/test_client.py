"""``federator.client``: its requests and models against the OpenAPI document, and against services that run."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from federator.api.app import create_app
from federator.client import ApiError, AsyncClient, Client, ClientError, ServiceUnreachable, WaitTimeout, calls, models
from federator.client.calls import Call
from federator.client.display import Listing
from federator.settings import Settings, parse_settings
from federator.store import Index
from tests.fixtures.serving import loopback_listener, serve_app
from tests.unit.api.conftest import ODD
from tests.unit.api.service_process import Process

#: one call of each function, with all of its parameters
CALLS: dict[str, Call[Any]] = {
    "get_overview": calls.get_overview(),
    "get_principal": calls.get_principal(),
    "list_children": calls.list_children("lake", cursor="c"),
    "get_table": calls.get_table("lake$sales$orders"),
    "explain": calls.explain("lake$sales$orders"),
    "search": calls.search("orders", cursor="c"),
    "list_drift": calls.list_drift(kind="k", severity="high", source="lake", cursor="c"),
    "list_sources": calls.list_sources(cursor="c"),
    "get_source": calls.get_source("lake"),
    "list_mirrors": calls.list_mirrors(cursor="c"),
    "get_mirror": calls.get_mirror("m"),
    "list_runs": calls.list_runs(cursor="c"),
    "get_run": calls.get_run("r"),
    "request_run": calls.request_run("sync", mirrors=["m"]),
    "cancel_run": calls.cancel_run("r"),
    "get_request": calls.get_request(1),
    "list_plans": calls.list_plans(mirror="m", state="held", run="r", digest="9f2c", cursor="c"),
    "get_plan": calls.get_plan("d"),
    "approve_plan": calls.approve_plan("d"),
    "reject_plan": calls.reject_plan("d"),
    "apply_plan": calls.apply_plan("d"),
}
#: fields of the API that the client leaves out, because it does not request them
LEFT_OUT = {("Me", "csrf_token"), ("Tree", "as_of"), ("SearchResults", "facets")}
MODELS = sorted(
    (
        model
        for model in vars(models).values()
        if isinstance(model, type) and issubclass(model, models.Model) and model is not models.Model
    ),
    key=lambda model: model.__name__,
)


@cache
def document() -> dict[str, Any]:
    app = create_app(parse_settings({"index": {"url": "sqlite://"}}, Path("federator.toml")))
    return app.openapi()


def shape(schema: dict[str, Any]) -> Any:
    """The type that a JSON schema describes, without descriptions, limits and enumerations of texts."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return frozenset(shape(part) for part in schema["anyOf"])
    if "prefixItems" in schema:
        return tuple(shape(part) for part in schema["prefixItems"])
    if schema.get("type") == "array":
        return ("array", shape(schema["items"]))
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return ("object", shape(values) if isinstance(values, dict) else None)
    return (schema.get("type"), schema.get("format"))


@pytest.mark.parametrize("name", CALLS)
def test_requests_are_those_of_the_document(name: str) -> None:
    call = CALLS[name]
    operation = document()["paths"][call.route][call.method.lower()]
    declared = {(p["in"], p["name"].lower()): p for p in operation.get("parameters", [])}
    used = {("path", key) for key in call.path} | {("query", key) for key in call.query}
    used |= {("header", key.lower()) for key in call.headers}
    assert used <= declared.keys()
    assert {key for key, parameter in declared.items() if parameter.get("required")} <= used
    for key, value in call.query.items():
        limits = declared["query", key]["schema"]
        assert limits.get("minimum", value) <= value <= limits.get("maximum", value) if isinstance(value, int) else True
    assert (call.body is not None) == ("requestBody" in operation)
    if call.body is not None:
        body = document()["components"]["schemas"][shape(operation["requestBody"]["content"]["application/json"]["schema"])]
        assert call.body.keys() == body["properties"].keys()
    (success,) = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    response = shape(success["content"]["application/json"]["schema"])
    assert call.model.__name__ in (response if isinstance(response, frozenset) else {response})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_models_are_those_of_the_document(model: type[models.Model]) -> None:
    declared = document()["components"]["schemas"][model.__name__]
    own = model.model_json_schema(by_alias=True)
    own = own["$defs"][model.__name__] if "$defs" in own and model.__name__ in own["$defs"] else own
    left_out = {field for name, field in LEFT_OUT if name == model.__name__}
    assert own["properties"].keys() | left_out == declared["properties"].keys()
    for name, schema in own["properties"].items():
        assert shape(schema) == shape(declared["properties"][name]), name
        assert (name in own["required"]) <= (name in declared["required"]), f"{name} may be missing"


def test_each_function_is_compared() -> None:
    functions = {
        name for name, value in vars(calls).items() if inspect.isfunction(value) and value.__module__ == calls.__name__
    }
    assert {name for name in functions if not name.startswith("_")} == CALLS.keys()
    used = {model.__name__ for model in MODELS}
    assert {call.model.__name__ for call in CALLS.values()} <= used


def test_both_clients_have_the_same_methods() -> None:
    def methods(client: type) -> dict[str, list[str]]:
        public = {name: value for name, value in vars(client).items() if inspect.isfunction(value) and not name.startswith("_")}
        return {name: [*inspect.signature(value).parameters] for name, value in public.items()}

    assert methods(Client) == methods(AsyncClient)
    assert all(inspect.iscoroutinefunction(getattr(AsyncClient, name)) for name in methods(AsyncClient))
    assert CALLS.keys() <= methods(Client).keys()


class Both:
    """Calls a method of both clients and compares their results."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url, self._token = url, token

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            async def awaited() -> Any:
                async with AsyncClient(self._url, token=self._token) as client:
                    return await getattr(client, name)(*arguments, **options)

            with Client(self._url, token=self._token) as client:
                result = getattr(client, name)(*arguments, **options)
            assert asyncio.run(awaited()) == result
            return result

        return call


@pytest.fixture
def service(index: Index, settings_of: Callable[..., Settings]) -> Iterator[str]:
    with serve_app(create_app(settings_of())) as url:
        yield url


@pytest.fixture
def both(service: str) -> Both:
    return Both(service)


def test_reads(both: Both) -> None:
    assert "lake" in [source.name for source in both.list_sources()]
    assert both.get_source("lake").freshness.state == "partial"
    assert both.get_overview().tables == 40
    assert both.get_principal().role == "admin"
    table = both.get_table("lake$sales$orders")
    assert (table.columns, table.dataset.rows, table.properties["aws.secret_access_key"]) == (
        [{"name": "id", "type": "bigint"}], 10, "(masked)",
    )  # fmt: skip
    assert table.dataset.checked_at == datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)
    assert both.explain("lake$sales$orders").id == "lake$sales$orders"
    assert both.search("orders").nodes[0].id == "lake$sales$orders"
    mirror = both.get_mirror("m")
    assert (mirror.origin, mirror.target) == ("lake", "copy")
    assert [mirror.name for mirror in both.list_mirrors()] == ["m"]
    assert both.list_plans() == both.list_runs() == both.list_drift() == []


def test_names_of_every_kind_are_read_back(both: Both) -> None:
    nodes = both.list_children("lake$odd")
    assert {node.name for node in nodes} == set(ODD)
    for node in nodes:
        assert both.get_table(node.id).path == ["odd", node.name]


def test_pages_are_collected(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = calls.list_children
    monkeypatch.setattr(calls, "list_children", lambda path, *, cursor: whole(path, limit=4, cursor=cursor))
    names = [node.name for node in both.list_children("lake$sales")]
    assert len(names) == len(set(names)) == 27


def test_refusals_are_errors_with_their_code(both: Both) -> None:
    with pytest.raises(ApiError, match="404 Table not found") as caught:
        both.get_table("lake$sales$absent")
    assert (caught.value.status, caught.value.code) == (404, 4)
    with pytest.raises(ApiError) as caught:
        both.request_run("crawl", sources=["absent"])
    assert caught.value.status in (400, 404)


def test_a_token_is_sent_and_never_shown(index: Index, settings_of: Callable[..., Settings], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken-of-the-test")
    with serve_app(create_app(settings_of(serve={"token": f"file:{tmp_path / 'token'}"}))) as url:
        assert Both(url, "t0ken-of-the-test").get_principal().role == "admin"
        with pytest.raises(ApiError, match="401") as caught:
            Both(url, "wr0ng-token").get_principal()
        assert "wr0ng" not in str(caught.value)
        assert "t0ken" not in repr(Client(url, token="t0ken-of-the-test"))


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_token_that_no_header_can_have_is_refused_without_showing_it(client: type[Any]) -> None:
    with pytest.raises(ClientError) as refused:
        client("http://127.0.0.1:9", token="lft_secret\nX-Header: 1")
    assert "lft_secret" not in str(refused.value)


def test_a_request_is_queued_once_and_waits_for_a_worker(service: str, both: Both) -> None:
    with Client(service) as client:
        request = client.request_run("crawl", sources=["lake"])
        assert (request.state, request.run_id) == ("queued", None)
        assert both.get_request(request.id) == request
        with pytest.raises(WaitTimeout, match="has not finished"):
            client.wait_for_run(request, timeout=0.02, interval=0.01)


def test_waiting_for_freshness_names_the_stale_sources(both: Both) -> None:
    with pytest.raises(WaitTimeout, match=r"not crawled since .*: lake"):
        both.wait_for_freshness(["lake"], since=datetime.now(UTC) + timedelta(days=1), timeout=0.02, interval=0.01)
    with pytest.raises(ClientError, match="no source 'absent'; known: "):
        both.wait_for_freshness(["absent"], since=datetime.now(UTC))


def test_another_server_is_recognised() -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        page = "<html><script>alert(1)</script></html>"
        return {
            "/api/v1/me": httpx.Response(200, json={"name": "x"}),
            "/api/v1/overview": httpx.Response(502, html=page),
        }.get(request.url.path, httpx.Response(302, headers={"location": "http://other.invalid/"}))

    client = Client("http://127.0.0.1:1", token="t", transport=httpx.MockTransport(respond))
    with pytest.raises(ClientError, match="the response is not a Me: role is missing or of another type"):
        client.get_principal()
    with pytest.raises(ClientError, match=r"^502 from 127.0.0.1, not from the service \(text/html; charset=utf-8\)$"):
        client.get_overview()
    with pytest.raises(ClientError, match="302 from"):
        client.list_runs()


def test_no_service_is_an_error_of_the_client() -> None:
    with loopback_listener() as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ServiceUnreachable, match=f"^{url} did not respond: .*(refused|attempts failed)"):
        Both(url).get_overview()

    def wait_in_vain(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("", request=request)

    with pytest.raises(ServiceUnreachable, match=f"^{url} did not respond: the time for it has passed$"):
        Client(url, transport=httpx.MockTransport(wait_in_vain)).get_overview()


def test_notebooks_show_tables_with_escaped_values() -> None:
    run = {
        "id": "r", "kind": "crawl", "state": "failed", "trigger": "api", "actor": "<b>", "started_at": "2026-01-31T12:00:00Z",
        "finished_at": None, "progress": None, "summary": {"a": "<i>"}, "error": "[red]x[/red]", "later": 1,
    }  # fmt: skip
    listing = Listing([models.Run.model_validate(run)])
    html = listing._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<th>summary</th>" not in html
    assert "<i>" not in listing[0]._repr_html_()
    assert "&lt;i&gt;" in listing[0]._repr_html_()
    console = Console(width=200, file=io.StringIO())
    console.print(listing)
    assert "[red]x[/red]" in console.file.getvalue()  # type: ignore[attr-defined]
    assert Listing()._repr_html_().startswith("<table>")


def test_runs_are_requested_and_awaited(start: Callable[..., Process]) -> None:
    """A whole service with its worker: a crawl, and the freshness that follows from it."""
    url = start("all").url()
    began = datetime.now(UTC)
    with Client(url) as client:
        run = client.wait_for_run(client.request_run("crawl", sources=["lake"]), timeout=240, interval=0.2)
        assert (run.kind, run.state, [source.source for source in run.sources]) == ("crawl", "ok", ["lake"])
        (lake,) = client.wait_for_freshness(["lake"], since=began, timeout=1, interval=0.1)
        assert lake.tables == 2
        assert [listed.id for listed in client.list_runs()] == [run.id]


def test_the_first_example_of_its_page_runs(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "client.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    assert '"https://federator.example"' in code
    exec(code.replace("https://federator.example", service), {})
    assert capsys.readouterr().out.splitlines()[-1] == "[{'name': 'id', 'type': 'bigint'}] 10"
