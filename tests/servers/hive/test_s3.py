"""Tables at ``s3://`` in a metastore that has hadoop-aws, over moto's S3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import boto3
import lance
import lance_namespace as ln
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from federator.connector import CatalogError
from federator.demo.servers import hive
from federator.model import Path, TableRecord
from tests.adversary import creates
from tests.fixtures.hive import Metastore, started
from tests.fixtures.maven import jars

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@dataclass(frozen=True)
class Lake:
    """A metastore that reaches a bucket, ``s3`` with its client and ``storage`` with the options that open a table in it."""

    uri: str
    bucket: str
    s3: Any
    storage: Mapping[str, str]
    version: int

    @property
    def properties(self) -> dict[str, str]:
        return {
            "uri": self.uri,
            "root": f"s3://{self.bucket}",
            **{f"storage.{key}": value for key, value in self.storage.items()},
        }


@pytest.fixture(scope="module", params=[hive.HIVE3, hive.HIVE4])
def lake(request: pytest.FixtureRequest, endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    version: str = request.param
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
    s3.create_bucket(Bucket=(bucket := f"lake-{version.replace('.', '-')}"))
    conf = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        # hadoop-aws 3.3.6 cannot read what is the default in PySpark's Hadoop: classes of another AWS SDK, numbers with units.
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "fs.s3a.threads.keepalivetime": "60",
        "fs.s3a.multipart.purge.age": "86400",
        "fs.s3a.connection.establish.timeout": "5000",
        "fs.s3a.connection.timeout": "20000",
        "fs.s3a.connection.request.timeout": "20000",
    }
    directory, env = tmp_path_factory.mktemp("s3"), {"HIVE_AUX_JARS_PATH": str(jars("hadoop-aws-3.3.6"))}
    server = started(lambda run_dir: hive.start(version, run_dir, conf, env), directory)
    storage = {"aws_endpoint": endpoint, "allow_http": "true", "aws_region": "us-east-1", **keys}
    yield Lake(server.uri, bucket, s3, storage, int(version[0]))
    server.stop()


def test_tables_in_a_bucket(lake: Lake) -> None:
    facade = ln.connect("federator_connectors.hive3.Hive3Namespace", lake.properties)
    facade.create_namespace(ln.CreateNamespaceRequest(id=["hive", "sales"]))
    table = ["hive", "sales", "orders"]
    lance.write_dataset(pa.table({"id": [1, 2]}), namespace_client=facade, table_id=table)
    described = facade.describe_table(ln.DescribeTableRequest(id=table))
    assert described.location == f"s3://{lake.bucket}/hive/sales/orders.lance"
    facade.declare_table(ln.DeclareTableRequest(id=["hive", "sales", "empty"]))
    listed = lake.s3.list_objects_v2(Bucket=lake.bucket, Prefix="hive/sales/empty.lance")
    assert listed["KeyCount"] == 0, "the metastore wrote a marker for the location's directory"
    assert lance.dataset(namespace_client=facade, table_id=table).count_rows() == 2
    facade.deregister_table(ln.DeregisterTableRequest(id=table))
    assert lance.dataset(described.location, storage_options=dict(lake.storage)).count_rows() == 2, "the data stays"


def test_clients_that_create_one_table_lose_no_rows(lake: Lake, tmp_path: FilePath) -> None:
    """A creation that fails would remove the marker of its location's directory with everything below it, here as well."""
    clients, metastore = 8, Metastore(lake.uri, 2, ("hive",), tmp_path, lake.version)
    with metastore.open(**{"client.pool-size": str(clients)}) as catalog:

        def create(path: Path, client: int) -> bool:
            location = f"s3://{lake.bucket}/{'/'.join(path)}.lance"
            try:
                catalog.declare_table(TableRecord("lake", path, location))
            except CatalogError:
                return False
            with suppress(OSError):
                lance.write_dataset(creates.rows(client), location, storage_options=dict(lake.storage), mode="create")
            return True

        tally = creates.Race(metastore, create, storage=lake.storage).run(8, clients)
    assert tally.clean, str(tally)
