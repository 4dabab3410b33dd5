"""Objects outside the scopes: each response equals, byte for byte, that of a service without these objects."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from federator.api.app import create_app
from federator.api.paging import encode_cursor
from federator.model import ROOT, Coverage, failed_evidence
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import Settings
from federator.store import Index, coverage, migrations, open_index, revisions
from federator.store.leases import acquire_lease
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api import linked_tables, worlds
from tests.unit.api.conftest import Api
from tests.unit.api.worlds import HIDDEN, IN_PART, ORDERS, RUN_BOTH, RUN_HIDDEN, RUN_SEEN, SEEN


@dataclass
class Pair:
    """Two services for one principal: ``plain`` has only what the principal's scopes cover, ``rich`` has hidden objects, too.

    ``plans`` are the digests of the rich service's plans by mirror.
    """

    plain: Api
    rich: Api
    plans: dict[str, str]
    # Over PostgreSQL every third URL is enough: only the comparison of texts differs there, not the routes' queries.
    step: int = 1

    def require_equal(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Send a request to both services, compare status, body and headers, and return the response."""
        first, other = self.plain.ask(method, url, **options), self.rich.ask(method, url, **options)
        assert (first.status_code, first.content) == (other.status_code, other.content), url
        assert {**first.headers, "date": ""} == {**other.headers, "date": ""}, url
        return first


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    if request.param == "postgresql":
        created = _create_databases(request.getfixturevalue("postgres_url"))
    else:
        created = [f"sqlite:///{tmp_path_factory.mktemp(name)}/federator.db" for name in ("plain", "rich")]
    apis: list[Api] = []
    indexes: list[Index] = []
    disk = tmp_path_factory.mktemp("disk")
    digests: dict[str, str] = {}
    for rich, url in zip((False, True), created, strict=False):
        index = open_index(url)
        indexes.append(index)
        migrations.upgrade_schema(index)
        digests = worlds.build(index, visible=EVERYTHING if rich else SEEN, disk=disk)
        settings = worlds.settings(_settings_of(tmp_path_factory.mktemp("settings"), url), visible=EVERYTHING if rich else SEEN)
        apis.append(worlds.api(index, settings))
    yield Pair(apis[0], apis[1], digests, 1 if request.param == "sqlite" else 3)
    for api in apis:
        api.app.state.index.close()
    for index in indexes:
        index.close()
    if request.param == "postgresql":
        for url in created:
            _execute(request.getfixturevalue("postgres_url"), f'DROP DATABASE "{make_url(url).database}" WITH (FORCE)')


def _settings_of(folder: Path, url: str) -> Callable[..., Settings]:
    from federator.settings import parse_settings

    return lambda **raw: parse_settings({"instance": {"id": "test"}, "index": {"url": url}, **raw}, folder / "federator.toml")


def _create_databases(server: str) -> list[str]:
    """Create two databases and return their URLs."""
    names = [f"t_{uuid.uuid4().hex[:12]}" for _ in range(2)]
    for name in names:
        _execute(server, f'CREATE DATABASE "{name}"')
    return [make_url(server).set(database=name).render_as_string(hide_password=False) for name in names]


def _execute(server: str, statement: str) -> None:
    target: dict[str, Any] = make_url(server).translate_connect_args(username="user", database="dbname")
    with psycopg.connect(**target, autocommit=True, connect_timeout=30) as connection:
        connection.execute(statement)


