"""The role of each route. A route without a rule here fails, and so does one that does not follow its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from federator.api.app import create_app
from federator.api.lance.write_access import AuthorizedWriter
from federator.api.principals import LOCAL_PRINCIPAL, ROLES, Principal, Role, can_drop_data, can_receive_secrets, vended_access
from federator.connector import PermissionDenied
from federator.model.scopes import EVERYTHING, Scopes
from federator.settings import Settings, SourceSettings, parse_settings
from federator.store import Index
from federator.vending import Access
from tests.fixtures.index import new_index
from tests.unit.api import worlds
from tests.unit.api.conftest import Api

#: routes of our own API that need more than looking, and those that need the whole tree in scope besides
OPERATES = {
    "POST /api/v1/runs", "POST /api/v1/runs/{id}/cancel", "POST /api/v1/plans/{digest}/approve",
    "POST /api/v1/plans/{digest}/reject", "POST /api/v1/plans/{digest}/apply", "POST /api/v1/jobs/{name}/pause",
    "POST /api/v1/jobs/{name}/resume", "POST /api/v1/jobs/{name}/run", "POST /api/v1/reports", "GET /api/v1/notifications",
    "POST /api/v1/notifications/{number}/retry",
}  # fmt: skip
WRITES = {"POST /api/v1/declarations"}
ADMINISTERS = {
    "GET /api/v1/audit", "GET /api/v1/audit/state", "GET /api/v1/tokens", "POST /api/v1/tokens", "POST /api/v1/tokens/{name}/revoke",
}  # fmt: skip
WHOLE = {
    "GET /api/v1/audit", "GET /api/v1/audit/state", "GET /metrics",
    "GET /api/v1/reports", "POST /api/v1/reports", "GET /api/v1/reports/{id}",
    "GET /api/v1/tokens", "POST /api/v1/tokens", "POST /api/v1/tokens/{name}/revoke",
    "GET /api/v1/reports/{id}/{name}", "GET /api/v1/notifications", "POST /api/v1/notifications/{number}/retry",
}  # fmt: skip
LOOKS = {
    "GET /api/v1/overview", "GET /api/v1/overview/history", "PUT /api/v1/attention/{key}", "DELETE /api/v1/attention/{key}",
    "GET /api/v1/suggest",
    "GET /api/v1/drift/counts", "GET /api/v1/snapshots",
    "GET /api/v1/tree", "GET /api/v1/tables/{id}", "GET /api/v1/graph/{id}", "GET /api/v1/schema/{id}",
    "GET /api/v1/snippets/{id}", "GET /api/v1/search", "GET /api/v1/datasets", "GET /api/v1/datasets/{location}",
    "GET /api/v1/drift", "GET /api/v1/diff", "GET /api/v1/explain/{id}", "GET /api/v1/sources", "GET /api/v1/sources/{name}",
    "GET /api/v1/sources/{name}/coverage", "GET /api/v1/runs", "GET /api/v1/runs/{id}", "GET /api/v1/runs/{id}/events",
    "GET /api/v1/events",
    "GET /api/v1/requests/{id}", "GET /api/v1/plans", "GET /api/v1/plans/{digest}", "GET /api/v1/mirrors",
    "GET /api/v1/me", "GET /api/v1/me/sessions", "POST /api/v1/me/sessions/{id}/revoke",
    "GET /api/v1/mirrors/{name}", "GET /api/v1/jobs", "GET /api/v1/reports", "GET /api/v1/reports/{id}",
    "GET /api/v1/reports/{id}/{name}", "GET /metrics",
}  # fmt: skip
OPEN = {"GET /healthz", "GET /readyz"}
RULES = {
    **dict.fromkeys(LOOKS, Role.VIEWER),
    **dict.fromkeys(OPERATES, Role.OPERATOR),
    **dict.fromkeys(WRITES, Role.WRITER),
    **dict.fromkeys(ADMINISTERS, Role.ADMIN),
}
BODIES: dict[str, Any] = {
    "POST /api/v1/runs": {"kind": "crawl"}, "POST /api/v1/tokens": {"name": "created"}, "POST /api/v1/reports": {"report": "none"},
    "PUT /api/v1/attention/{key}": {"digest": "none", "hours": 1},
    "POST /api/v1/declarations": {"places": ["s3://lake/new.lance"], "into": ["copy"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, Settings]]:
    folder = tmp_path_factory.mktemp("roles")
    index = new_index(folder)
    worlds.build(index)
    yield index, worlds.settings(_made_in(folder))
    index.close()


def _made_in(folder: Path) -> Callable[..., Settings]:
    return lambda **raw: parse_settings({"instance": {"id": "test"}, **raw}, folder / "federator.toml")


@pytest.fixture(scope="module")
def callers(world: tuple[Index, Settings]) -> dict[str, Api]:
    """One app, asked by every role, with everything and with a part in scope, and by who sees nothing."""
    index, settings = world
    app, scopes = create_app(settings), {"all": EVERYTHING, "part": worlds.SEEN, "nothing": Scopes()}
    return {
        f"{role} of {name}": worlds.as_caller(app, index, role, observed, f"{role}-{name}")
        for role in ROLES
        for name, observed in scopes.items()
    }


def operations(api: Api) -> list[str]:
    paths = api.app.openapi()["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


def url_of(route: str) -> str:
    """An address of the route at which nothing is."""
    path = route.partition(" ")[2].replace("{number}", "99999").replace("/requests/{id}", "/requests/99999")
    for name in ("id", "name", "digest", "location", "number", "index_name"):
        path = path.replace(f"{{{name}}}", "none")
    queries = {
        "/api/v1/search": "?q=none",
        "/api/v1/suggest": "?q=none",
        "/api/v1/diff": "?from=run-1&to=run-2",
        "/api/v1/events": "?seconds=0",
    }
    return path + queries.get(path, "")


def test_every_route_has_a_rule(callers: dict[str, Api]) -> None:
    own_routes = {route for route in operations(callers["viewer of all"]) if route.split()[1].startswith(("/api/", "/metrics"))}
    assert own_routes == set(RULES), "name a new route in LOOKS, OPERATES, WRITES or ADMINISTERS, by the role that it needs"


def test_nobody_asks_anything_without_a_credential(callers: dict[str, Api]) -> None:
    nobody = Api(callers["viewer of all"].app)
    routes = [*operations(nobody), "GET /docs", "GET /openapi.json", "GET /nope", "POST /v1/namespace/x/list", "POST /mcp"]
    for route in routes:
        response = nobody.ask(route.split()[0], url_of(route))
        if route in OPEN:
            assert response.status_code == 200
        else:
            assert (response.status_code, response.json()["code"]) == (401, 16), route


@pytest.mark.parametrize("route", sorted(RULES))
def test_a_route_is_for_its_role_and_those_above(callers: dict[str, Api], route: str) -> None:
    for name, api in callers.items():
        role, _, scope = name.partition(" of ")
        reaches = Role.parse(role) >= RULES[route] and (scope == "all" or route not in WHOLE)
        response = api.ask(route.split()[0], url_of(route), json=BODIES.get(route))
        assert response.status_code < 500
        if reaches and not (route in ("POST /api/v1/runs", *WRITES) and scope == "nothing"):
            assert response.status_code != 403, (name, response.text)
        else:
            assert (response.status_code, response.json()["code"]) == (403, 15), name


def test_a_principal_without_scopes_sees_nothing(callers: dict[str, Api]) -> None:
    api = callers["admin of nothing"]
    assert api.json("/api/v1/tree")["nodes"] == []
    assert api.json("/api/v1/sources")["sources"] == []
    assert api.json("/api/v1/datasets")["datasets"] == []
    assert api.json("/api/v1/drift")["drift"] == []
    assert api.json("/api/v1/search?q=orders")["nodes"] == []
    assert api.json("/api/v1/jobs")["jobs"] == []
    assert api.json("/api/v1/runs")["runs"] == []
    overview = api.json("/api/v1/overview")
    assert (overview["tables"], overview["attention"], overview["sources"], overview["drift"]) == (0, [], [], {})


def test_the_principal_is_the_actor_of_its_requests(callers: dict[str, Api]) -> None:
    request = callers["operator of part"].post("/api/v1/runs", json={"kind": "crawl"}).json()
    assert request["actor"] == "token:operator-part"
    with callers["operator of part"].app.state.index.read() as connection:
        from federator.store import requests

        assert requests.get_request(connection, request["id"]).argument == {"sources": ["copy", "spare"]}
    assert callers["viewer of part"].get(f"/api/v1/requests/{request['id']}").status_code == 200
    digest = callers["operator of part"].json("/api/v1/plans?mirror=open")["plans"][0]["digest"]
    approved = callers["operator of part"].post(f"/api/v1/plans/{digest}/approve", headers={"If-Match": f'"{digest}"'})
    assert approved.json()["decided_by"] == "token:operator-part"
    events = callers["admin of all"].json("/api/v1/audit?kind=plan_approved")["events"]
    assert [event["actor"] for event in events] == ["token:operator-part"]


def test_what_a_caller_needs_is_decided_by_the_caller_alone() -> None:
    caller = Principal("ci", Role.OPERATOR, Scopes.parse(["lake$sales"]))
    caller.require(Role.VIEWER)
    caller.require(Role.OPERATOR, ("lake", "sales", "orders"))
    with pytest.raises(PermissionDenied, match="needs the role writer; ci has operator"):
        caller.require(Role.WRITER)
    with pytest.raises(PermissionDenied, match=r"lake\$hr is outside the scopes of ci"):
        caller.require(Role.OPERATOR, ("lake", "hr"))
    with pytest.raises(PermissionDenied, match="the tree root is outside the scopes"):
        caller.require(Role.OPERATOR, ())
    with pytest.raises(PermissionDenied, match=r"needs the scope '\*'; ci has the scopes lake"):
        caller.require_full_scope(Role.VIEWER)
    LOCAL_PRINCIPAL.require_full_scope(Role.ADMIN)
    with pytest.raises(ValueError, match="'owner' is not a role, allowed: viewer, operator, writer, admin"):
        Role.parse("owner")


@pytest.mark.parametrize(
    ("role", "vends", "drops", "scope", "secrets", "dropping"),
    [
        (Role.VIEWER, True, True, "lake", False, False), (Role.OPERATOR, True, True, "lake", False, False),
        (Role.WRITER, True, True, "lake", True, False), (Role.ADMIN, True, True, "lake", True, True),
        (Role.ADMIN, False, False, "lake", False, False), (Role.ADMIN, True, True, "other", False, False),
        (Role.ADMIN, True, True, "lake$sales$orders2", False, False),
    ],
)  # fmt: skip
def test_secrets_and_deletion_need_role_scope_and_the_sources_leave(
    role: Role, vends: bool, drops: bool, scope: str, secrets: bool, dropping: bool
) -> None:
    source = SourceSettings(name="lake", impl="x", vend="static" if vends else "none", allow_drop=drops)
    caller, path = Principal("ci", role, Scopes.parse([scope])), ("lake", "sales", "orders")
    assert can_receive_secrets(caller, source, path) is secrets
    assert can_drop_data(caller, source, path) is dropping


def test_a_source_vends_no_credentials_unless_configured() -> None:
    source = SourceSettings(name="lake", impl="x")
    assert (source.vend, source.allow_drop, source.data_operations) == ("none", False, True)


def test_temporary_credentials_have_the_access_of_the_role() -> None:
    path = ("lake", "sales", "orders")
    granted = {role: vended_access(Principal("ci", role, Scopes.parse(["lake$sales"])), path) for role in Role}
    assert granted == {
        Role.VIEWER: Access.READ, Role.OPERATOR: Access.READ, Role.WRITER: Access.WRITE, Role.ADMIN: Access.WRITE,
    }  # fmt: skip
    assert vended_access(Principal("ci", Role.ADMIN, Scopes.parse(["lake$hr", "lake$sales$orders2"])), path) is None


@pytest.mark.parametrize(
    "sent",
    [
        {"location": "s3://lake/payroll/salaries.lance"}, {"properties": {"location": "s3://lake/payroll"}},
        {"options": {"hive.Location-Uri": "s3://lake"}}, {"set": {"properties": {"managedLocation": "x"}}},
    ],
)  # fmt: skip
def test_who_sees_a_part_of_a_source_does_not_say_where_in_its_storage_something_lies(
    world: tuple[Index, Settings], sent: dict[str, Any]
) -> None:
    index, settings = world
    carried = []

    class Carrying:
        def write(self, order: Any, _call: object, *, locked: bool) -> Any:
            carried.append(order)

    for scopes, allowed in (("lake$sales", False), ("lake", True), ("copy", False)):
        write = AuthorizedWriter(
            index, settings, Principal("w", Role.ADMIN, Scopes.parse([scopes, "lake$sales"])), cast("Any", Carrying())
        )
        target = write.authorize(("lake", "sales", "new"))
        write.execute(target, "declare_table", lambda _: None, request={"properties": {"team": "eu"}, "location": None})
        before = len(carried)
        if allowed:
            write.execute(target, "register_table", lambda _: None, request=sent)
        else:
            with pytest.raises(PermissionDenied, match="may not set a location"):
                write.execute(target, "register_table", lambda _: None, request=sent)
        assert len(carried) == before + allowed
