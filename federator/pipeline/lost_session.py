"""A Spark session that was lost: its JVM has ended, or its cluster has stopped its application.

A service has one session for weeks. A JVM may be killed for its memory, and the restart of a cluster's master stops every
application; PySpark then returns the lost session for ever.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from federator import logs
from federator.pipeline.spark_errors import LOG_HINT

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logs.get_logger(__name__)


def forget_lost_session() -> None:
    """Let PySpark start another session if the one of this process was lost, and log why it was."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        _log.error("the JVM of Spark has ended", exit_code=process.returncode, hint=LOG_HINT)
        _forget(context)
        SparkContext._gateway = SparkContext._jvm = None
    elif context is not None and _is_stopped(context):
        _log.error("the Spark application was stopped", master=context.master, hint=LOG_HINT)
        _forget(context)


def _is_stopped(context: SparkContext) -> bool:
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        return bool(context._jsc.sc().isStopped())
    # The JVM does not respond, and has not ended yet.
    return False


def _forget(context: SparkContext | None) -> None:
    from pyspark.sql import SparkSession

    SparkSession._instantiatedSession = None
    if context is not None:
        # Its JVM has nothing to stop any more.
        context._jsc = None
        context.stop()
