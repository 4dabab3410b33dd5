"""Codes, statuses, identifiers and pages, compared with the protocol's text and the reference adapter."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from federator.model import Coverage as NamespaceCoverage
from federator.model import Kind, TableRecord, failed_evidence
from federator.store import Index, coverage, revisions
from federator.store.leases import acquire_lease
from federator.testing.contract import unique_name
from tests.fixtures.index_content import fill, namespace, table
from tests.unit.api.lance.conftest import Service

_HOSTILE = ("sla/sh", "per%2Fcent", "..", "a b", "?q#f", "😀", "do.t", 'quo"te', "semi;colon", "back\\slash", "e\u0301")


def _id(*names: str, by: str = "$") -> str:
    return quote(by.join(names) or by, safe="")


@pytest.fixture(scope="module")
def known(service: Service) -> tuple[str, str]:
    """A namespace with a table ``t``, a managed one ``m`` and one that could not be described, ``u``."""
    path = service.namespace()
    assert service.post(f"/v1/table/{_id(*path, 't')}/declare").status_code == 200
    fill(
        service.index, "mem", table("mem", path[1], "m", kind=Kind.MANAGED_TABLE),
        TableRecord("mem", (path[1], "u"), kind=Kind.UNDESCRIBED, problem="the catalog timed out"),
    )  # fmt: skip
    return path


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "namespace/{ns}/create", {}, 409, 2),
        ("POST", "namespace/{ns}/create", {"mode": "Sideways"}, 400, 13),
        ("POST", "namespace/{ns}%24x%24y%24z%24zz/create", {}, 400, 13),
        ("POST", "namespace/%24/create", {}, 406, 0),
        ("POST", "namespace/new/create", {}, 406, 0),
        ("POST", "namespace/new%24x/create", {}, 404, 1),
        ("POST", "namespace/mem%24no%24x/create", {}, 404, 1),
        ("POST", "namespace/{ns}/drop", {}, 409, 3),
        ("POST", "namespace/mem%24no/drop", {}, 404, 1),
        ("POST", "namespace/%24/drop", {}, 400, 13),
        ("POST", "namespace/mem/drop", {}, 406, 0),
        ("POST", "namespace/lake%24x/create", {}, 406, 0),
        ("POST", "namespace/mem%24no/describe", {}, 404, 1),
        ("POST", "namespace/no/exists", {}, 404, 1),
        ("GET", "namespace/mem%24no/list", None, 404, 1),
        ("GET", "namespace/no/table/list", None, 404, 1),
        ("GET", "namespace/%24/list?limit=0", None, 400, 13),
        ("GET", "namespace/%24/list?limit=x", None, 400, 13),
        ("GET", "namespace/%24/list?page_token=no", None, 400, 13),
        ("GET", "namespace/%24/list?delimiter=", None, 400, 13),
        ("POST", "table/{ns}%24t/declare", {}, 409, 5),
        ("POST", "table/mem%24no%24t/declare", {}, 404, 1),
        ("POST", "table/{ns}%24bad/declare", {"location": "no location"}, 400, 13),
        ("POST", "table/{ns}%24t/register", {"location": "s3://b/t.lance"}, 409, 5),
        ("POST", "table/{ns}%24t/register", {}, 400, 13),
        ("POST", "table/{ns}%24bad/register", {"location": "s3://b/\ud800"}, 400, 13),
        ("POST", "table/{ns}%24bad/register", {"location": "s3://b/\x00"}, 400, 13),
        ("POST", "table/{ns}%24bad/register", {"location": "s3://b/t", "properties": {"a": "\udfff"}}, 400, 13),
        ("POST", "table/{ns}%24bad/declare", {"location": "s3://b/\ud800"}, 400, 13),
        ("POST", "table/{ns}%24t/rename", {"new_table_name": "n\ud800"}, 400, 13),
        ("POST", "table/{ns}%24t/describe", {"id": ["mem", "\ud800"]}, 400, 13),
        ("POST", "namespace/{ns}%24bad/create", {"properties": {"a": "\ud800"}}, 400, 13),
        ("POST", "table/{ns}%24no/deregister", {}, 404, 4),
        ("POST", "table/{ns}%24no/describe", {}, 404, 4),
        ("POST", "table/mem/describe", {}, 400, 13),
        ("POST", "table/%24/describe", {}, 404, 4),
        ("POST", "table/{ns}%24no/exists", {}, 404, 4),
        ("POST", "table/{ns}%24m/describe", {}, 400, 13),
        ("POST", "table/{ns}%24u/describe", {}, 500, 18),
        ("POST", "table/{ns}%24t/drop", None, 406, 0),
        ("POST", "table/{ns}%24p+q/drop", None, 400, 13),
        ("POST", "table/{ns}%24p%2Bq/drop", None, 406, 0),
        ("POST", "table/{ns}%24p+q/insert", None, 400, 13),
        ("POST", "table/{ns}%24p+q/deregister", {}, 400, 13),
        ("POST", "table/{ns}%24p+q/deregister", {"id": []}, 400, 13),
        ("POST", "table/{ns}%24p+q/describe", {"id": ["mem", "p-q"]}, 400, 13),
        ("POST", "table/{ns}%24p+q/describe", {}, 404, 4),
        ("POST", "table/{ns}%24t/index/p+q/drop", {}, 400, 13),
        ("GET", "namespace/{ns}%24p+q/table/list", None, 404, 1),
        ("POST", "table/{ns}%24t/rename", {"new_table_name": "n", "new_namespace_id": ["lake"]}, 406, 0),
        ("POST", "table/{ns}%24no/rename", {"new_table_name": "n"}, 404, 4),
        ("POST", "table/{ns}%24t/describe", {"id": ["mem", "other"]}, 400, 13),
        ("POST", "namespace/{ns}/create", {"id": ["mem"]}, 400, 13),
        ("POST", "table/{ns}%24/describe", {}, 400, 13),
        ("POST", "table/{ns}%24%24t/describe", {}, 400, 13),
        ("POST", "table/{ns}%24%FF/describe", {}, 400, 13),
        ("POST", "table/{ns}%24a%00b/describe", {}, 400, 13),
        ("POST", "table/{ns}%24t/describe", {"version": "one"}, 400, 13),
        ("POST", "table/{ns}%24t/nothing", {}, 404, 0),
        ("POST", "nothing", {}, 404, 0),
        ("GET", "table/{ns}%24t/describe", None, 405, 0),
        ("DELETE", "table/{ns}%24t", None, 404, 0),
    ],
)
def test_a_refusal_has_the_code_and_the_status_of_the_protocol(
    service: Service, known: tuple[str, str], method: str, path: str, body: Any, status: int, code: int
) -> None:
    answer = service.ask(method, f"/v1/{path.replace('{ns}', _id(*known))}", body)
    response = answer.json()
    assert (answer.status_code, response["code"]) == (status, code), response
    assert set(response) == {"error", "code", "detail", "instance"}
    assert answer.headers["content-type"] == "application/json"
    assert response["instance"] == f"/v1/{path.replace('{ns}', _id(*known))}".partition("?")[0]


def test_a_body_that_is_no_json_is_invalid(service: Service, known: tuple[str, str]) -> None:
    for text, kind in (("{x", "application/json"), ('{"id": "text"}', "application/json"), ("id=x", "text/plain")):
        response = service.ask("POST", f"/v1/table/{_id(*known, 't')}/describe", data=text.encode())
        assert response.status_code == 400, (text, kind)
        assert response.json()["code"] == 13


def test_outside_of_v1_an_error_is_a_problem_document(service: Service) -> None:
    response = service.get("/api/v1/tables/no%24such")
    assert response.headers["content-type"] == "application/problem+json"
    general = service.post("/GetTable", {"name": "t", "namespace": ["no"]})
    assert (general.status_code, general.headers["content-type"]) == (404, "application/problem+json")
    assert {"type", "title", "status", "detail", "instance"} <= set(general.json())


@pytest.mark.parametrize("delimiter", ["$", ".", "/", "::", "\x1f", "😀"])
def test_any_delimiter_joins_an_identifier(service: Service, known: tuple[str, str], delimiter: str) -> None:
    values = {"delimiter": delimiter}
    if delimiter != ".":
        # A segment that is one dot is taken out of every URL by the clients themselves (RFC 3986, 5.2.4).
        root = service.get(f"/v1/namespace/{quote(delimiter, safe='')}/list", params=values).json()["namespaces"]
        assert root == sorted(service.settings.sources)
    table_id = _id(*known, "t", by=delimiter)
    response = service.post(f"/v1/table/{table_id}/describe", params=values).json()
    assert [*response["namespace"], response["table"]] == [*known, "t"]
    listed = service.get("/v1/table", params=values).json()["tables"]
    assert delimiter.join((*known, "t")) in listed


def test_a_hostile_name_lives_like_any_other(service: Service) -> None:
    path = service.namespace()
    for name in _HOSTILE:
        if name == "sla/sh":
            # The memory catalog has no such names; that the slash arrives as part of one shows in its refusal.
            refused = service.post(f"/v1/table/{_id(*path, name)}/declare").json()
            assert "'sla/sh' is not a valid name" in refused["error"]
            continue
        created = service.post(f"/v1/table/{_id(*path, name)}/declare")
        assert created.status_code == 200, created.text
        assert service.post(f"/v1/table/{_id(*path, name)}/describe").json()["table"] == name
    listed = service.get(f"/v1/namespace/{_id(*path)}/table/list").json()["tables"]
    assert listed == sorted(name for name in _HOSTILE if name != "sla/sh")


def test_a_name_with_the_delimiter_in_it_is_addressed_with_another(service: Service) -> None:
    path = service.namespace()
    by = {"delimiter": "|"}
    assert service.post(f"/v1/table/{_id(*path, 'dol$lar', by='|')}/declare", params=by).status_code == 200
    assert service.post(f"/v1/table/{_id(*path, 'dol$lar', by='|')}/exists", params=by).status_code == 200
    assert service.post(f"/v1/table/{_id(*path, 'dol$lar')}/exists").status_code == 404
    assert service.get(f"/v1/namespace/{_id(*path)}/table/list").json()["tables"] == ["dol$lar"]


def test_a_plus_that_is_not_encoded_never_names_another_object(service: Service) -> None:
    above = service.namespace()
    spaced, plus = (*above, "p q"), (*above, "p+q")
    route = f"/v1/table/{_id(*above)}%24p+q"
    for path, other in ((spaced, plus), (plus, spaced)):
        assert service.post(f"{route}/declare", {"id": path}).status_code == 200
        # Alone, it is found without an id in the body, under both readings.
        assert service.post(f"{route}/describe").json()["table"] == path[-1]
        assert service.post(f"{route}/describe", {"id": other}).status_code == 404
        for operation in ("declare", "deregister", "drop", "create"):
            assert service.post(f"{route}/{operation}").json()["code"] == 13, operation
        assert service.post(f"{route}/deregister", {"id": path}).json()["id"] == list(path)
    for path in (spaced, plus):
        assert service.post(f"{route}/declare", {"id": path}).status_code == 200
    for path in (spaced, plus):
        assert service.post(f"{route}/describe", {"id": path}).json()["table"] == path[-1]
    refused = service.post(f"{route}/describe")
    assert (refused.status_code, refused.json()["code"]) == (400, 13)
    assert refused.json()["detail"] == "send a plus as %2B and a space as %20"
    hidden = service.post(f"{route}/describe", caller=f"viewer {'$'.join(plus)}")
    assert hidden.json()["table"] == "p+q", "what the caller may not see does not make its own table ambiguous"
    renamed = service.post(f"{route}/rename", {"id": spaced, "new_table_name": "r s", "new_namespace_id": []})
    assert renamed.status_code == 200, renamed.text
    assert service.get(f"/v1/namespace/{_id(*above)}/table/list").json()["tables"] == ["p+q", "r s"]


def test_a_slash_at_the_end_of_a_route_is_accepted(service: Service) -> None:
    path = service.namespace()
    assert service.post(f"/v1/table/{_id(*path, 't')}/declare/").status_code == 200
    assert f"mem${path[1]}$t" in service.get("/v1/table/").json()["tables"]


def test_pages_lose_and_repeat_nothing_while_tables_come_and_go(service: Service) -> None:
    path = service.namespace()
    names = [f"t{number:02}" for number in range(20)]
    fill(service.index, "mem", *(table("mem", path[1], name) for name in names))
    for listing, shown in (
        (f"namespace/{_id(*path)}/table/list", lambda name: name),
        ("table", lambda name: f"mem${path[1]}${name}"),
    ):
        observed: list[str] = []
        token, changed = None, False
        while True:
            page = service.get(f"/v1/{listing}", params={"limit": 3, "page_token": token}).json()
            assert len(page["tables"]) <= 3
            observed += page["tables"]
            if shown("t07") in observed and not changed:
                gone = [(path[1], name) for name in ("t00", "t15")]
                fill(service.index, "mem", table("mem", path[1], "t105"), gone=gone)
                changed = True
            token = page.get("page_token")
            if token is None:
                break
        mine = [name for name in observed if name in {shown(n) for n in (*names, "t105")}]
        assert len(observed) == len(set(observed))
        assert mine == [shown(name) for name in sorted({*names, "t105"} - {"t15"})]
        fill(service.index, "mem", table("mem", path[1], "t00"), table("mem", path[1], "t15"), gone=[(path[1], "t105")])


def test_managed_tables_are_not_listed_and_unwritten_tables_can_be_omitted(service: Service, known: tuple[str, str]) -> None:
    listed = service.get(f"/v1/namespace/{_id(*known)}/table/list").json()["tables"]
    assert listed == ["t", "u"]
    general = service.post("/ListTables", {"namespace": list(known)}).json()["tables"]
    assert general == ["m", "t", "u"]
    managed = service.post("/GetTable", {"name": "m", "namespace": list(known)}).json()
    assert managed["managedBy"] == "implementation"
    assert service.post("/GetTable", {"name": "t", "namespace": list(known)}).json()["managedBy"] == "storage"


def test_a_read_only_table_is_listed_and_described_with_its_state(service: Service) -> None:
    path = service.namespace()
    location = str(service.root / "theirs.lance")
    record = TableRecord(
        "mem", (path[1], "theirs"), location, {"managed_by": "storage"}, kind=Kind.MANAGED_TABLE, problem="read-only: because"
    )
    fill(service.index, "mem", record)
    assert service.get(f"/v1/namespace/{_id(*path)}/table/list").json()["tables"] == ["theirs"]
    assert f"mem${path[1]}$theirs" in service.get("/v1/table").json()["tables"]
    response = service.post(f"/v1/table/{_id(*path, 'theirs')}/describe").json()
    assert (response["location"], response["properties"]) == (location, {"managed_by": "storage", "table_type": "lance"})
    general = service.post("/GetTable", {"name": "theirs", "namespace": list(path)}).json()
    assert general["managedBy"] == "storage"
    shown = service.get(f"/api/v1/tables/{_id(*path, 'theirs')}").json()
    assert (shown["kind"], shown["problem"]) == ("managed_table", "read-only: because")


def test_a_listing_that_failed_is_no_empty_list(own_service: Service) -> None:
    service = own_service
    fill(service.index, "mem", namespace("mem", "hr"), namespace("mem", "it"), namespace("mem", "fine"))
    _cover(service.index, "hr", 15, "denied")
    _cover(service.index, "it", 17, "timed out")
    answers = {name: service.get(f"/v1/namespace/mem%24{name}/table/list") for name in ("hr", "it", "fine")}
    assert {name: answer.status_code for name, answer in answers.items()} == {"hr": 403, "it": 503, "fine": 200}
    assert "denied" in answers["hr"].json()["error"]
    assert answers["fine"].json() == {"tables": []}


def test_a_source_that_was_never_crawled_is_unavailable_and_not_empty(own_service: Service) -> None:
    with own_service.index.write() as connection:
        revisions.update_source(connection, "mem", {"crawled_at": None})
    response = own_service.get("/v1/namespace/mem/table/list")
    assert (response.status_code, response.json()["code"]) == (503, 17)
    assert "federator crawl mem" in response.json()["detail"]
    assert own_service.post("/v1/namespace/mem/exists").status_code == 200


def _cover(index: Index, name: str, code: int, reason: str) -> None:
    with acquire_lease(index, "source:mem", wait=10) as lease:
        draft = revisions.begin_draft(index, lease, "mem", unique_name("run"), 0.0)
        with index.write() as connection:
            bad = failed_evidence(code, reason)
            coverage.write_coverage(connection, draft, [NamespaceCoverage("mem", (name,), bad, bad)], {})
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values={})
