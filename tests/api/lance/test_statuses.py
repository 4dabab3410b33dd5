"""Codes and statuses, identifiers, pages: what the protocol's text and the reference adapter say, held against the service."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from federator.index import Index, coverage, revisions
from federator.index.leases import hold
from federator.model import Coverage as NamespaceCoverage
from federator.model import Kind, TableRecord, failed
from federator.testing.contract import fresh
from tests.api.lance.conftest import Service
from tests.integration.index_support import fill, namespace, table

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
        ("POST", "table/{ns}%24no/deregister", {}, 404, 4),
        ("POST", "table/{ns}%24no/describe", {}, 404, 4),
        ("POST", "table/mem/describe", {}, 404, 4),
        ("POST", "table/%24/describe", {}, 404, 4),
        ("POST", "table/{ns}%24no/exists", {}, 404, 4),
        ("POST", "table/{ns}%24m/describe", {}, 400, 13),
        ("POST", "table/{ns}%24u/describe", {}, 500, 18),
        ("POST", "table/{ns}%24t/drop", None, 406, 0),
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
    told = answer.json()
    assert (answer.status_code, told["code"]) == (status, code), told
    assert set(told) == {"error", "code", "detail", "instance"}
    assert answer.headers["content-type"] == "application/json"
    assert told["instance"] == f"/v1/{path.replace('{ns}', _id(*known))}".partition("?")[0]


def test_a_body_that_is_no_json_is_invalid(service: Service, known: tuple[str, str]) -> None:
    for text, kind in (("{x", "application/json"), ('{"id": "text"}', "application/json"), ("id=x", "text/plain")):
        answer = service.ask("POST", f"/v1/table/{_id(*known, 't')}/describe", data=text.encode())
        assert answer.status_code == 400, (text, kind)
        assert answer.json()["code"] == 13


def test_outside_of_v1_an_error_is_a_problem_document(service: Service) -> None:
    answer = service.get("/api/v1/tables/no%24such")
    assert answer.headers["content-type"] == "application/problem+json"
    general = service.post("/GetTable", {"name": "t", "namespace": ["no"]})
    assert (general.status_code, general.headers["content-type"]) == (404, "application/problem+json")
    assert {"type", "title", "status", "detail", "instance"} <= set(general.json())


@pytest.mark.parametrize("delimiter", ["$", ".", "/", "::", "\x1f", "😀"])
def test_any_delimiter_joins_an_identifier(service: Service, known: tuple[str, str], delimiter: str) -> None:
    given = {"delimiter": delimiter}
    if delimiter != ".":
        # A segment that is one dot is taken out of every URL by the clients themselves (RFC 3986, 5.2.4).
        root = service.get(f"/v1/namespace/{quote(delimiter, safe='')}/list", params=given).json()["namespaces"]
        assert root == sorted(service.settings.sources)
    table_id = _id(*known, "t", by=delimiter)
    told = service.post(f"/v1/table/{table_id}/describe", params=given).json()
    assert [*told["namespace"], told["table"]] == [*known, "t"]
    listed = service.get("/v1/table", params=given).json()["tables"]
    assert delimiter.join((*known, "t")) in listed


def test_a_hostile_name_lives_like_any_other(service: Service) -> None:
    path = service.namespace()
    for name in _HOSTILE:
        if name == "sla/sh":
            # The memory catalog has no such names; that the slash arrives as part of one shows in its refusal.
            refused = service.post(f"/v1/table/{_id(*path, name)}/declare").json()
            assert "'sla/sh' is no name" in refused["error"]
            continue
        made = service.post(f"/v1/table/{_id(*path, name)}/declare")
        assert made.status_code == 200, made.text
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


def test_pages_lose_and_repeat_nothing_while_tables_come_and_go(service: Service) -> None:
    path = service.namespace()
    names = [f"t{number:02}" for number in range(20)]
    fill(service.index, "mem", *(table("mem", path[1], name) for name in names))
    for listing, shown in (
        (f"namespace/{_id(*path)}/table/list", lambda name: name),
        ("table", lambda name: f"mem${path[1]}${name}"),
    ):
        seen: list[str] = []
        token, changed = None, False
        while True:
            page = service.get(f"/v1/{listing}", params={"limit": 3, "page_token": token}).json()
            assert len(page["tables"]) <= 3
            seen += page["tables"]
            if shown("t07") in seen and not changed:
                gone = [(path[1], name) for name in ("t00", "t15")]
                fill(service.index, "mem", table("mem", path[1], "t105"), gone=gone)
                changed = True
            token = page.get("page_token")
            if token is None:
                break
        mine = [name for name in seen if name in {shown(n) for n in (*names, "t105")}]
        assert len(seen) == len(set(seen))
        assert mine == [shown(name) for name in sorted({*names, "t105"} - {"t15"})]
        fill(service.index, "mem", table("mem", path[1], "t00"), table("mem", path[1], "t15"), gone=[(path[1], "t105")])


def test_managed_tables_are_not_listed_and_what_is_declared_only_can_be_left_out(
    service: Service, known: tuple[str, str]
) -> None:
    listed = service.get(f"/v1/namespace/{_id(*known)}/table/list").json()["tables"]
    assert listed == ["t", "u"]
    general = service.post("/ListTables", {"namespace": list(known)}).json()["tables"]
    assert general == ["m", "t", "u"]
    managed = service.post("/GetTable", {"name": "m", "namespace": list(known)}).json()
    assert managed["managedBy"] == "implementation"
    assert service.post("/GetTable", {"name": "t", "namespace": list(known)}).json()["managedBy"] == "storage"


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
        revisions.set_source(connection, "mem", {"crawled_at": None})
    answer = own_service.get("/v1/namespace/mem/table/list")
    assert (answer.status_code, answer.json()["code"]) == (503, 17)
    assert "federator crawl mem" in answer.json()["detail"]
    assert own_service.post("/v1/namespace/mem/exists").status_code == 200


def _cover(index: Index, name: str, code: int, reason: str) -> None:
    with hold(index, "source:mem", wait=10) as lease:
        draft = revisions.begin(index, lease, "mem", fresh("run"), 0.0)
        with index.write() as connection:
            bad = failed(code, reason)
            coverage.write(connection, draft, [NamespaceCoverage("mem", (name,), bad, bad)], {})
        revisions.publish(index, lease, draft, added=0, changed=0, removed=0, values={})
