"""Responses of real servers: each code of pylance's reference server, the number of requests, unusual listings."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, cast

import lance_namespace as ln
import pytest
import requests

from federator.api.lance.lookup import get_any_table
from federator.connector import (
    Catalog,
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Throttled,
    Unauthenticated,
    Unsupported,
)
from federator.lance.identifiers import IdentifierParser
from federator.model import EVERYTHING, ROOT, Coverage, Kind, NamespaceRecord, Path, TableRecord, canonical_location
from federator.registry import source_capabilities
from federator.settings import parse_settings
from federator_connectors.rest import CONNECTOR
from tests.adversary.http_proxy import HttpProxy, Request, Response
from tests.fixtures.relay import Noting
from tests.fixtures.rest import RestServer, reference_server
from tests.stubs.general_rest import GeneralRestStub


class CountingProxy(HttpProxy):
    """Forwards everything, and counts the connections that it accepted."""

    accepted = 0

    def serve(self, connection: socket.socket) -> None:
        self.accepted += 1
        super().serve(connection)


def opened(**properties: str) -> Catalog:
    return CONNECTOR.open("r", CONNECTOR.parse_settings(properties))


@pytest.fixture
def catalog(own_rest_server: RestServer) -> Iterator[Catalog]:
    with opened(**own_rest_server.properties) as found:
        yield found


@pytest.fixture
def general(general_stub: GeneralRestStub) -> Iterator[Catalog]:
    with opened(uri=general_stub.url, protocol="general", root="s3://lake", drop_keeps_data="true") as found:
        yield found


@pytest.fixture
def request_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kind of request was sent, by what follows the identifier in its path."""
    sent: Counter[str] = Counter()
    send = requests.Session.request

    def counting(self: requests.Session, method: str, url: str, **keywords: Any) -> requests.Response:
        sent["/".join(url.split("/")[3:4] if "/v1/" not in url else url.split("/")[4:5] + url.split("/")[6:])] += 1
        return send(self, method, url, **keywords)

    monkeypatch.setattr(requests.Session, "request", counting)
    return sent


def crawl(catalog: Catalog) -> tuple[dict[Path, Any], dict[Path, Coverage]]:
    items = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
    records = {item.path: item for item in items if not isinstance(item, Coverage)}
    return records, {item.namespace: item for item in items if isinstance(item, Coverage)}


def test_every_code_that_the_reference_server_answers_with(catalog: Catalog, own_rest_server: RestServer) -> None:
    catalog.create_namespace(NamespaceRecord("r", ("ns",)))
    declared = catalog.declare_table(TableRecord("r", ("ns", "t"), f"{own_rest_server.root}/x/t.lance"))
    for error, attempt in (
        (NamespaceNotFound, lambda: catalog.describe_namespace(("none",))),
        (NamespaceNotFound, lambda: catalog.list_tables(("none",))),
        (NamespaceNotFound, lambda: catalog.list_namespaces(("none",))),
        (NamespaceNotFound, lambda: catalog.create_namespace(NamespaceRecord("r", ("none", "child")))),
        (NamespaceNotFound, lambda: catalog.drop_namespace(("none",))),
        (NamespaceAlreadyExists, lambda: catalog.create_namespace(NamespaceRecord("r", ("ns",)))),
        (NamespaceNotEmpty, lambda: catalog.drop_namespace(("ns",))),
        (TableNotFound, lambda: catalog.describe_table(("ns", "none"))),
        (TableNotFound, lambda: catalog.deregister_table(TableRecord("r", ("ns", "none")))),
        (TableAlreadyExists, lambda: catalog.declare_table(declared)),
        (InvalidInput, lambda: catalog.drop_namespace(ROOT)),
        (InvalidInput, lambda: catalog.declare_table(TableRecord("r", ("ns", "u"), "s3://elsewhere/u.lance"))),
        (Unsupported, lambda: catalog.rename_table(declared, ("ns", "renamed"))),
        (Unsupported, lambda: catalog.update_table(declared, declared)),
        (InvalidInput, lambda: catalog.describe_table(("a$b", "t"))),
    ):
        with pytest.raises(error) as caught:
            attempt()
        assert type(caught.value) is error
        assert own_rest_server.url not in caught.value.message
    assert catalog.observe(("ns", "u")).is_absent, "a refused declaration left something behind"


