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
    response = service.ask(route.method, route.url(identifier), {} if route.method == "POST" else None)
    code = response.json().get("code") if response.status_code >= 400 else None
    assert response.status_code != 405
    assert response.status_code < 500, response.text
    # 404 with a code of the spec says that something is not there; the route is.
    assert not (response.status_code == 404 and code == 0), response.text
    assert (response.status_code == 406) == (route.operation in MAY_BE_UNSUPPORTED), response.text
    if response.status_code == 406:
        assert code == 0
        assert len(response.json()["error"].split()) > 5, "a sentence"


#: what a request needs besides the table's id, so that only its id is refused
BODIES: dict[str, dict[str, Any]] = {
    "alter_table_add_columns": {"new_columns": [{"name": "b", "expression": "1"}]},
    "alter_table_alter_columns": {"alterations": [{"path": "a", "rename": "b"}]},
    "alter_table_drop_columns": {"columns": ["a"]},
    "analyze_table_query_plan": {"k": 1, "vector": {"single_vector": [1.0]}},
    "create_table_branch": {"name": "b"},
    "create_table_index": {"column": "a", "index_type": "BTREE"},
    "create_table_scalar_index": {"column": "a", "index_type": "BTREE"},
    "create_table_tag": {"tag": "t", "version": 1},
    "delete_from_table": {"predicate": "a = 1"},
    "delete_table_branch": {"name": "b"},
    "delete_table_tag": {"tag": "t"},
    "explain_table_query_plan": {"query": {"k": 1, "vector": {"single_vector": [1.0]}}},
    "get_table_tag_version": {"tag": "t"},
    "query_table": {"k": 1, "vector": {"single_vector": [1.0]}},
    "register_table": {"location": "s3://lake/t.lance"},
    "rename_table": {"new_table_name": "u"},
    "restore_table": {"version": 1},
    "update_field_metadata": {"updates": [{"path": "a", "metadata": {}}]},
    "update_table": {"updates": [["a", "1"]]},
    "update_table_tag": {"tag": "t", "version": 1},
}
_TABLE_ROUTES = [route for route in ROUTES if "/table/ID/" in route.template and route.operation not in MAY_BE_UNSUPPORTED]


@pytest.mark.parametrize("route", _TABLE_ROUTES, ids=lambda route: route.operation)
def test_every_operation_refuses_an_id_with_too_few_levels_alike(route: Route, service: Service) -> None:
    """A table of ``mem`` has a namespace."""
    query = "?on=a" if route.operation == "merge_insert_into_table" else ""
    for identifier, levels in (("mem", 1), ("mem%24t", 2)):
        response = service.ask(route.method, route.url(identifier) + query, BODIES.get(route.operation, {}))
        name = identifier.replace("%24", "$")
        expected = f"the id of a table of mem has at least 3 levels, '{name}' has {levels}"
        assert (response.status_code, response.json()["code"], response.json()["error"]) == (400, 13, expected)


@pytest.mark.parametrize("operation", ["GetTable", "TableExists", "CreateTable", "RegisterTable", "AlterTable", "DropTable"])
def test_the_general_spec_refuses_an_id_with_too_few_levels(operation: str, service: Service) -> None:
    schema = {"fields": [{"name": "a", "type": {"type": "int64"}, "nullable": True}]}
    body = {"name": "t", "namespace": ["mem"], "location": "s3://lake/t.lance", "schema": schema}
    response = service.post(f"/{operation}", body)
    assert response.status_code == 400, response.text
    assert "the id of a table of mem has at least 3 levels" in response.text