IDS = (
    "", "lake", "lake$sales", "lake$sales$eu", "lake$sales$orders", "copy$s$orders", "spare$s$orders", "lake$payroll",
    "lake$payroll$salaries",
    "lake$payroll$orders", "lake$salesx", "lake$salesx$orders", "lake$Sales$orders", "lake$sale", "lake$sale$secret%24sales",
    "lake$secret",
    *linked_tables.LINKED, *linked_tables.LINKED.values(), "copy$s$plain",
    "vault", "vault$s", "vault$s$orders", "nope", "nope$s$t", "lake$nope", "lake$nope$t", "lake$sales$nope",
)  # fmt: skip
LOCATIONS = (ORDERS, "s3://lake/payroll/salaries.lance", f"{ORDERS}/secret/y.lance", "s3://lake/sales", "s3://lake/nope.lance")
WORDS = (
    "orders",
    "salaries",
    "secret",
    "lake",
    "vault",
    "payroll",
    "eu",
    "s3",
    "owner:secret",
    "source:vault",
    "namespace:payroll",
    "o*",
    "*",
)
#: by GET route of the federator's own API: values of its parameters, or queries
READS: dict[str, list[str]] = {
    "/api/v1/overview": [""],
    "/api/v1/overview/history": ["", "?days=366"],
    "/api/v1/suggest": [*(f"?q={quote(word[:end])}" for word in WORDS for end in (1, 4)), "?q=s%24ord", "?q=o&limit=1"],
    "/api/v1/tree": [
        *(f"?path={quote(key)}&depth={depth}" for key in IDS for depth in (1, 3)), "?limit=1", "?path=lake&limit=1", "?view=merged",
        "?view=merged&depth=3", "?view=merged&depth=3&as_of=12", "?view=merged&as_of=1970-01-02", "?depth=3&as_of=1970-01-02",
        "?view=merged&path=s", "?view=merged&path=payroll",
        *(f"?path={quote(key)}&sort={order}&with=verified&counts=true&limit=1" for key in IDS for order in ("-rows", "state")),
        "?as_of=12", "?as_of=run-1", *(f"?as_of={run}" for run in (RUN_BOTH, RUN_HIDDEN, RUN_HIDDEN[:11])),
        f"?view=merged&as_of={RUN_HIDDEN}",
    ],
    "/api/v1/tables/{id}": [quote(quote(key), safe="") if "%" in key else quote(key, safe="") for key in IDS if key],
    "/api/v1/search": [
        *(f"?q={quote(word)}&facets={facets}" for word in WORDS for facets in ("true", "false")), "?q=orders&limit=1",
    ],
    "/api/v1/datasets": [
        "", "?conflicts=true", "?several=true", "?state=valid", "?state=unverified", "?limit=1",
        f"?as_of={RUN_BOTH}", f"?as_of={RUN_HIDDEN}",
        *(f"?declared_in={name}" for name in ("lake", "vault", "no")),
    ],
    "/api/v1/datasets/{location}": [quote(location, safe="") for location in LOCATIONS],
    "/api/v1/drift": [
        "", "?limit=1", "?kind=duplicate", "?severity=high", "?source=lake", "?source=vault", "?source=nope", "?resolved=true",
        *(f"?below={quote(key)}" for key in IDS),
    ],
    "/api/v1/drift/counts": ["", "?source=lake", "?source=vault", "?source=nope", "?resolved=true"],
    "/api/v1/snapshots": ["", "?limit=1"],
    "/api/v1/diff": [
        "?from=run-1&to=run-2", "?from=run-1&to=run-2&path=lake$payroll", "?from=run-1&to=run-2&source=vault",
        "", "?source=", f"?from={RUN_SEEN}&to={RUN_BOTH}", f"?from={RUN_SEEN}&to={RUN_BOTH}&path=lake$payroll", f"?from={RUN_HIDDEN}",
        f"?from={RUN_SEEN}&to={RUN_BOTH}&newest=true",
        f"?from={RUN_SEEN}&to={RUN_HIDDEN}", f"?to={RUN_HIDDEN}", f"?from={RUN_HIDDEN[:11]}", "?from=0",
    ],
    **{
        f"/api/v1/{view}/{{id}}": [quote(quote(key), safe="") if "%" in key else quote(key, safe="") for key in IDS if key]
        for view in ("graph", "schema", "snippets")
    },
    "/api/v1/explain/{id}": [quote(key, safe="") for key in IDS if key and "%" not in key],
    "/api/v1/me": [""],
    "/api/v1/me/sessions": [""],
    "/api/v1/sources": [""],
    "/api/v1/sources/{name}": ["lake", "copy", "spare", "vault", "nope"],
    "/api/v1/sources/{name}/coverage": ["lake", "vault", "nope"],
    "/api/v1/runs": [
        "", "?limit=1", "?kind=crawl", "?kind=sync", "?since=-2d", "?since=nope",
        *(f"?subject={subject}" for subject in ("lake", "vault", "open", "hidden", "half", "nope")),
        *(f"?state={state}&limit={limit}" for state in ("ok", "partial", "failed", "held", "running") for limit in (1, 20)),
    ],
    "/api/v1/runs/{id}": [RUN_SEEN, RUN_BOTH, RUN_HIDDEN, "nope", RUN_HIDDEN[:12]],
    "/api/v1/runs/{id}/events": [RUN_SEEN, RUN_HIDDEN, "nope"],
    "/api/v1/events": ["?seconds=0"],
    "/api/v1/requests/{id}": ["1", "2", "3", "99"],
    "/api/v1/plans": [
        "", "?mirror=open", "?mirror=hidden", "?mirror=half", "?mirror=nope", "?state=held",
        *(f"?digest={digit}" for digit in "0123456789abcdef"),
        "?digest=nope",
    ],
    "/api/v1/plans/{digest}": ["{open}", "{hidden}", "{half}", IN_PART, "nope", "{hidden:.10}"],
    "/api/v1/mirrors": [""],
    "/api/v1/mirrors/{name}": ["open", "hidden", "half", "nope"],
    "/api/v1/jobs": [""],
    "/api/v1/audit": ["", "?subject=vault$s$orders"],
    "/api/v1/audit/state": [""],
    "/api/v1/reports": ["", "?kind=freshness"],
    "/api/v1/reports/{id}": ["00000000-0000-0000-0000-000000000000", "nope"],
    "/api/v1/reports/{id}/{name}": ["nope/x.html"],
    "/api/v1/notifications": [""],
    "/api/v1/tokens": [""],
    "/metrics": [""],
}  # fmt: skip


