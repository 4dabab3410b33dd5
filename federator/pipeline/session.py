"""The Spark session: one per process, started when it is first needed."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from federator.connector import ConfigError, StateError
from federator.connector.lean import without_pandas
from federator.pipeline.archive import class_archive
from federator.pipeline.java import find_java, spark_home_for
from federator.pipeline.lean import OWN_SESSION, PRELOAD
from federator.registry import connector
from federator.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = threading.Lock()


def session(settings: Settings) -> SparkSession:
    """The warm session of this process. Raises ConfigError where Spark is not installed, StateError without a Java."""
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise ConfigError("the pipeline needs Spark", hint="pip install 'lance-federator[spark]'") from None
    with _lock:
        # The active session is its thread's alone: another thread's is the default.
        with contextlib.suppress(PySparkRuntimeError):
            return SparkSession.active()
        with engine_errors("start"):
            started = _start(settings)
        from federator.pipeline.datasource import LanceCatalogSource

        started.dataSource.register(LanceCatalogSource)
        threading.Thread(target=_warm_aside, args=(started,), name="warm spark", daemon=True).start()
        return started


def warm(spark: SparkSession) -> None:
    """Runs one tiny Python job, for which Spark starts its Python workers. Raises StateError."""
    with engine_errors("start its Python workers"):
        spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()


def _warm_aside(spark: SparkSession) -> None:
    # While the first crawl is still being planned, in other processes; where it fails, the crawl itself says so.
    with contextlib.suppress(StateError):
        warm(spark)


def local_master(settings: Settings) -> str:
    """``local[N,4]`` with a slot for every read that may hang at once, so that no source holds another's; as configured otherwise."""
    if settings.spark.master not in ("local", "local[*]"):
        return settings.spark.master
    concurrency = sum(connector(s.impl).concurrency(s.properties) for s in settings.sources.values())
    return f"local[{max(concurrency, os.cpu_count() or 2)},4]"


def _start(settings: Settings) -> SparkSession:
    from pyspark.sql import SparkSession

    master = local_master(settings)
    builder = SparkSession.builder.appName("lance-federator")
    if master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    # Workers must be this Python: another one would not have the connectors.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    conf = {**_CONF, "spark.driver.memory": settings.spark.memory}
    if master.startswith("local"):
        conf["spark.driver.extraJavaOptions"] += _prepare_java(settings)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for key, value in {**conf, **settings.spark.conf}.items():
        builder = builder.config(key, value)
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    with _streams_to(settings.state_dir / "spark.log"), _inherited(settings), without_pandas():
        return builder.master(master).getOrCreate()


@contextmanager
def _inherited(settings: Settings) -> Iterator[None]:
    """What the JVM's Python processes are told by its environment, and this process is not."""
    told = {OWN_SESSION: "1", PRELOAD: ",".join(sorted({source.impl for source in settings.sources.values()}))}
    os.environ.update(told)
    try:
        yield
    finally:
        for name in told:
            del os.environ[name]


def _prepare_java(settings: Settings) -> str:
    """Sets ``JAVA_HOME`` for Spark's launcher; returns further options of the JVM."""
    java = find_java()
    archive = class_archive(java) if settings.spark.class_archive else None
    home = spark_home_for(java, settings.state_dir, archive)
    os.environ["JAVA_HOME"] = str(home)
    return f" {archive.options}" if archive else ""


@contextmanager
def _streams_to(log: Path) -> Iterator[None]:
    """The JVM inherits our streams: it greets on stderr, and keeps a pipe on stdout open for as long as it lives. It gets a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    ours = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        with log.open("ab") as file:
            for descriptor in ours:
                os.dup2(file.fileno(), descriptor)
        yield
    finally:
        for descriptor, kept in ours.items():
            os.dup2(kept, descriptor)
            os.close(kept)


_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "federator.pipeline.daemon",
    # Spark keeps workers apart by their environment, and sets this in it for some kinds of task only.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    # What reaches the driver is what it asked for: a limit would fail the largest companies' runs alone.
    "spark.driver.maxResultSize": "0",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.log.level": "ERROR",
    # The heavy work is Python's: compiling the JVM's code twice costs a cold run more than it ever gets back.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.level=ERROR",
}


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turns what Spark raises into a StateError with its first line: one source's failed job must not end the run of the others."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StateError(
            f"Spark could not {what}: {_cause(str(error))}", hint="the whole story is in spark.log, beside the index"
        ) from error


def _cause(text: str) -> str:
    """The line of a Java or Python trace that says what happened: the innermost cause, else the first line that is no preamble."""
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.startswith("An error occurred while calling")
    ]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes[-1:] or lines[:1] or ["no reason given"])[0][:500]


def stop() -> None:
    """Ends the session and its JVM."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
