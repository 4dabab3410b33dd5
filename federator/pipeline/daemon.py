"""The process that Spark forks its Python workers from: it has imported already what every one of them needs.

Without it, each worker of a cold session imports Arrow and the pipeline on its own, at the same time, on few cores. Nothing that
starts threads may be imported here (pylance), nor may a connection be opened.
"""

import sys

import pyarrow  # noqa: F401
from pyspark.daemon import manager

import federator.pipeline.datasource  # noqa: F401

# Spark keeps a daemon for each kind of worker; those that only plan a data source need no more.
if sys.argv[1:2] == ["pyspark.worker"]:
    import pyspark.worker

    import federator.pipeline.candidates
    import federator.pipeline.verify  # noqa: F401

if __name__ == "__main__":
    manager()