def iter_urls(route: str, plans: dict[str, str]) -> Iterator[str]:
    """Yield the URLs of a route: each text of ``READS`` in place of its parameters, from the first to the last, or at its end."""
    start, first, rest = route.partition("{")
    end = rest.rpartition("}")[2] if first else ""
    for text in READS[route]:
        value = text.format(**plans) if text.startswith("{") else text
        yield f"{start}{value}{end}"


@pytest.mark.parametrize("route", READS)
def test_every_read_is_the_same_as_in_a_world_without_the_rest(pair: Pair, route: str) -> None:
    for url in list(iter_urls(route, pair.plans))[:: pair.step]:
        answer = pair.require_equal("GET", url)
        assert answer.status_code < 500, (url, answer.text)
        response = (
            answer.content.replace(answer.json().get("instance", "\0").encode(), b"")
            if answer.status_code >= 400
            else answer.content
        )
        if not any(name in url for name in HIDDEN):
            assert not [name for name in HIDDEN if name.encode() in response and name not in ("sale$",)], url


LANCE: tuple[tuple[str, str, object], ...] = (
    ("GET", "/v1/namespace/{}/list", None), ("GET", "/v1/namespace/{}/list?limit=1", None),
    ("GET", "/v1/namespace/{}/table/list", None),
    ("GET", "/v1/namespace/{}/table/list?include_declared=true&limit=1", None), ("POST", "/v1/namespace/{}/describe", {}),
    ("POST", "/v1/namespace/{}/exists", {}), ("POST", "/v1/table/{}/describe", {}), ("POST", "/v1/table/{}/exists", {}),
)  # fmt: skip


@pytest.mark.parametrize(("method", "template", "body"), LANCE)
def test_the_lance_protocol_hides_the_same(pair: Pair, method: str, template: str, body: object) -> None:
    for key in ("$", *(key for key in IDS if key and "%" not in key))[:: pair.step]:
        url = template.format(quote(key, safe=""))
        response = pair.require_equal(method, url, **({} if body is None else {"json": body}))
        assert response.status_code < 500, (url, response.text)
        if not any(name in url for name in HIDDEN):
            assert not [name for name in HIDDEN if name.encode() in response.content and name != "sale$"], (url, response.text)


def test_the_list_of_all_tables_hides_the_same(pair: Pair) -> None:
    assert pair.require_equal("GET", "/v1/table").json()["tables"]
    assert pair.require_equal("GET", "/v1/table?limit=1").status_code == 200


def test_a_new_read_is_compared_too(pair: Pair) -> None:
    document = pair.plain.app.openapi()["paths"]
    own_routes = {
        path for path, operations in document.items() if "get" in operations and path.startswith(("/api/", "/metrics"))
    }
    assert own_routes <= set(READS), "name a new route in READS, with queries for objects inside and outside the scopes"


