"""Tables at ``s3://`` in a metastore that has hadoop-aws, over moto's S3."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import lance
import lance_namespace as ln
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from federator.demo.servers import hive
from tests.fixtures.hive import started
from tests.fixtures.maven import jars

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.mark.parametrize("version", [hive.HIVE3, hive.HIVE4])
def test_tables_in_a_bucket(version: str, endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> None:
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
    place, env = tmp_path_factory.mktemp("s3"), {"HIVE_AUX_JARS_PATH": str(jars("hadoop-aws-3.3.6"))}
    server = started(lambda run_dir: hive.start(version, run_dir, conf, env), place)
    try:
        storage = {"aws_endpoint": endpoint, "allow_http": "true", "aws_region": "us-east-1", **keys}
        properties = {
            "uri": server.uri,
            "root": f"s3://{bucket}",
            **{f"storage.{key}": value for key, value in storage.items()},
        }
        face = ln.connect("federator_connectors.hive3.Hive3Namespace", properties)
        face.create_namespace(ln.CreateNamespaceRequest(id=["hive", "sales"]))
        table = ["hive", "sales", "orders"]
        lance.write_dataset(pa.table({"id": [1, 2]}), namespace_client=face, table_id=table)
        described = face.describe_table(ln.DescribeTableRequest(id=table))
        assert described.location == f"s3://{bucket}/hive/sales/orders.lance"
        face.declare_table(ln.DeclareTableRequest(id=["hive", "sales", "empty"]))
        listed = s3.list_objects_v2(Bucket=bucket, Prefix="hive/sales/empty.lance")
        assert listed["KeyCount"] == 0, "the metastore wrote a marker for the location's directory"
        assert lance.dataset(namespace_client=face, table_id=table).count_rows() == 2
        face.deregister_table(ln.DeregisterTableRequest(id=table))
        assert lance.dataset(described.location, storage_options=storage).count_rows() == 2, "the data stays"
    finally:
        server.stop()
