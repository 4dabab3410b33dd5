"""The Spark session: one per process, started on first use."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from federator.connector import ConfigError, StateError
from federator.pipeline.class_archive import find_class_archive
from federator.pipeline.cluster import executor_conf, executor_python
from federator.pipeline.java import find_java, prepare_java_home
from federator.pipeline.lost_session import forget_lost_session
from federator.pipeline.parallelism import MIN_PARTITIONS, follow_cluster
from federator.pipeline.spark_errors import translate_spark_errors
from federator.registry import PRELOAD, crawl_concurrency
from federator.runtime.private_files import process_umask
from federator.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_lock = threading.Lock()
# With a Python process of some 100 MB for each, as many as a small server has memory for. One source may need more.
_MAX_SLOTS = 32


def get_session(settings: Settings) -> SparkSession:
    """Return the session of this process, a new one if it was lost.

    Raise ConfigError if Spark is not installed, and StateError if there is no Java.
    """
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise ConfigError("the pipeline needs Spark", hint="pip install 'lance-federator[spark]'") from None
    with _lock, translate_spark_errors("start"):
        forget_lost_session()
        # A session is active only in the thread that started it; in other threads ``active`` finds the default session.
        with contextlib.suppress(PySparkRuntimeError):
            session = SparkSession.active()
            follow_cluster(session, settings.spark.conf)
            return session
        session = _create_session(settings)
        threading.Thread(target=_warm_in_background, args=(session,), name="warm spark", daemon=True).start()
        return session


def warm_workers(spark: SparkSession) -> None:
    """Run a tiny Python job, so that Spark starts its Python workers. Raise StateError."""
    with translate_spark_errors("start its Python workers"):
        spark.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long").collect()


def interrupt_jobs() -> None:
    """Cancel the running Spark jobs of this process. Nothing happens without a session, or if it was lost."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    with contextlib.suppress(PySparkRuntimeError, StateError), translate_spark_errors("cancel its jobs"):
        SparkSession.active().interruptAll()


def _warm_in_background(spark: SparkSession) -> None:
    # Runs while other processes plan the first crawl. An error is ignored, because the crawl reports it.
    with contextlib.suppress(StateError):
        warm_workers(spark)


def local_master(settings: Settings) -> str:
    """Return the configured master. ``local`` becomes ``local[N,4]`` with ``task_slots``."""
    return f"local[{task_slots(settings)},4]" if settings.spark.master in ("local", "local[*]") else settings.spark.master


def task_slots(settings: Settings) -> int:
    """Return how many shards may be read at once, of all sources together.

    With ``local``, each of them needs a Python process, so their number is bounded. A cluster may grow and shrink: there, only the
    number of sources is bounded.
    """
    if match := re.fullmatch(r"local\[(\d+)(,\d+)?\]", settings.spark.master):
        return int(match[1])
    if not settings.spark.is_local:
        return _MAX_SLOTS
    concurrency = [crawl_concurrency(source.spec) for source in settings.sources.values()]
    return max(min(sum(concurrency), max([_MAX_SLOTS, *concurrency])), os.cpu_count() or 2)