def test_a_crawl_asks_no_more_than_it_must(catalog: Catalog, own_rest_server: RestServer, request_counts: Counter[str]) -> None:
    pylance = ln.connect("rest", {"uri": own_rest_server.url})
    namespaces: list[list[str]] = [["upper"], *(["upper", f"ns{number}"] for number in range(3))]
    for path in namespaces:
        pylance.create_namespace(ln.CreateNamespaceRequest(id=path, properties={"team": path[-1]}))
    for path in namespaces:
        for number in range(10):
            pylance.declare_table(ln.DeclareTableRequest(id=[*path, f"t{number}"]))
    request_counts.clear()
    records, coverage = crawl(catalog)
    assert set(coverage) == {ROOT, *map(tuple, namespaces)}
    assert all(covered.complete and covered.detail.complete for covered in coverage.values())
    assert sum(record.kind is Kind.TABLE for record in records.values()) == 40
    assert records[("upper", "ns1")].properties == {"team": "ns1"}
    # Each namespace, the root too, is listed twice; each child namespace and each table is described.
    least = {"namespace/list": 5, "namespace/table/list": 5, "namespace/describe": 4, "table/describe": 40}
    assert dict(request_counts) == least


def test_a_namespace_that_vanished_is_not_found_although_the_server_lists_it_as_empty(catalog: Catalog) -> None:
    catalog.create_namespace(NamespaceRecord("r", ("ns",)))
    (shard,) = catalog.plan_shards()
    catalog.drop_namespace(("ns",))
    items_by_namespace = {item.namespace: item for item in catalog.read_shard(shard) if isinstance(item, Coverage)}
    assert items_by_namespace[ROOT].complete
    assert items_by_namespace[ROOT].records == 0
    assert (
        items_by_namespace[("ns",)].complete,
        items_by_namespace[("ns",)].found,
        items_by_namespace[("ns",)].presence.code,
    ) == (False, False, 1)


def test_a_table_that_is_listed_and_cannot_be_described_is_present(catalog: Catalog, own_rest_server: RestServer) -> None:
    from pathlib import Path as FilePath

    # The reference server lists an empty directory and then says "not found".
    FilePath(own_rest_server.root, "empty.lance").mkdir()
    records, coverage = crawl(catalog)
    assert records[("empty",)].kind is Kind.UNDESCRIBED
    assert coverage[ROOT].complete
    assert not coverage[ROOT].detail.complete


def test_a_namespace_that_the_server_cannot_list_is_no_empty_one(catalog: Catalog) -> None:
    # The reference server puts names into its queries as they are.
    catalog.create_namespace(NamespaceRecord("r", ("quo'te",)))
    catalog.create_namespace(NamespaceRecord("r", ("fine",)))
    with pytest.raises(Internal, match="tokenizing"):
        catalog.list_tables(("quo'te",))
    _, coverage = crawl(catalog)
    assert coverage[("fine",)].complete
    assert (coverage[("quo'te",)].complete, coverage[("quo'te",)].found, coverage[("quo'te",)].presence.code) == (
        False,
        True,
        18,
    )


@pytest.mark.parametrize("name", ["t.lance", "sp ace", "per%cent", "per%20cent", "ünï", "a+b", "a#b"])
def test_a_location_below_the_root_is_kept_as_it_is_spelled(catalog: Catalog, own_rest_server: RestServer, name: str) -> None:
    catalog.create_namespace(NamespaceRecord("r", ("ns",)))
    location = f"{own_rest_server.root}/below/{name}"
    declared = catalog.declare_table(TableRecord("r", ("ns", "t"), location))
    assert declared.canonical == canonical_location(location)


def test_an_error_hides_credentials_and_nothing_else(general_stub: GeneralRestStub) -> None:
    properties = {"header.x-tenant": "a", "auth_token": "s3cret"}
    general_stub.instead = lambda operation, query: (403, {}, '{"title": "no", "detail": "the token s3cret of tenant a"}')
    with opened(uri=general_stub.url, protocol="general", **properties) as catalog, pytest.raises(PermissionDenied) as caught:
        catalog.list_tables(("a",))
    assert caught.value.message == "r: listing the tables in a: the token *** of tenant a (HTTP 403)"


def test_without_a_root_the_server_chooses_the_location(own_rest_server: RestServer) -> None:
    with opened(uri=own_rest_server.url) as catalog:
        assert catalog.default_location(("t",)) is None
        assert catalog.declare_table(TableRecord("r", ("t",))).location == f"{own_rest_server.root}/t.lance"