def test_what_the_scopes_cover_is_shown(pair: Pair) -> None:
    tree = pair.rich.json("/api/v1/tree?depth=3&path=lake")
    assert [(node["id"], node["coverage"], node["message"]) for node in tree["nodes"]] == [("lake$sales", "complete", None)]
    assert sorted(node["name"] for node in tree["nodes"][0]["children"]) == ["Twin", "eu", "linked", "orders", "twin"]
    assert (tree["freshness"]["state"], tree["freshness"]["message"]) == ("ok", None)
    (lake,) = [source for source in pair.rich.json("/api/v1/sources")["sources"] if source["name"] == "lake"]
    assert (lake["namespaces"], lake["tables"], lake["failed_namespaces"]) == (2, 5, 0)
    location = pair.rich.json(f"/api/v1/datasets/{quote(ORDERS, safe='')}")
    assert [declaration["id"] for declaration in location["declarations"]] == ["copy$s$orders", "lake$sales$orders"]
    assert location["holds"] == [f"{ORDERS}/_in/t.lance"]
    assert (location["inside"], location["duplicates"]) == ([], [])
    table = pair.rich.json("/api/v1/tables/copy$s$orders")
    assert [entry["mirror"] for entry in table["mirrored"]] == ["open"]
    assert [run["id"] for run in pair.rich.json("/api/v1/runs")["runs"]] == [RUN_BOTH, RUN_SEEN]
    assert pair.rich.json(f"/api/v1/runs/{RUN_BOTH}")["state"] == "ok"
    plan = pair.rich.json(f"/api/v1/plans/{IN_PART}")
    assert (plan["partial"], [outcome["state"] for outcome in plan["outcomes"]]) == (True, ["done", "skipped"])
    (summary,) = pair.rich.json("/api/v1/plans?mirror=half")["plans"]
    assert (summary["changes"], summary["done"]) == ({"declare_table": 2}, {"declare_table": 1})
    assert [job["name"] for job in pair.rich.json("/api/v1/jobs")["jobs"]] == ["crawl:copy", "crawl:spare", "sync:open"]


@pytest.mark.parametrize(
    ("template", "hidden", "missing"),
    [
        ("/api/v1/tree?path=lake${}", "payroll", "nothing"), ("/api/v1/tree?path={}", "vault", "nopes"),
        ("/api/v1/tables/lake${}$salaries", "payroll", "nothing"), ("/api/v1/tables/{}$s$orders", "vault", "nopes"),
        ("/api/v1/tables/lake$payroll${}", "salaries", "nobodies"),
        ("/api/v1/datasets/s3%3A%2F%2Flake%2F{}%2Fsalaries.lance", "payroll", "nothing"),
        ("/api/v1/graph/lake${}$salaries", "payroll", "nothing"), ("/api/v1/graph/{}$s$orders", "vault", "nopes"),
        ("/api/v1/schema/lake${}$salaries", "payroll", "nothing"), ("/api/v1/snippets/lake${}$salaries", "payroll", "nothing"),
        ("/api/v1/explain/lake${}$salaries", "payroll", "nothing"), ("/api/v1/explain/{}$s$orders", "vault", "nopes"),
        ("/api/v1/sources/{}", "vault", "nopes"), ("/api/v1/sources/{}/coverage", "vault", "nopes"),
        ("/api/v1/drift?source={}", "vault", "nopes"), ("/api/v1/datasets?declared_in={}", "vault", "nopes"),
        ("/api/v1/runs/{}", RUN_HIDDEN, RUN_HIDDEN.replace("c", "d")),
        ("/api/v1/runs/{}/events", RUN_HIDDEN, RUN_HIDDEN.replace("c", "d")),
        ("/api/v1/requests/{}", "3", "7"), ("/api/v1/mirrors/{}", "hidden", "nobody"),
    ],
)  # fmt: skip
def test_a_hidden_object_gets_the_response_of_a_missing_one(pair: Pair, template: str, hidden: str, missing: str) -> None:
    first, other = (pair.rich.get(template.format(text)) for text in (hidden, missing))
    assert (first.status_code, other.status_code) == (404, 404), first.text
    assert first.text.replace(hidden, missing) == other.text
    assert {**first.headers, "date": ""} == {**other.headers, "date": ""}


