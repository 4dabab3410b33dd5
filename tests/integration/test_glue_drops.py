"""Dropping a namespace of a real Glue, which takes every table in it along: what hides tables must not cost them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lance_namespace as ln
import pytest
from lance_namespace import errors

from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Edit, Lie, Op
from tests.api.lance.conftest import served
from tests.fixtures.glue import GlueAccount

pytestmark = pytest.mark.timeout(60)

CONFIRMED = {"header.x-federator-confirm": "cascades"}
#: what a permission filter makes of every listing
HIDDEN = Lie("GetTables", Edit(("TableList",), Op.CLEAR))
ONCE = Lie("GetTables", Edit(("TableList",), Op.CLEAR), times=1)


@pytest.fixture
def proxy(glue_account: GlueAccount) -> Iterator[HttpProxy]:
    """In front of an account with a table in the database ``sales``."""
    client = glue_account.client()
    client.create_database(DatabaseInput={"Name": "sales"})
    client.create_table(DatabaseName="sales", TableInput={"Name": "users", "TableType": "EXTERNAL_TABLE"})
    with HttpProxy(glue_account.url) as opened:
        yield opened


def connect(account: GlueAccount, proxy: HttpProxy, **more: str) -> Any:
    return ln.connect("federator_connectors.glue.GlueNamespace", {**account.properties, "endpoint": proxy.url, **more})


def tables(account: GlueAccount) -> list[str]:
    return [table["Name"] for table in account.client().get_tables(DatabaseName="sales")["TableList"]]


def test_what_a_listing_hides_is_dropped_only_when_the_caller_confirms_it(glue_account: GlueAccount, proxy: HttpProxy) -> None:
    face = connect(glue_account, proxy)
    proxy.lie(HIDDEN)
    for context in (None, {"header.x-federator-confirm": "yes"}):
        with pytest.raises(errors.InvalidInputError, match=r"with every table in it(.|\n)*x-federator-confirm: cascades"):
            face.drop_namespace(ln.DropNamespaceRequest(id=["sales"], context=context))
        request = ln.CreateNamespaceRequest(id=[glue_account.account_id, "sales"], mode="Overwrite", context=context)
        with pytest.raises(errors.InvalidInputError, match="with every table in it"):
            face.create_namespace(request)
    assert "DeleteDatabase" not in proxy.calls
    assert tables(glue_account) == ["users"]
    with pytest.raises(errors.NamespaceNotFoundError):
        face.drop_namespace(ln.DropNamespaceRequest(id=["none"]))


@pytest.mark.parametrize("confirmed", ["request", "property"])
def test_one_listing_that_lies_drops_nothing(glue_account: GlueAccount, proxy: HttpProxy, confirmed: str) -> None:
    by_property = confirmed == "property"
    face = connect(glue_account, proxy, **({"glue.drop_cascades": "confirmed"} if by_property else {}))
    proxy.lie(ONCE)
    request = ln.DropNamespaceRequest(id=["sales"], context=None if by_property else CONFIRMED)
    with pytest.raises(errors.NamespaceNotEmptyError, match="it holds users"):
        face.drop_namespace(request)
    assert proxy.met == 1
    assert tables(glue_account) == ["users"]
    glue_account.client().delete_table(DatabaseName="sales", Name="users")
    face.drop_namespace(request)
    with pytest.raises(errors.NamespaceNotFoundError):
        face.describe_namespace(ln.DescribeNamespaceRequest(id=["sales"]))


def test_a_lance_client_confirms_through_the_service(
    glue_account: GlueAccount, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("served")
    source = {"impl": "glue", **glue_account.properties}
    for key in ("access_key_id", "secret_access_key", "session_token"):
        (directory / key).write_text(source[key])
        source[key] = f"file:{directory / key}"
    path = ["shop", glue_account.account_id, "sales"]
    with served(directory, {"shop": source}, bare=True) as service:
        face: Any = ln.connect("rest", {"uri": service.url})
        face.create_namespace(ln.CreateNamespaceRequest(id=path))
        for address, body in (("/v1/namespace/{}/drop", {}), ("/v1/namespace/{}/create", {"mode": "Overwrite"})):
            refused = service.post(address.format("$".join(path)), body)
            assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text
        assert service.post("/DropNamespace", {"id": {"namespace": path[:-1], "name": path[-1]}}).status_code >= 400
        face.namespace_exists(ln.NamespaceExistsRequest(id=path))
        face.drop_namespace(ln.DropNamespaceRequest(id=path, context=CONFIRMED))
        with pytest.raises(errors.NamespaceNotFoundError):
            face.namespace_exists(ln.NamespaceExistsRequest(id=path))