class _Launch:
    """The start of the JVM, in a thread of its own. ``conf`` are the settings that both the JVM and the session need."""

    def __init__(self, settings: Settings, master: str) -> None:
        self.conf = {**_CONF, "spark.driver.memory": settings.spark.memory}
        # Hadoop has a mask of its own (022) and sets the mode of each file. Staged tables have the properties of all catalogs.
        self.conf["spark.hadoop.fs.permissions.umask-mode"] = f"{process_umask():03o}"
        self.conf["spark.driver.extraJavaOptions"] += _prepare_java(settings)
        self._environment = {PRELOAD: ",".join(sorted({source.impl for source in settings.sources.values()}))}
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if settings.spark.is_local:
            # Workers must use this Python, because another one would not have the connectors.
            os.environ["PYSPARK_PYTHON"] = sys.executable
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            self.conf |= settings.spark.conf
        else:
            os.environ["PYSPARK_PYTHON"] = executor_python(settings)
            self.conf |= executor_conf(settings, self._environment[PRELOAD])
        self.conf |= {"spark.app.name": "lance-federator", "spark.master": master}
        settings.state_dir.mkdir(parents=True, exist_ok=True)
        self._log = settings.state_dir / "spark.log"
        self._gateway: Any = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="start jvm", daemon=True)

    def begin(self) -> None:
        """Start the JVM without waiting for it. Safe to repeat."""
        if self._thread.ident is None:
            self._thread.start()

    def gateway(self) -> Any:
        """Wait for the JVM, and return the connection to it. Raise the error of the start."""
        self.begin()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._gateway

    def _run(self) -> None:
        from pyspark import SparkConf
        from pyspark.java_gateway import launch_gateway

        # The JVM is started by fork and exec, which Lance survives: its warning is for processes that go on after a fork.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        conf = SparkConf(loadDefaults=False).setAll(list(self.conf.items()))
        try:
            # The JVM writes a banner to stderr, and keeps an inherited stdout pipe open as long as it lives.
            # In a process group of its own, it gets no signal that a terminal or `kill` sends to all processes of a command, with which
            # calls to it would fail while this process ends. It ends when its stdin does.
            with self._log.open("ab") as log, _jvm_environment(self._environment):
                options = {"stdout": log, "stderr": log, "process_group": 0}
                self._gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]  # PySpark has none
        except Exception as error:  # noqa: BLE001 - raised again in the thread that needs the JVM
            self._error = error


_launch: _Launch | None = None


def launch_jvm(settings: Settings) -> None:
    """Begin to start the JVM of ``get_session``, and return at once, so that imports and the index need no time of their own.

    Raise StateError if there is no Java. Nothing happens if Spark is not installed, or runs elsewhere.
    """
    global _launch
    if importlib.util.find_spec("pyspark") is None:
        return
    with _lock:
        from pyspark import SparkContext

        if _launch is None and SparkContext._gateway is None and not settings.spark.is_connect:
            _launch = _Launch(settings, local_master(settings))
            _launch.begin()


def _create_session(settings: Settings) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    global _launch
    if settings.spark.is_connect:
        return _connect(settings)
    launch, _launch = _launch or _Launch(settings, local_master(settings)), None
    if SparkContext._gateway is None:
        launch.begin()
        # PySpark imports it at its first call of the JVM, and pandas with it. Here the JVM starts meanwhile.
        importlib.import_module("pyspark.testing.utils")
    SparkContext._ensure_initialized(gateway=SparkContext._gateway or launch.gateway())
    builder = SparkSession.builder
    for key, value in launch.conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connect(settings: Settings) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("lance-federator").remote(settings.spark.master)
    for key, value in {**_CONNECT_CONF, **settings.spark.conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def _jvm_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the JVM's Python processes, and restore those of this process afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text


def _prepare_java(settings: Settings) -> str:
    """Set ``JAVA_HOME`` for Spark's launcher. Return further options of the JVM."""
    java = find_java()
    archive = find_class_archive(java) if settings.spark.class_archive else None
    home = prepare_java_home(java, settings.state_dir, on_success=archive.keep_command if archive else "")
    os.environ["JAVA_HOME"] = str(home)
    return f" {archive.jvm_options}" if archive else ""


_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.daemon.module": "federator.pipeline.worker_daemon",
    # Set explicitly: Spark sets it for some task types only, and does not share workers with different environments.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.shuffle.partitions": str(MIN_PARTITIONS),
    # All results are requested by the driver, and a limit would only fail the largest runs.
    "spark.driver.maxResultSize": "0",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.log.level": "ERROR",
    # Most work is in Python, so a second JIT tier would cost a cold run more than it saves. With one tier, Java reserves 48 MB for
    # compiled code, which the classes of some twenty different jobs fill: then the JVM ends. 240 MB is what it reserves for two.
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Dlog4j2.level=ERROR"
    ),
}

#: the settings of ``_CONF`` that a client of Spark Connect can change
_CONNECT_CONF = {
    key: _CONF[key]
    for key in (
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.parquet.compression.codec",
        "spark.sql.shuffle.partitions",
    )
}


def is_session_started() -> bool:
    """Return whether this process has a session."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession._instantiatedSession is not None


def stop_session() -> None:
    """Stop the session and its JVM."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