def test_writes_to_hidden_objects_are_like_writes_to_absent_ones(pair: Pair) -> None:
    apis = []
    for api, rich in ((pair.plain, False), (pair.rich, True)):
        index = api.app.state.index
        settings = worlds.settings(_settings_for(index), visible=EVERYTHING if rich else SEEN)
        apis.append(worlds.api(index, settings, "operator"))
    operators = Pair(apis[0], apis[1], pair.plans)
    for body in (
        {"kind": "crawl", "sources": ["vault"]}, {"kind": "crawl", "sources": ["lake"]}, {"kind": "sync", "mirrors": ["hidden"]},
        {"kind": "sync", "mirrors": ["half"]}, {"kind": "apply", "plans": [pair.plans["hidden"]]}, {"kind": "crawl", "sources": ["no"]},
        {"kind": "verify", "tables": ["vault$Db$Orders"]}, {"kind": "verify", "tables": ["lake$payroll$salaries"]},
        {"kind": "verify", "tables": ["lake$sales$orders", "vault$s$orders"]}, {"kind": "verify", "tables": ["no$no"]},
    ):  # fmt: skip
        assert operators.require_equal("POST", "/api/v1/runs", json=body).status_code in (400, 404)
    for digest in (pair.plans["hidden"], pair.plans["half"]):
        for decision in ("approve", "reject", "apply"):
            tag = {"If-Match": f'"{digest}"'}
            assert operators.require_equal("POST", f"/api/v1/plans/{digest}/{decision}", headers=tag).status_code == 404
    for name in ("crawl:vault", "crawl:lake", "sync:hidden", "sync:half", "crawl:no"):
        for action in ("run", "pause", "resume"):
            assert operators.require_equal("POST", f"/api/v1/jobs/{name}/{action}").status_code == 404
    assert operators.require_equal("POST", f"/api/v1/runs/{RUN_HIDDEN}/cancel").status_code == 404
    for api in apis:
        api.app.state.index.close()


def _settings_for(index: Index) -> Callable[..., Settings]:
    """Return a function that makes settings with the URL of an index."""
    url = index.engine.url
    return _settings_of(Path(url.database or "x").parent, url.render_as_string(hide_password=False))


# Listings whose positions are JSON, and those whose positions are names.
JSON_LISTINGS = {
    "/api/v1/search?q=orders&limit=1": "search orders", "/api/v1/plans?limit=1": "plans None None None None",
    "/api/v1/drift?limit=1": "drift None None None None False", "/api/v1/diff?limit=1": "diff None None  None",
}  # fmt: skip
NAME_LISTINGS = {
    "/api/v1/datasets?limit=1": "datasets None None False",
    "/api/v1/runs?limit=1": "runs",
    "/api/v1/jobs?limit=1": "jobs",
}
BAD_POSITIONS = (
    "x", "[]", "{}", "null", '"text"', '[1e999,"a","b"]', "[1,2,3]", '["a"]', "[[[]]]", "[" * 5000, '[0,"\\ud800","b"]',
    '[0,"a\\u0000","b"]', '[1e999,"a"]', '["\\ud800","b","c"]', f'[{"9" * 400},"a","b"]', f'[{"9" * 30},"a","b"]', '["a",[1e999,1.0]]',
    '["a",["nope","no"]]', '["a",[{},{}]]', '["a",[1.0]]', '[true,"a","b"]',
    '["{",[1.0,1.0]]', '["[1]",[1.0,1.0]]', '["[1e999,[],{}]",[1.0,1.0]]', '["7",[1.0,1.0]]',
)  # fmt: skip


def test_a_malformed_cursor_is_a_mistake_of_the_request(pair: Pair) -> None:
    encoded = [
        base64.urlsafe_b64encode(text).decode() for text in (b"[1,2]", b"{}", b"[[],[],[]]", b'[["runs",""],1,null]', b"\xff")
    ]
    for url in (*JSON_LISTINGS, *NAME_LISTINGS):
        for cursor in ("x", "====", "%C3%A9", "%00", "a+b", "YWJj!", *encoded):
            assert pair.rich.get(f"{url}&cursor={cursor}").status_code == 400, (url, cursor)
    for url, listing in (JSON_LISTINGS | NAME_LISTINGS).items():
        for position in BAD_POSITIONS:
            status = pair.rich.get(f"{url}&cursor={encode_cursor(listing, position, scopes=SEEN)}").status_code
            assert status == 400 or (status == 200 and url in NAME_LISTINGS), (url, position)