@pytest.mark.parametrize("protocol", ["lance", "general"])
def test_a_default_location_is_a_uri(
    own_rest_server: RestServer, general_stub: GeneralRestStub, tmp_path: FilePath, protocol: str
) -> None:
    uri = general_stub.url if protocol == "general" else own_rest_server.url
    facade: Any = ln.connect(
        "federator_connectors.rest.RestNamespace", {"uri": uri, "protocol": protocol, "root": str(tmp_path)}
    )
    facade.create_namespace(ln.CreateNamespaceRequest(id=["a b"]))
    declared = facade.declare_table(ln.DeclareTableRequest(id=["a b", "t"]))
    assert declared.location == f"file://{tmp_path}/a%20b/t.lance"
    facade.close()


@pytest.mark.parametrize("protocol", ["lance", "general"])
def test_the_pool_size_is_the_number_of_connections_of_one_namespace(
    own_rest_server: RestServer, general_stub: GeneralRestStub, protocol: str
) -> None:
    with CountingProxy(general_stub.url if protocol == "general" else own_rest_server.url) as proxy:
        properties = {"uri": proxy.url, "protocol": protocol, "client.pool-size": "3"}
        facade: Any = ln.connect("federator_connectors.rest.RestNamespace", properties)
        facade.create_namespace(ln.CreateNamespaceRequest(id=["ns"]))
        with ThreadPoolExecutor(12) as threads:
            listed = threads.map(lambda _: facade.list_tables(ln.ListTablesRequest(id=["ns"])).tables, range(48))
            assert list(listed) == [[]] * 48
        assert 1 < proxy.accepted <= 3
        facade.close()
        assert facade.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == ["ns"]
        with facade.borrow_catalog() as catalog:
            assert set(crawl(catalog)[1]) == {ROOT, ("ns",)}
        facade.close()


def test_an_address_that_is_no_such_server_is_reported_and_nothing_is_absent(own_rest_server: RestServer) -> None:
    with opened(uri=f"{own_rest_server.url}/elsewhere") as catalog:
        for attempt in (lambda: catalog.list_namespaces(ROOT), lambda: catalog.observe(("t",))):
            with pytest.raises(Unsupported, match="does not have this route"):
                attempt()
    with opened(uri=own_rest_server.url, protocol="general") as catalog, pytest.raises(Unsupported):
        catalog.observe(("t",))


@pytest.mark.parametrize(
    ("status", "headers", "body", "error"),
    [
        (401, {}, "", Unauthenticated),
        (403, {}, '{"title": "Forbidden", "status": 403}', PermissionDenied),
        (404, {}, "<html>nginx</html>", Unsupported),
        (404, {}, '{"title": "Not Found", "status": 404, "detail": "gone"}', NamespaceNotFound),
        (406, {}, '{"title": "Not Acceptable"}', Unsupported),
        (429, {"Retry-After": "60"}, "", Throttled),
        (500, {}, '{"title": "broken"}', Internal),
        (503, {"Retry-After": "60"}, "", ServiceUnavailable),
        (200, {}, "<html>a login page</html>", Internal),
        (200, {}, "[]", Internal),
        (200, {}, "{}", Internal),
        (200, {}, '{"tables": null}', Internal),
        (200, {}, '{"tables": [1]}', Internal),
        (200, {}, '{"tables": [], "nextPageToken": 7}', Internal),
        (200, {}, '{"tables": [], "tables": ["t"]}', Internal),
        (200, {}, '{"tables": ["t"], "nextPageToken": "t", "nextPageToken": null}', Internal),
        (200, {}, '{"tables": [], "code": 4}', Internal),
        (200, {}, '{"tables": [], "error": "not found"}', Internal),
        (206, {}, '{"tables": []}', Internal),
        (302, {"Location": "http://127.0.0.1:9/"}, "", InvalidInput),
    ],
)
def test_each_answer_of_a_general_server_has_its_code(
    general: Catalog, general_stub: GeneralRestStub, status: int, headers: dict[str, str], body: str, error: type[CatalogError]
) -> None:
    general_stub.instead = lambda operation, query: (status, headers, body)
    with pytest.raises(error) as caught:
        general.list_tables(("ns",))
    assert type(caught.value) is error
    assert "listing the tables in ns" in caught.value.message


