"""The process that Spark forks its Python workers from: it has imported already what every one of them needs.

Without it, each worker of a cold session imports Arrow and the pipeline on its own, at the same time, on few cores. Nothing
that starts threads may be imported here (pylance), nor may a connection be opened.
"""

import contextlib
import os

from federator.connector.lean import hide_pandas
from federator.pipeline.lean import PRELOAD

# Before anything that would import it.
hide_pandas()

import pyarrow  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

import federator.pipeline.candidates  # noqa: E402
import federator.pipeline.datasource  # noqa: E402
import federator.pipeline.staging  # noqa: E402
import federator.pipeline.verify  # noqa: E402, F401
from federator.connector import ConfigError  # noqa: E402
from federator.registry import connector  # noqa: E402

if __name__ == "__main__":
    for impl in filter(None, os.environ.get(PRELOAD, "").split(",")):
        # The source that lacks a library says so itself, where it is opened.
        with contextlib.suppress(ConfigError, ModuleNotFoundError):
            connector(impl).preload()
    manager()