def test_names_in_a_hidden_source_are_not_folded(tmp_path: Path) -> None:
    """A message with the folded name would show that the source is configured."""
    index = new_index(tmp_path)
    answers = []
    for configured in (False, True):
        sources = {"vault": {"impl": "hive3", "uri": "thrift://127.0.0.1:9"}} if configured else {}
        lake = {"lake": {"impl": "federator.testing:CONNECTOR"}}
        settings = _settings_of(tmp_path, f"sqlite:///{tmp_path}/federator.db")(sources=lake | sources)
        api = worlds.as_caller(create_app(settings), index, "writer", Scopes.parse(["lake"]), f"writer-{configured}")
        requests = (
            ("declare", {"location": "s3://b/t"}),
            ("describe", {}),
            ("exists", {}),
            ("deregister", {}),
            ("count_rows", {}),
        )
        responses = [api.post(f"/v1/table/vault%24Db%24Orders/{route}", json=body) for route, body in requests]
        responses += [
            api.post(f"/v1/namespace/vault%24Db/{route}", json={}) for route in ("create", "describe", "exists", "drop")
        ]
        answers.append(
            [(response.status_code, response.text.replace(f"writer-{configured}", "writer")) for response in responses]
        )
    assert answers[0] == answers[1]


def test_the_reason_of_a_namespace_above_a_scope_is_hidden(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    fill(index, "lake", namespace("lake", "sales"), table("lake", "sales", "orders"), namespace("lake", "empty"))
    denied = failed_evidence(15, "payroll: denied")
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", 0.0)
        with index.write() as connection:
            failed = [Coverage("lake", (name,), denied, denied) for name in ("sales", "empty")]
            coverage.write_coverage(connection, draft, [Coverage("lake", ROOT), *failed], {})
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values={"state": "partial"})
    settings = _settings_of(tmp_path, f"sqlite:///{tmp_path}/federator.db")(
        sources={"lake": {"impl": "federator.testing:CONNECTOR"}}
    )
    app = create_app(settings)
    whole = worlds.as_caller(app, index, "viewer", Scopes.parse(["lake"]), "whole")
    part = worlds.as_caller(
        app, index, "viewer", Scopes.parse(["lake$sales$orders", "lake$sales$lost", "lake$empty$t"]), "part"
    )
    for url in ("/api/v1/explain/lake$sales$orders", "/api/v1/explain/lake$sales$lost"):
        assert "payroll" in whole.get(url).text
        assert "payroll" not in part.get(url).text
        assert part.json(url)["evidence"]["state"] == "failed"
    url = "/v1/namespace/lake%24empty/table/list"
    assert "payroll" in whole.get(url).text
    assert "payroll" not in part.get(url).text


def test_cursors_and_tags_are_those_of_their_scope(pair: Pair) -> None:
    index = pair.rich.app.state.index
    settings = worlds.settings(_settings_for(index))
    whole = worlds.api(index, settings, "admin", EVERYTHING)
    for url in (
        "/api/v1/tree?path=lake&limit=1",
        "/api/v1/runs?limit=1",
        "/api/v1/datasets?limit=1",
        "/api/v1/search?q=orders&limit=1",
    ):
        for first, other in ((whole, pair.rich), (pair.rich, whole)):
            cursor = first.json(url)["next"]
            if cursor is not None:
                refused = other.get(f"{url}&cursor={cursor}")
                assert refused.status_code == 400, url
                assert "belongs to another listing" in refused.text
    for url in ("/v1/table?limit=1", "/v1/namespace/%24/list?limit=1"):
        for first, other in ((whole, pair.rich), (pair.rich, whole)):
            token = first.json(url)["page_token"]
            assert first.get(f"{url}&page_token={token}").status_code == 200
            refused = other.get(f"{url}&page_token={token}")
            assert (refused.status_code, refused.json()["code"]) == (400, 13), url
    url = "/api/v1/tables/copy$s$orders"
    tag = whole.get(url).headers["etag"]
    assert pair.rich.get(url, headers={"If-None-Match": tag}).status_code == 200
    mine = pair.rich.get(url).headers["etag"]
    assert pair.rich.get(url, headers={"If-None-Match": mine}).status_code == 304
    assert json.loads(whole.get("/api/v1/tree").content)["nodes"][-1]["name"] == "vault"
    whole.app.state.index.close()
