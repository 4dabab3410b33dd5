"""pylance's own RestAdapter and the service over one directory: the same requests, the answers compared, every difference explained."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import lance
import pyarrow as pa
import pytest
import requests

from tests.fixtures.rest import RestServer, reference_server
from tests.unit.api.lance.conftest import Service, served


@dataclass(frozen=True)
class ReferenceCase:
    """One request; ``{}`` in the path stands for the root of the directory: nothing there, ``lake$`` here."""

    label: str
    method: str
    path: str
    body: Any = None
    params: dict[str, Any] = field(default_factory=dict)


def _get(label: str, path: str, **params: Any) -> ReferenceCase:
    return ReferenceCase(label, "GET", path, None, params)


def _post(label: str, path: str, body: Any = None, **params: Any) -> ReferenceCase:
    return ReferenceCase(label, "POST", path, {} if body is None else body, params)


READS = [
    _get("tables", "namespace/{root}/table/list"),
    _get("tables, written only", "namespace/{root}/table/list", include_declared="false"),
    _get("a page of tables", "namespace/{root}/table/list", limit=1),
    _get("a limit of none", "namespace/{root}/table/list", limit=0),
    _get("a limit that is no number", "namespace/{root}/table/list", limit="x"),
    _get("namespaces", "namespace/{root}/list"),
    _post("root", "namespace/%24/describe"),
    _post("root exists", "namespace/%24/exists"),
    _post("no namespace", "namespace/{}no/describe"),
    _post("no namespace exists", "namespace/{}no/exists"),
    _get("tables of no namespace", "namespace/{}no/table/list"),
    _post("a table exists", "table/{}t/exists"),
    _post("no table exists", "table/{}no/exists"),
    _post("a table", "table/{}t/describe"),
    _post("a table with its URI", "table/{}t/describe", {"with_table_uri": True}),
    _post("a table in full", "table/{}t/describe", load_detailed_metadata="true"),
    _post("a table at a version", "table/{}t/describe", {"version": 1}),
    _post("a table at no version", "table/{}t/describe", {"version": 99}),
    _post("a table, checked", "table/{}t/describe", check_declared="true"),
    _post("a declared table, checked", "table/{}d/describe", check_declared="true"),
    _post("a declared table in full", "table/{}d/describe", load_detailed_metadata="true"),
    _post("no table", "table/{}no/describe"),
    _post("another id in the body", "table/{}t/describe", {"id": ["other"]}),
    ReferenceCase("a body that is no JSON", "POST", "table/{}t/describe", b"{x"),
    _post("an unknown route", "table/{}t/nothing"),
    _get("a method that is not the route's", "table/{}t/describe"),
    _post("a materialized view", "materialized_view/{}t/create", {"kind": "view"}),
    _post("transactions", "transaction/{}t/describe"),
    _post("a batch commit", "table/batch-commit", {"operations": []}),
]
WRITES = [
    _post("the root is not dropped", "namespace/%24/drop"),
    _post("declare", "table/{}n/declare"),
    _post("declare again", "table/{}n/declare"),
    _post("declared", "table/{}n/describe", check_declared="true"),
    _post("register what is there", "table/{}t/register", {"location": "t.lance"}),
    _post("rename", "table/{}n/rename", {"new_table_name": "m"}),
    _post("deregister", "table/{}n/deregister"),
    _post("deregister again", "table/{}n/deregister"),
    _post("drop", "table/{}t/drop"),
]
_URI = "the URI is given where with_table_uri asks for it, as the protocol's text has it; the reference always gives it"
_CODED = "every failure has the protocol's body here; the reference's is empty"
_ENGINE = "not served here, and said before the body is looked at; the reference wants more of it first"
_VERSIONS = "managed_versioning is false, as the newer specs have it; the reference omits it"
#: label → why the service answers otherwise
DIFFERENCES = {
    "root": "has the deployment, by which another one that reads it recognises a circle",
    "a batch commit": "code 0 and 406, as the specification has what is not supported; the reference says 18 and 500",
    "a declared table in full": _URI,
    "a declared table, checked": _URI,
    "a limit of none": "a limit below 1 is refused: an empty page without a token would look like the end",
    "a materialized view": _ENGINE,
    "a method that is not the route's": _CODED,
    "a table": _URI,
    "a table at a version": "the version that is asked for is opened and told of; the reference answers as if none were asked for",
    "a table at no version": "11: there is none; the reference answers as if none were asked for",
    "a table in full": f"with its basic statistics; {_URI}",
    "a table with its URI": _VERSIONS,
    "a table, checked": _URI,
    "an unknown route": _CODED,
    "declare": _VERSIONS,
    "declared": _URI,
    "drop": "data is deleted only in a source with allow_drop = true",
    "register what is there": "a location is absolute here: a caller cannot know the root that a relative one would count from",
    "rename": "code 0 and 406, as the specification has what is not supported; the reference says 18 and 500",
    "tables, written only": "what verification has not looked at yet is listed; the reference looks at every directory",
    "transactions": _ENGINE,
}


@dataclass(frozen=True)
class Both:
    service: Service
    reference: RestServer

    def answers(self, case: ReferenceCase) -> tuple[Any, Any]:
        current = _normalize(self.service.url, case, "lake", str(self.service.root))
        return current, _normalize(self.reference.url, case, "", self.reference.root)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Each has its own copy of one directory, so that writes do not meet."""
    created = tmp_path_factory.mktemp("made")
    for version in range(2):
        lance.write_dataset(pa.table({"a": [version]}), str(created / "t.lance"), mode="overwrite" if version else "create")
    lance.write_dataset(pa.table({"a": [1.5]}), str(created / "u.lance"))
    (created / "d.lance").mkdir()
    (created / "d.lance" / ".lance-reserved").touch()
    copy = tmp_path_factory.mktemp("reference") / "copy"
    shutil.copytree(created, copy)
    with served(tmp_path_factory.mktemp("here"), {}) as service, reference_server(copy) as reference:
        shutil.copytree(created, service.root, dirs_exist_ok=True)
        service.crawl("lake")
        yield Both(service, reference)


