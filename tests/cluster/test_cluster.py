"""A Spark cluster that shares neither a disk, nor a user, nor packages with the driver."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from sqlalchemy import Table, select

from federator.model import NamespaceRecord, TableRecord
from federator.store import migrations, open_index
from federator.store import tables as t
from federator_connectors import glue
from tests.fixtures.cluster import Cluster, connect_server
from tests.fixtures.glue import GlueAccount, account
from tests.fixtures.postgres import free_port

pytestmark = pytest.mark.timeout(900)
pytest_plugins = ["tests.fixtures.cluster"]
_READABLE, _ABSENT = 4, 20
_WITHOUT_JAVA = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere"}


@dataclass(frozen=True)
class Company:
    """A Glue database with tables on S3, and a way to run the federator over it."""

    origin: GlueAccount
    database: str
    storage: dict[str, str]

    def configure(
        self,
        directory: Path,
        url: str,
        spark: dict[str, Any],
        conf: dict[str, str] | None = None,
        *,
        own_executors: bool = True,
    ) -> Installation:
        """Write a configuration whose mirror has a Glue account of its own as target.

        Executors resolve references in their own environment. Those of a Connect server are not the session's ``own_executors``.
        """
        directory.mkdir()
        with closing(open_index(url)) as index:
            migrations.upgrade_schema(index)
        accounts = {"lake": self.origin.properties, "copy": account(self.origin.url).properties}
        storage = {f"storage.{key}": value for key, value in self.storage.items()}
        secrets = {"S3_KEY": self.storage["aws_access_key_id"], "S3_SECRET": self.storage["aws_secret_access_key"]}
        storage |= {"storage.aws_access_key_id": "${S3_KEY}", "storage.aws_secret_access_key": "${S3_SECRET}"}
        for name, properties in accounts.items():
            for key in ("access_key_id", "secret_access_key", "session_token"):
                secrets[f"{name}_{key}".upper()] = properties[key]
                properties[key] = f"${{{f'{name}_{key}'.upper()}}}"
        sections = {
            "instance": {"id": "cluster"},
            "index": {"url": url},
            "spark": spark,
            "spark.conf": {f"spark.executorEnv.{name}": value for name, value in secrets.items() if own_executors}
            | (conf or {}),
            "sources.lake": {"impl": "glue", **accounts["lake"], **storage},
            "sources.copy": {"impl": "glue", **accounts["copy"]},
            "mirrors.copies": {"from": "lake", "to": "copy"},
        }
        lines = []
        for section, options in sections.items():
            lines += [f"[{section}]", *(f'"{key}" = {json.dumps(value)}' for key, value in options.items())]
        (directory / "federator.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (directory / "federator.toml").chmod(0o600)
        return Installation(directory, url, secrets)


@dataclass(frozen=True)
class Installation:
    """A directory with a configuration, its index, and the variables of its environment."""

    directory: Path
    url: str
    environment: dict[str, str]

    def run(self, *words: str, code: int = 0, **environment: str) -> str:
        command = [sys.executable, "-c", "from federator.cli import main; main()", *words]
        variables = {**os.environ, "NO_COLOR": "1", **self.environment, **environment}
        done = subprocess.run(
            command, cwd=self.directory, env=variables, capture_output=True, text=True, check=False, timeout=580
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def rows(self, table: Table, *columns: str) -> set[tuple[Any, ...]]:
        with closing(open_index(self.url)) as index, index.read() as connection:
            return {tuple(row) for row in connection.execute(select(*(table.c[name] for name in columns)))}

    def results(self) -> dict[str, set[tuple[Any, ...]]]:
        """What a sync has found and done: verified datasets, copied objects, and the records of the origin."""
        origins = {row for row in self.rows(t.record, "source", "path", "digest") if row[0] == "lake"}
        datasets, copies = self.rows(t.dataset, "canonical", "state", "rows"), self.rows(t.ledger, "origin_path", "is_table")
        return {"datasets": datasets, "copies": copies, "origins": origins}

    def report(self) -> list[dict[str, str]]:
        (file,) = self.directory.glob(".federator/reports/*/inventory.csv")
        with file.open(newline="", encoding="utf-8") as text:
            return sorted(csv.DictReader(text), key=lambda row: (row["source"], row["path"]))


@pytest.fixture(scope="module")
def company(s3_storage_options: dict[str, str], glue_url: str) -> Company:
    """Tables of one database: some are on S3, and the others were never written."""
    origin, database = account(glue_url), "sales"
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    properties = dict(origin.properties)
    with glue.CONNECTOR.open("lake", glue.CONNECTOR.parse_settings(properties)) as catalog:
        catalog.create_namespace(NamespaceRecord("lake", (origin.account_id, database)))
        for number in range(_READABLE + _ABSENT):
            location = f"s3://lance-data/{origin.account_id}/t{number}.lance"
            if number < _READABLE:
                lance.write_dataset(rows, location, storage_options=s3_storage_options)
            path = (origin.account_id, database, f"t{number}")
            catalog.declare_table(TableRecord("lake", path, location, properties={"number": str(number)}))
    return Company(origin, database, s3_storage_options)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, company: Company) -> Path:
    """What ``federator spark pack`` makes."""
    directory = tmp_path_factory.mktemp("archive")
    (directory / "federator.toml").write_text('[sources.lake]\nimpl = "glue"\n')
    Installation(directory, "", {}).run("spark", "pack", "--out", "executors.tar.gz")
    return directory / "executors.tar.gz"


def test_a_cluster_without_shared_disk_gives_the_results_of_one_machine(
    cluster: Cluster, company: Company, archive: Path, postgres_database: Callable[..., str], tmp_path: Path
) -> None:
    spark = {"master": cluster.master, "staging": cluster.hdfs, "archive": str(archive)}
    conf = {"spark.pyspark.python": cluster.python, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    remote = company.configure(tmp_path / "remote", postgres_database(), spark, conf)
    local = company.configure(tmp_path / "local", postgres_database(), {"master": "local[2,4]"})
    local.run("sync")
    remote.run("sync")
    remote.run("report", "inventory")

    copied = {path.rpartition("$")[2] for (path, is_table) in remote.rows(t.ledger, "target_path", "is_table") if is_table}
    assert copied == {f"t{number}" for number in range(_READABLE + _ABSENT)}
    assert remote.results() == local.results()
    states = [state for _, state in remote.rows(t.dataset, "canonical", "state")]
    assert (states.count("valid"), len(states)) == (_READABLE, _READABLE + _ABSENT)
    reported = [row["path"] for row in remote.report() if row["source"] == "lake"]
    assert sorted(path.rpartition("$")[2] for path in reported) == sorted(copied)
    # Nothing that a run has staged is left.
    assert not list((tmp_path / "remote" / ".federator").glob("staging/*/*"))


def test_executors_without_packages_are_reported_with_the_remedy(
    cluster: Cluster, company: Company, postgres_database: Callable[..., str], tmp_path: Path
) -> None:
    spark = {"master": cluster.master, "staging": cluster.hdfs}
    conf = {"spark.pyspark.python": cluster.python, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    installation = company.configure(tmp_path / "remote", postgres_database(), spark, conf)
    output = installation.run("doctor", "--spark", code=1)
    assert "federator spark pack" in " ".join(output.split())


def test_spark_connect_gives_the_results_of_one_machine(
    cluster: Cluster, company: Company, archive: Path, postgres_database: Callable[..., str], tmp_path: Path
) -> None:
    local = company.configure(tmp_path / "local", postgres_database(), {"master": "local[2,4]"})
    spark = {"master": f"sc://127.0.0.1:{(port := free_port())}", "staging": f"{cluster.hdfs}/connect"}
    remote = company.configure(tmp_path / "remote", postgres_database(), spark, own_executors=False)
    local.run("sync")
    with connect_server(cluster, archive, remote.environment, port):
        # Java is not found, so a JVM of this process would be an error.
        remote.run("doctor", "--spark", **_WITHOUT_JAVA)
        remote.run("sync", **_WITHOUT_JAVA)
        remote.run("report", "inventory", **_WITHOUT_JAVA)
    assert {message for state, message in remote.rows(t.dataset, "state", "message") if state == "unreachable"} == set()
    assert remote.results() == local.results()
    states = [state for _, state, _ in remote.results()["datasets"]]
    assert (states.count("valid"), len(states)) == (_READABLE, _READABLE + _ABSENT)
    assert len([row for row in remote.report() if row["source"] == "lake"]) == _READABLE + _ABSENT
