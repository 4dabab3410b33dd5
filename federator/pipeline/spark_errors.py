"""Translation of Spark's exceptions into errors that name the innermost cause."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from federator.connector import StateError

#: where Spark says more
LOG_HINT = "see .federator/spark.log for details"
_PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_PYTHON_HINT = f"executors need Python {_PYTHON_VERSION}: name it with spark.pyspark.python in [spark.conf]"
_PACKAGES_HINT = "executors need this version's packages: federator spark pack, then [spark] archive"
_REFERENCE_HINT = (
    "executors resolve references too: set spark.executorEnv.NAME in [spark.conf], or NAME where workers are started"
)
_MAX_CAUSE_LENGTH = 500
# Texts of Spark and Python that show that the executors are not prepared, each with the hint.
_HINTS = (
    (re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version"), _PYTHON_HINT),
    (re.compile(r'Cannot run program "[^"]*python[^"]*"'), _PYTHON_HINT),
    (re.compile(r"PACKAGE_NOT_INSTALLED"), "pip install 'lance-federator[spark-connect]'"),
    (re.compile(r"the environment variable \w+ is not set"), _REFERENCE_HINT),
    (re.compile(r"No module named '?(?:federator|pyarrow|lance|pandas|pydantic|thrift|boto3)"), _PACKAGES_HINT),
)


@contextmanager
def translate_spark_errors(activity: str) -> Iterator[None]:
    """Raise StateError in place of a Spark error, with its innermost cause and a hint.

    ``activity`` is a verb phrase that completes "Spark could not". A run records a StateError for one source and goes on with the
    others; Spark's own errors would end it.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise StateError(f"Spark could not {activity}: its JVM has ended", hint=LOG_HINT) from error
    except (PySparkException, Py4JError) as error:
        text = str(error)
        hint = next((hint for pattern, hint in _HINTS if pattern.search(text)), LOG_HINT)
        raise StateError(f"Spark could not {activity}: {_innermost_cause(text)[:_MAX_CAUSE_LENGTH]}", hint=hint) from error


# The last line of a Python traceback: the type of the error, and its message.
_PYTHON_ERROR = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.MULTILINE)


def _innermost_cause(text: str) -> str:
    """Return the error of a Python worker, else the last cause that a Java trace names, else the first line that is not py4j's.

    Of a worker, only messages without secrets are shown: the federator's own, and of missing packages.
    """
    _, is_python, traceback = text.rpartition("Traceback (most recent call last):")
    if is_python and (error := _PYTHON_ERROR.search(traceback)):
        if error["message"] and (error["type"].startswith("federator.") or error["type"] == "ModuleNotFoundError"):
            return error["message"]
        return f"a task failed with {error['type']}"
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.startswith("An error occurred while calling")
    ]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    if causes:
        return causes[-1]
    return lines[0] if lines else "no reason given"