def test_the_differences_from_the_reference_are_the_known_ones(both: Both) -> None:
    result: dict[str, tuple[Any, Any]] = {}
    for request in (*READS, *WRITES):
        current, existing = both.answers(request)
        if current != existing:
            result[request.label] = (current, existing)
    assert set(result) == set(DIFFERENCES), {label: result.get(label) for label in set(result) ^ set(DIFFERENCES)}
    assert len(result) < len(READS) + len(WRITES)
    assert all(DIFFERENCES.values())


def _normalize(url: str, case: ReferenceCase, source: str, root: str) -> Any:
    path = case.path.replace("{root}", source or "%24").replace("{}", f"{source}%24" if source else "")
    sent: dict[str, Any] = {"json": case.body} if not isinstance(case.body, bytes) else {
        "data": case.body, "headers": {"Content-Type": "application/json"},
    }  # fmt: skip
    response = requests.request(case.method, f"{url}/v1/{path}", params=case.params, timeout=60, **sent)
    if response.status_code >= 400:
        body = response.json() if response.content else {}
        return response.status_code, body.get("code")
    return response.status_code, _plain(response.json(), source, root) if response.content else None


def _plain(body: dict[str, Any], source: str, root: str) -> dict[str, Any]:
    """Without what names the place itself, and without empty fields."""
    result = {key: value for key, value in body.items() if value not in (None, {}, [])}
    for key in ("namespace", "id"):
        if source and key in result:
            result[key] = result[key][1:]
    for key in ("location", "table_uri"):
        if key in result:
            result[key] = result[key].replace(f"file://{root}", "ROOT").replace(root, "ROOT")
    if "page_token" in result:
        result["page_token"] = "some"
    return {key: value for key, value in result.items() if value != []}