def test_a_listing_that_never_ends_is_an_error(general: Catalog, general_stub: GeneralRestStub) -> None:
    general_stub.instead = lambda operation, query: (200, {}, json.dumps({"tables": ["t"], "nextPageToken": "again"}))
    with pytest.raises(Internal, match="repeats a page token"):
        general.list_tables(ROOT)
    assert len(general_stub.calls) == 2


def test_an_empty_page_in_the_middle_ends_nothing(general: Catalog, general_stub: GeneralRestStub) -> None:
    pages = {None: ([], "one"), "one": (["a"], "two"), "two": ([], "three"), "three": (["b"], "")}

    def page(operation: str, query: Any) -> tuple[int, dict[str, str], str]:
        names, token = pages[query.get("pageToken")]
        return 200, {}, json.dumps({"tables": names, "nextPageToken": token})

    general_stub.instead = page
    assert general.list_tables(ROOT) == ["a", "b"]


def test_one_denied_namespace_fails_alone(general_stub: GeneralRestStub) -> None:
    world = general_stub.world
    world.namespaces |= {("open",): {}, ("closed",): {}}
    for name in ("open", "closed"):
        world.tables[(name, "t")] = {"location": f"s3://lake/{name}", "properties": {}}
    world.denied.add(("closed",))
    with opened(uri=general_stub.url, protocol="general", auth_token="limited") as catalog:
        records, coverage = crawl(catalog)
    assert coverage[ROOT].complete
    assert coverage[("open",)].complete
    assert (coverage[("closed",)].complete, coverage[("closed",)].presence.code, coverage[("closed",)].found) == (
        False,
        15,
        True,
    )
    assert set(records) == {("open",), ("closed",), ("open", "t")}


def test_a_page_that_fails_makes_no_shorter_listing(general: Catalog, general_stub: GeneralRestStub) -> None:
    general_stub.world.page_size = 2
    for number in range(5):
        general_stub.world.tables[(f"t{number}",)] = {"location": f"s3://lake/t{number}", "properties": {}}
    broken = (500, {}, '{"title": "broken"}')
    general_stub.instead = lambda operation, query: broken if query.get("pageToken") == "t1" else None
    _, coverage = crawl(general)
    assert not coverage[ROOT].complete
    assert coverage[ROOT].presence.code == 18


@pytest.mark.parametrize("taken", [400, 409])
def test_a_name_that_is_taken_may_be_a_400(general: Catalog, general_stub: GeneralRestStub, taken: int) -> None:
    from http import HTTPStatus

    general_stub.world.taken = HTTPStatus(taken)
    general.create_namespace(NamespaceRecord("r", ("ns",)))
    with pytest.raises(NamespaceAlreadyExists):
        general.create_namespace(NamespaceRecord("r", ("ns",)))
    declared = general.declare_table(TableRecord("r", ("ns", "t"), "s3://lake/t"))
    with pytest.raises(TableAlreadyExists):
        general.declare_table(declared)


def test_dropping_waits_for_the_word_that_data_stays(general_stub: GeneralRestStub) -> None:
    general_stub.world.tables[("t",)] = {"location": "s3://lake/t", "properties": {}}
    with opened(uri=general_stub.url, protocol="general") as catalog, pytest.raises(Unsupported, match="may delete data"):
        catalog.deregister_table(catalog.describe_table(("t",)))
    assert "DropTable" not in general_stub.calls
    assert ("t",) in general_stub.world.tables


def test_a_managed_table_is_kept_as_such(general: Catalog, general_stub: GeneralRestStub) -> None:
    general_stub.world.tables[("t",)] = {"location": "s3://lake/t", "properties": {}, "managedBy": "implementation"}
    records, _ = crawl(general)
    assert records[("t",)].kind is Kind.MANAGED_TABLE
    assert general.observe(("t",)).foreign == "a managed table"


def test_a_table_whose_versions_the_server_manages_is_managed(tmp_path: Any) -> None:
    with (
        reference_server(tmp_path, table_version_tracking_enabled="true") as server,
        opened(**server.properties) as catalog,
    ):
        client = ln.connect("rest", {"uri": server.url})
        assert client.declare_table(ln.DeclareTableRequest(id=["t"])).managed_versioning is True
        records, _ = crawl(catalog)
        assert records[("t",)].kind is Kind.MANAGED_TABLE
        assert catalog.observe(("t",)).foreign == "a managed table"


