"""A catalog whose identity cannot be read, through the product's commands: Hive 3 and Glue behind lying proxies."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from federator.registry import get_connector
from federator.store import misses
from tests.adversary.http_proxy import HttpProxy
from tests.adversary.lies import Action, Lie, Raise, Send
from tests.adversary.thrift_proxy import ThriftProxy
from tests.fixtures.glue import GlueAccount
from tests.fixtures.product import PARTIAL, Product
from tests.stories.test_replaced_catalogs import fill

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Origin:
    """A real catalog behind a proxy. ``calls`` (a pattern) are those that read its identity, ``failure`` is the server's ``error``."""

    proxy: HttpProxy | ThriftProxy
    properties: Mapping[str, str]
    address: Mapping[str, str]
    namespace: tuple[str, ...]
    calls: str
    error: str
    failure: Action

    def configure(self, product: Product) -> None:
        # Without the change feed, each crawl reads the identity equally often.
        source = {**self.properties, **self.address, "incremental": False}
        product.configure(source, include=[f"*${self.namespace[-1]}$*"], namespace="{database}")

    def drop(self, name: str) -> None:
        properties = {key: value for key, value in self.properties.items() if key != "impl"}
        connector = get_connector(self.properties["impl"])
        with connector.open("there", connector.parse_settings(properties)) as catalog:
            catalog.deregister_table(catalog.describe_table((*self.namespace, name)))


@pytest.fixture(params=["hive3", "glue"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Origin]:
    database = f"sales_{secrets.token_hex(4)}"
    proxy: HttpProxy | ThriftProxy
    if request.param == "hive3":
        uri: str = request.getfixturevalue("hive3_uri")
        with ThriftProxy(uri) as proxy:
            made = Origin(
                proxy, {"impl": "hive3", "uri": uri}, {"uri": proxy.uri}, ("hive", database), "get_metastore_db_uuid",
                "the metastore's database is down", Raise(1, "the metastore's database is down"),
            )  # fmt: skip
            fill("hive3", {"uri": uri}, made.namespace, {name: f"file:{tmp_path}/lake/{name}" for name in "ab"})
            yield made
        return
    account: GlueAccount = request.getfixturevalue("glue_account")
    failure = Send(b'{"__type": "InternalServiceException", "Message": "try later"}', 500, "application/x-amz-json-1.1")
    with HttpProxy(account.url) as proxy:
        made = Origin(
            proxy, {"impl": "glue", **account.properties}, {"endpoint": proxy.url, "sts_endpoint": proxy.url},
            (account.account_id, database), "GetCatalogs|POST /", "InternalServiceException: try later", failure,
        )  # fmt: skip
        fill("glue", account.properties, made.namespace, {name: f"s3://lake/{name}" for name in "ab"})
        yield made


@pytest.mark.parametrize("when", ["always", "at the end of the crawl"])
def test_an_identity_that_cannot_be_read_proves_nothing(origin: Origin, when: str, tmp_path: Path) -> None:
    """Every listing is complete, and one lacks a table that was really dropped.

    The identity is the first thing that a crawl reads: if it never can be, the error is the source's.
    """
    (tmp_path / "federator").mkdir()
    product = Product(tmp_path / "federator")
    origin.configure(product)
    product.sync()
    origin.proxy.truthful()
    product.sync()
    reads = [call for call in origin.proxy.calls if call in origin.calls.split("|")]
    before, known = product.copies(), product.known()
    assert sorted(before) == ["a", "b"]
    origin.drop("b")
    for _ in range(2):
        origin.proxy.lie(Lie(origin.calls, origin.failure, first=1 if when == "always" else len(reads)))
        document = product.sync(PARTIAL)
        assert origin.proxy.met
        (source,) = (each for each in document["sources"] if each["name"] == "origin")
        assert source["state"] == "failed"
        expected = () if when == "always" else ("the identity of origin could not be read", "federator crawl origin")
        assert [text for text in (*expected, origin.error) if text not in source["message"]] == []
        (plan,) = document["plans"]
        assert (plan["changes"], document["outcomes"]) == ([], [])
        assert (product.copies(), product.known()) == (before, known)
        with product.index.read() as connection:
            assert misses.list_misses(connection, "origin") == {}
    origin.proxy.truthful()
    product.sync()
    assert product.copies() == {"a": before["a"]}
