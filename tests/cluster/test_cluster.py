"""A Spark cluster that shares neither a disk, nor a user, nor packages with the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from federator.store import tables as t
from tests.cluster.company import Company
from tests.cluster.conftest import ABSENT, READABLE
from tests.fixtures.cluster import Cluster, connect_server
from tests.fixtures.postgres import free_port
from tests.fixtures.yarn import yarn

pytestmark = pytest.mark.timeout(900)
_WITHOUT_JAVA = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere"}


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
    assert copied == {f"t{number}" for number in range(READABLE + ABSENT)}
    assert remote.results() == local.results()
    states = [state for _, state in remote.rows(t.dataset, "canonical", "state")]
    assert (states.count("valid"), len(states)) == (READABLE, READABLE + ABSENT)
    reported = [row["path"] for row in remote.report() if row["source"] == "lake"]
    assert sorted(path.rpartition("$")[2] for path in reported) == sorted(copied)
    # Nothing that a run has staged is left.
    assert not list((tmp_path / "remote" / ".federator").glob("staging/*/*"))


def test_yarn_gives_the_results_of_one_machine(
    cluster: Cluster, company: Company, archive: Path, postgres_database: Callable[..., str], tmp_path: Path
) -> None:
    local = company.configure(tmp_path / "local", postgres_database(), {"master": "local[2,4]"})
    spark = {"master": "yarn", "staging": f"{cluster.hdfs}/yarn", "archive": str(archive)}
    conf = {
        "spark.pyspark.python": cluster.python, "spark.executor.memory": "512m", "spark.executor.instances": "1",
        "spark.yarn.am.memory": "256m", "spark.yarn.jars": f"local:{cluster.spark}/jars/*", "spark.driver.host": "127.0.0.1",
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1", "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    remote = company.configure(tmp_path / "remote", postgres_database(), spark, conf)
    local.run("sync")
    with yarn(cluster) as hadoop_conf:
        for words in (("sync",), ("report", "inventory")):
            remote.run(*words, HADOOP_CONF_DIR=str(hadoop_conf), SPARK_LOCAL_IP="127.0.0.1")
    assert remote.results() == local.results()
    states = [state for _, state, _ in remote.results()["datasets"]]
    assert (states.count("valid"), len(states)) == (READABLE, READABLE + ABSENT)
    assert len([row for row in remote.report() if row["source"] == "lake"]) == READABLE + ABSENT


_TASKS = """
import time
from pathlib import Path
from federator.pipeline.parallelism import inspection_parallelism, spark_parallelism
from federator.pipeline.session import get_session
from federator.settings import load_settings

settings = load_settings(Path("federator.toml"))
spark, end = get_session(settings), time.monotonic() + 200
while inspection_parallelism(spark) != {cores} and time.monotonic() < end:
    time.sleep(0.5)
    get_session(settings)
print(spark_parallelism(spark), inspection_parallelism(spark), spark.conf.get("spark.sql.shuffle.partitions"))
"""


def test_stages_have_a_task_for_each_core_of_the_cluster(
    cluster: Cluster, company: Company, postgres_database: Callable[..., str], tmp_path: Path
) -> None:
    spark = {"master": cluster.master, "staging": cluster.hdfs}
    conf = {"spark.pyspark.python": cluster.python, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    installation = company.configure(tmp_path / "remote", postgres_database(), spark, conf)
    assert installation.execute("-c", _TASKS.format(cores=cluster.cores)).split()[-3:] == [str(cluster.cores)] * 3


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
    assert (states.count("valid"), len(states)) == (READABLE, READABLE + ABSENT)
    assert len([row for row in remote.report() if row["source"] == "lake"]) == READABLE + ABSENT
