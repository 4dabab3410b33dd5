"""Companions of tables at ``s3://``, over moto's S3, which Iceberg's own REST catalog reaches with its S3FileIO."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import boto3
import lance
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from federator.connector import Internal, Unsupported
from federator.model import TableRecord
from federator_connectors._iceberg.catalog import IcebergCatalog
from federator_connectors.iceberg import CONNECTOR
from tests.adversary.http_proxy import HttpProxy, Request, Response
from tests.fixtures.iceberg import WAREHOUSE, IcebergServer, started
from tests.fixtures.maven import jars

pytestmark = pytest.mark.timeout(300)

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
BUCKET = "lake"


@dataclass(frozen=True)
class Lake:
    """A server that reaches a bucket, ``s3`` with its client and ``storage`` with the options that open a table in it."""

    server: IcebergServer
    s3: Any
    storage: Mapping[str, str]

    def keys(self, prefix: str) -> list[str]:
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])]

    def open(self, url: str, **changed: str) -> IcebergCatalog:
        storage = {f"storage.{key}": value for key, value in {**self.storage, **changed}.items()}
        return CONNECTOR.open(f"at {url}", CONNECTOR.parse_settings({"endpoint": url, "warehouses": WAREHOUSE, **storage}))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    moto = ThreadedMotoServer("127.0.0.1", 0)
    moto.start()
    endpoint = "http://{}:{}".format(*moto.get_host_and_port())
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
    s3.create_bucket(Bucket=BUCKET)
    properties = {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.endpoint": endpoint, "s3.path-style-access": "true",
        "s3.access-key-id": "test", "s3.secret-access-key": "test", "client.region": "us-east-1",
        "http-client.type": "urlconnection",
    }  # fmt: skip
    with started(tmp_path_factory.mktemp("iceberg"), jars("iceberg-aws-1.11.0"), properties=properties) as server:
        yield Lake(server, s3, {"aws_endpoint": endpoint, "allow_http": "true", "aws_region": "us-east-1", **KEYS})
    moto.stop()


class PurgingProxy(HttpProxy):
    """A server that deletes the objects of one dropped table, whatever it is asked to do."""

    lake: Lake
    purges = "purged"

    def forward(self, request: Request, target: tuple[str, int]) -> Response:
        if request.method == "DELETE" and f"/tables/{self.purges}?" in request.path:
            for key in self.lake.keys(f"{self.purges}.lance/"):
                self.lake.s3.delete_object(Bucket=BUCKET, Key=key)
        return super().forward(request, target)


def test_a_table_in_a_bucket(lake: Lake, tmp_path: FilePath) -> None:
    namespace = lake.server.namespace((WAREHOUSE, "kept"))
    location = f"s3://{BUCKET}/kept.lance"
    lance.write_dataset(pa.table({"id": [1, 2]}), location, storage_options=dict(lake.storage))
    before = lake.keys("kept.lance/")
    with lake.open(lake.server.url) as catalog:
        declared = catalog.declare_table(TableRecord("x", (*namespace, "kept"), location))
        assert catalog.list_tables(namespace) == ["kept"]
        assert len(lake.keys("_iceberg/kept/")) == 1
        catalog.deregister_table(declared)
    assert lake.keys("kept.lance/") == before
    assert lance.dataset(location, storage_options=dict(lake.storage)).count_rows() == 2


def test_data_that_a_server_deletes_in_a_bucket_is_missed(lake: Lake) -> None:
    namespace = lake.server.namespace((WAREHOUSE, "purged"))
    location = f"s3://{BUCKET}/purged.lance"
    lance.write_dataset(pa.table({"id": [1, 2]}), location, storage_options=dict(lake.storage))
    with PurgingProxy(lake.server.url) as proxy, lake.open(proxy.url) as catalog:
        proxy.lake = lake
        declared = catalog.declare_table(TableRecord("x", (*namespace, "purged"), location))
        with pytest.raises(Internal, match="deleted the data"):
            catalog.deregister_table(declared)


def test_a_table_whose_store_cannot_be_listed_is_not_deregistered(lake: Lake) -> None:
    """Neither a drop test nor a loss would be seen."""
    namespace = lake.server.namespace((WAREHOUSE, "unlisted"))
    location = f"s3://{BUCKET}/unlisted.lance"
    lance.write_dataset(pa.table({"id": [1, 2]}), location, storage_options=dict(lake.storage))
    wrong = {"aws_endpoint": "http://127.0.0.1:9", "client_max_retries": "0"}
    with PurgingProxy(lake.server.url) as proxy, lake.open(proxy.url, **wrong) as catalog:
        proxy.lake, proxy.purges = lake, "unlisted"
        declared = catalog.declare_table(TableRecord("x", (*namespace, "unlisted"), location))
        with pytest.raises(Unsupported, match=r"lake/_iceberg cannot be listed"):
            catalog.deregister_table(declared)
        assert catalog.observe(declared.path).record == declared
    assert lance.dataset(location, storage_options=dict(lake.storage)).count_rows() == 2