def test_a_server_that_puts_a_table_elsewhere_is_refused_and_tidied(general: Catalog, general_stub: GeneralRestStub) -> None:
    register = general_stub.world.register_table
    general_stub.world.register_table = lambda body: register({**body, "location": "s3://own/t"})  # type: ignore[method-assign]
    with pytest.raises(Unsupported, match="s3://own/t instead of s3://lake/t"):
        general.declare_table(TableRecord("r", ("t",), "s3://lake/t"))
    assert general_stub.world.tables == {}


def test_a_namespace_is_listed_while_the_tables_before_it_are_described(own_rest_server: RestServer) -> None:
    """A server that answers late is never idle between two namespaces: no table is described before the next listing is there."""
    listed, in_time = threading.Event(), []

    def hold_descriptions(request: bytes) -> None:
        if b"/v1/namespace/b/table/list" in (line := request.partition(b"\r\n")[0]):
            listed.set()
        if b"/v1/table/a%24t/describe" in line:
            in_time.append(listed.wait(20))

    with opened(**own_rest_server.properties) as catalog:
        for namespace in ("a", "b"):
            catalog.create_namespace(NamespaceRecord("r", (namespace,)))
            path = (namespace, "t")
            catalog.declare_table(TableRecord("r", path, catalog.default_location(path)))
    relay = Noting(own_rest_server.url, hold_descriptions)
    with opened(uri=relay.uri, root=own_rest_server.root) as catalog:
        items = [item for shard in catalog.plan_shards() for item in catalog.read_shard(shard)]
    relay.close()
    assert {item.path for item in items if isinstance(item, TableRecord)} == {("a", "t"), ("b", "t")}
    assert in_time == [True]


class ServerOfOthers(HttpProxy):
    """A server on which another client has a table. ``answers``: it accepts declarations of the name, and changes nothing."""

    def __init__(self, target: str, theirs: str, *, answers: bool) -> None:
        super().__init__(target)
        self._theirs = theirs
        self._answers = answers
        self.changes: list[str] = []

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        operation = request.path.partition("?")[0].rpartition("/")[2]
        if operation in ("register", "declare"):
            if not self._answers:
                # Another client has the name before the declaration is read back.
                response = super().forward(request, target)
                if response.status != 200:
                    return response
                super().forward(replace(request, path=request.path.replace(operation, "deregister"), body=b"{}"), target)
                body = json.dumps({"location": self._theirs}).encode()
                super().forward(replace(request, path=request.path.replace(operation, "register"), body=body), target)
                return response
            return Response(200, {"Content-Type": "application/json"}, json.dumps({"location": self._theirs}).encode())
        if operation in ("deregister", "drop"):
            self.changes.append(operation)
        return super().forward(request, target)


@pytest.mark.parametrize("answers", [True, False])
def test_a_table_of_another_client_is_never_removed(tmp_path: Any, answers: bool) -> None:
    with (
        reference_server(tmp_path, manifest_enabled="true") as server,
        ServerOfOthers(server.url, "theirs.lance", answers=answers) as proxy,
        opened(uri=proxy.url, root=str(tmp_path)) as catalog,
    ):
        client = ln.connect("rest", {"uri": server.url})
        client.create_namespace(ln.CreateNamespaceRequest(id=["ns"]))
        if answers:
            client.register_table(ln.RegisterTableRequest(id=["ns", "t"], location="theirs.lance"))
        with pytest.raises(TableAlreadyExists if answers else ConcurrentModification):
            catalog.declare_table(TableRecord("r", ("ns", "t"), f"file://{tmp_path}/mine.lance"))
        assert proxy.changes == []
        assert client.describe_table(ln.DescribeTableRequest(id=["ns", "t"])).location.endswith("theirs.lance")


def test_an_id_above_the_configured_depth_has_one_code_in_the_service_and_in_the_connector(tmp_path: FilePath) -> None:
    source = {"impl": "rest", "rest.uri": "http://127.0.0.1:9", "rest.depth": "2"}
    settings = parse_settings({"sources": {"lake": source}}, tmp_path / "federator.toml")
    with pytest.raises(InvalidInput, match="has at least 4 levels"):
        get_any_table(cast("Any", None), settings, EVERYTHING, ("lake", "catalog", "t"))
    with pytest.raises(InvalidInput, match="has 3 levels"):
        IdentifierParser("lake", source_capabilities(settings.sources["lake"].spec)).parse_table(["catalog", "t"])
