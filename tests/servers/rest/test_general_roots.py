"""The root of servers with the general protocol: it has no name that a request could send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from federator.connector import Catalog, CatalogError, Internal, Unauthenticated
from federator.lance.circles import require_no_circle
from federator.model import Coverage
from federator_connectors.rest import CONNECTOR
from tests.stubs.general_rest import GeneralRestStub


@pytest.fixture
def general(general_stub: GeneralRestStub) -> Iterator[Catalog]:
    settings = CONNECTOR.parse_settings({"uri": general_stub.url, "protocol": "general", "root": "s3://lake"})
    with CONNECTOR.open("r", settings) as found:
        yield found


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, '{"title": "name must not be empty"}'),
        (403, '{"title": "Forbidden"}'),
        (404, '{"title": "Not Found", "status": 404}'),
        (404, "no such route"),
        (406, '{"title": "Not Acceptable"}'),
        (200, '{"name": "", "parent": []}'),
        (200, '{"name": null, "parent": null, "properties": null}'),
    ],
)
def test_a_server_that_does_not_describe_its_root_is_usable(
    general: Catalog, general_stub: GeneralRestStub, status: int, body: str
) -> None:
    general_stub.world.tables[("t",)] = {"location": "s3://lake/t", "properties": {}}
    general_stub.instead = lambda operation, query: (
        (status, {}, body) if operation == "GetNamespace" and not query["name"] else None
    )
    require_no_circle(general, "a deployment")
    assert general.identity() is None
    assert general.default_location(("new",)) == "s3://lake/new.lance"
    rows = [row for shard in general.plan_shards() for row in general.read_shard(shard)]
    assert [row.path for row in rows if not isinstance(row, Coverage)] == [("t",)]
    assert [row.complete for row in rows if isinstance(row, Coverage)] == [True]
    assert "GetNamespace" in general_stub.calls


@pytest.mark.parametrize(("status", "error"), [(500, Internal), (401, Unauthenticated)])
def test_a_root_that_cannot_be_read_proves_no_identity(
    general: Catalog, general_stub: GeneralRestStub, status: int, error: type[CatalogError]
) -> None:
    general_stub.instead = lambda operation, query: (status, {}, "") if operation == "GetNamespace" else None
    with pytest.raises(error, match="reading the root"):
        general.identity()
