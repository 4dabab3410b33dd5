"""Staging on S3: Hadoop's own driver of S3 (``s3a:``) from Maven Central, before moto's server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from federator.store import tables as t
from tests.cluster.company import Company
from tests.cluster.installation import configured
from tests.fixtures.cluster import Cluster
from tests.fixtures.glue import REGION, STATIC, client_of
from tests.fixtures.maven import jars
from tests.fixtures.relay import Noting

pytestmark = pytest.mark.timeout(600)
_TABLES, _DATABASES = 2_000, 10
_CREDENTIALS = "software.amazon.awssdk.auth.credentials"
#: the driver of S3 must ask no metadata service
_KEYS = {name.upper(): value for name, value in STATIC.items()} | {"AWS_EC2_METADATA_DISABLED": "true"}


def _hadoop_conf(endpoint: str) -> dict[str, str]:
    """Spark's settings for ``s3a:``, and its driver for executors."""
    return {
        "spark.jars": ",".join(map(str, sorted(jars("spark-aws-3.5.0").glob("*.jar")))),
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.aws.credentials.provider": f"{_CREDENTIALS}.EnvironmentVariableCredentialsProvider",
    }


def test_crawls_and_reports_are_staged_on_s3(
    glue_url: str, postgres_database: Callable[..., str], postgres_template: str, tmp_path: Path
) -> None:
    s3 = client_of(glue_url, "s3")
    s3.create_bucket(Bucket="staging")
    relay, url = Noting(glue_url), postgres_database(postgres_template)
    sections = {
        "index": {"url": url},
        "spark": {"master": "local[2,4]", "staging": "s3a://staging/federator"},
        "spark.conf": _hadoop_conf(relay.uri),
        "sources.big": {"impl": "federator.testing:CONNECTOR", "tables": _TABLES, "databases": _DATABASES},
        "verify": {"enabled": False},
    }
    installation = configured(tmp_path, url, sections, _KEYS)

    installation.run("crawl")
    assert len(installation.rows(t.record, "path")) == _TABLES + _DATABASES
    assert b"PUT /staging/federator/" in relay.take()[1]
    installation.run("report", "inventory")
    assert b"report-current.parquet" in relay.take()[1]
    relay.close()
    # Nothing that a run has staged is left but the directory that all runs share.
    assert [each["Key"] for each in s3.list_objects_v2(Bucket="staging").get("Contents", [])] == ["federator/"]


def test_executors_of_a_cluster_stage_on_s3(
    cluster: Cluster, company: Company, archive: Path, postgres_database: Callable[..., str], tmp_path: Path
) -> None:
    s3 = client_of(company.origin.url, "s3")
    s3.create_bucket(Bucket="staging-of-a-cluster")
    spark = {"master": cluster.master, "staging": "s3a://staging-of-a-cluster/federator", "archive": str(archive)}
    conf = {"spark.pyspark.python": cluster.python, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    conf |= _hadoop_conf(company.origin.url) | {f"spark.executorEnv.{name}": text for name, text in _KEYS.items()}
    remote = company.configure(tmp_path / "remote", postgres_database(), spark, conf)
    local = company.configure(tmp_path / "local", postgres_database(), {"master": "local[2,4]"})
    local.run("sync")
    remote.run("sync", **_KEYS)
    remote.run("report", "inventory", **_KEYS)
    assert remote.results() == local.results()
    assert {row["source"] for row in remote.report()} == {"lake", "copy"}
    kept = s3.list_objects_v2(Bucket="staging-of-a-cluster").get("Contents", [])
    assert [each["Key"] for each in kept] == ["federator/"]
