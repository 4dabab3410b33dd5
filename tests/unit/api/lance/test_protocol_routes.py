"""Every route that the official client has, from the installed client itself."""

from __future__ import annotations

import inspect
import shutil
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import urlsplit

import lance
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client import api
from lance_namespace_urllib3_client.api_client import ApiClient
from lance_namespace_urllib3_client.configuration import Configuration

from tests.unit.api.lance.conftest import Service

#: the operations that may answer Unsupported whatever they are asked
MAY_BE_UNSUPPORTED = {
    "create_materialized_view", "refresh_materialized_view", "describe_transaction", "alter_transaction",
    "alter_table_backfill_columns", "batch_commit_tables", "batch_create_table_versions", "create_table_version",
    "batch_delete_table_versions",
}  # fmt: skip


@dataclass(frozen=True)
class Route:
    operation: str
    method: str
    template: str

    def url(self, identifier: str) -> str:
        return self.template.replace("ID", identifier).replace("INDEX", "no_index")


def routes() -> list[Route]:
    """What the client would send, by operation: its own code makes the URLs."""
    configuration = Configuration(host="http://service")
    result: dict[str, Route] = {}
    kinds: list[Any] = [kind for name, kind in vars(api).items() if name.endswith("Api")]
    for kind in kinds:
        bound = kind(ApiClient(configuration))
        for operation, serialize in inspect.getmembers(bound, inspect.ismethod):
            if operation.startswith("_") and operation.endswith("_serialize"):
                values = dict.fromkeys(inspect.signature(serialize).parameters)
                values |= {key: key.removesuffix("_name").upper() for key in ("id", "index_name") if key in values}
                values |= {"_host_index": 0}
                method, url, *_ = serialize(**values)
                plain = operation.removeprefix("_").removesuffix("_serialize")
                result[plain] = Route(plain, method, urlsplit(url).path)
    return [result[name] for name in sorted(result)]


ROUTES = routes()


@pytest.fixture(scope="module")
def tables(service: Service, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A table of its own for each route, with data, by operation."""
    created = tmp_path_factory.mktemp("made") / "t.lance"
    lance.write_dataset(pa.table({"a": [1, 2, 3]}), str(created))
    root = FilePath(service.settings.sources["open"].properties["root"])
    for route in ROUTES:
        shutil.copytree(created, root / f"{route.operation}.lance")
    service.crawl("open")
    return {route.operation: f"open%24{route.operation}" for route in ROUTES}


def test_the_client_has_the_routes_that_are_served_here() -> None:
    assert len(ROUTES) == 54
    assert {route.operation for route in ROUTES} > MAY_BE_UNSUPPORTED
    assert {(route.method, route.template.split("/")[1]) for route in ROUTES} == {("GET", "v1"), ("POST", "v1")}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
def test_a_route_is_served(route: Route, service: Service, tables: dict[str, str]) -> None:
    identifier = "%24".join(service.namespace()) if "/namespace/" in route.template else tables[route.operation]
    answer = service.ask(route.method, route.url(identifier), {} if route.method == "POST" else None)
    code = answer.json().get("code") if answer.status_code >= 400 else None
    assert answer.status_code != 405
    assert answer.status_code < 500, answer.text
    # 404 with a code of the spec says that something is not there; the route is.
    assert not (answer.status_code == 404 and code == 0), answer.text
    assert (answer.status_code == 406) == (route.operation in MAY_BE_UNSUPPORTED), answer.text
    if answer.status_code == 406:
        assert code == 0
        assert len(answer.json()["error"].split()) > 5, "a sentence"
