"""What a cluster needs is known before Spark starts, and what the user has set for executors wins."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest

from federator.connector import ConfigError, StateError
from federator.pipeline.cluster import UNPACKED, executor_conf, executor_python
from federator.pipeline.executor_archive import ExecutorArchive, write_archive
from federator.pipeline.spark_errors import translate_spark_errors
from federator.settings import Settings, parse_settings

POSTGRES = {"url": "postgresql+psycopg://federator@127.0.0.1/federator"}
_BYTE_CODE = cache_from_source("federator/__init__.py")
CLUSTER = {"master": "spark://127.0.0.1:7077", "staging": "hdfs://127.0.0.1/staging"}


def settings(spark: dict[str, Any], index: dict[str, str] | None = None) -> Settings:
    return parse_settings({"spark": spark, "index": index or POSTGRES}, Path("federator.toml"))


@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "yarn", "k8s://https://127.0.0.1", "sc://127.0.0.1"])
def test_a_cluster_without_staging_is_refused(master: str) -> None:
    with pytest.raises(ConfigError, match="every executor can write") as refused:
        settings({"master": master})
    assert refused.value.hint is not None
    assert "s3a://" in refused.value.hint


def test_a_cluster_with_sqlite_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot read a SQLite file"):
        settings(CLUSTER, {"url": "sqlite:///federator.db"})


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]"])
def test_a_local_master_needs_neither(master: str) -> None:
    assert settings({"master": master}, {"url": "sqlite:///federator.db"}).spark.staging == ""


CONNECT = {"master": "sc://127.0.0.1:15002", "staging": "hdfs://127.0.0.1/staging"}


@pytest.mark.parametrize(
    ("spark", "message"),
    [
        ({"archive": "executors.tar.gz"}, "[spark] archive: a client of Spark Connect cannot ship packages"),
        (
            {"conf": {"spark.executorEnv.KEY": "x"}},
            "[spark.conf] spark.executorEnv.KEY: a client of Spark Connect can set spark.sql",
        ),
    ],
)
def test_what_a_client_of_spark_connect_cannot_set_is_refused(spark: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        settings({**CONNECT, **spark})


def test_a_client_of_spark_connect_sets_sql() -> None:
    conf = {"spark.sql.shuffle.partitions": "16"}
    assert settings({**CONNECT, "conf": conf}).spark.conf == conf


def test_the_python_of_executors_is_the_users() -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    named = settings({**CLUSTER, "conf": {"spark.pyspark.python": "/opt/python"}})
    assert executor_python(named, {"PYSPARK_PYTHON": "/usr/bin/python3"}) == "/opt/python"
    assert executor_python(settings(CLUSTER), {"PYSPARK_PYTHON": "/usr/bin/python3"}) == "/usr/bin/python3"
    assert executor_python(settings(CLUSTER), {}) == version


def test_the_archive_is_added_to_what_the_user_ships() -> None:
    own = {"spark.archives": "hdfs://a/own.zip#own", "spark.executorEnv.PYTHONPATH": "own", "spark.executor.cores": "2"}
    conf = executor_conf(settings({**CLUSTER, "archive": "/a.tar.gz", "conf": own}), "hive2")
    assert conf["spark.archives"] == f"/a.tar.gz#{UNPACKED},hdfs://a/own.zip#own"
    assert conf["spark.executorEnv.PYTHONPATH"] == f"{UNPACKED}:own"
    assert conf["spark.executor.cores"] == "2"
    assert conf["spark.executorEnv.FEDERATOR_PRELOAD"] == "hive2"


def test_yarn_ships_the_archive_once_to_each_node() -> None:
    conf = executor_conf(settings({**CLUSTER, "master": "yarn", "archive": "/a.tar.gz"}), "")
    assert (conf["spark.yarn.dist.archives"], "spark.archives" in conf) == (f"/a.tar.gz#{UNPACKED}", False)


def test_without_an_archive_nothing_is_shipped() -> None:
    assert set(executor_conf(settings(CLUSTER), "")) == {"spark.executorEnv.FEDERATOR_PRELOAD"}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> ExecutorArchive:
    return write_archive(tmp_path_factory.mktemp("packed") / "a.tar.gz", {"hive"})


def test_an_archive_has_the_packages_and_no_pyspark(packed: ExecutorArchive) -> None:
    first = packed
    with tarfile.open(first.file) as archive:
        members = {member.name: member for member in archive.getmembers()}
    top = {name.partition("/")[0] for name in members}
    assert {"federator", "federator_connectors", "pyarrow", "sqlalchemy", "thrift", "hmsclient"} <= top
    assert not top & {"pyspark", "py4j", "fastapi", "moto", "boto3"}
    assert any(name.endswith(".dist-info/entry_points.txt") and name.startswith("lance_federator") for name in members)
    assert not [name for name in members if name.endswith(".pth") or name.startswith(("/", ".."))]
    assert {(member.uid, member.mtime) for member in members.values()} == {(0, 0)}
    assert (first.size, set(first.packages) >= {"pyarrow", "thrift"}) == (first.file.stat().st_size, True)
    assert [path.name for path in first.file.parent.iterdir()] == ["a.tar.gz"]
    assert members[cache_from_source("federator/registry.py")].size > 0


def test_the_byte_code_of_an_archive_is_used_without_its_source(packed: ExecutorArchive, tmp_path: Path) -> None:
    with tarfile.open(packed.file) as archive:
        for name in ("federator/__init__.py", _BYTE_CODE):
            archive.extract(name, tmp_path)
    (tmp_path / "federator" / "__init__.py").write_text("raise AssertionError('compiled again')")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import federator; print(federator.__file__, federator.__cached__)"
    done = subprocess.run([sys.executable, "-I", "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.split()) == ("", [str(tmp_path / "federator/__init__.py"), str(tmp_path / _BYTE_CODE)])


def test_a_package_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no-such-package is not installed here") as refused:
        write_archive(tmp_path / "a.tar.gz", (), ["no-such-package"])
    assert refused.value.hint == "pip install 'no-such-package'"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ('java.io.IOException: Cannot run program "/usr/bin/python3.99": error=2, No such file', "spark.pyspark.python"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: 3.11",
            "spark.pyspark.python",
        ),
        ("ModuleNotFoundError: No module named 'federator'", "federator spark pack"),
        ("No module named federator.pipeline", "federator spark pack"),
        ("java.lang.OutOfMemoryError", "see .federator/spark.log"),
    ],
)
def test_unprepared_executors_are_reported_with_the_remedy(text: str, remedy: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(StateError) as reported, translate_spark_errors("run a Python job"):
        raise PySparkException(text)
    assert reported.value.hint is not None
    assert remedy in reported.value.hint
