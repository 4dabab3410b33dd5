"""The process that Spark forks its Python workers from: it has imported already what every one of them needs.

Without it, each worker of a cold session imports Arrow, pandas and the pipeline on its own, at the same time, on few cores. Nothing
that starts threads may be imported here (pylance), nor may a connection be opened.
"""

import pandas  # noqa: F401 - Spark's reading of a data source imports it
import pyarrow  # noqa: F401
from pyspark.daemon import manager

import federator.pipeline.candidates
import federator.pipeline.datasource
import federator.pipeline.staging
import federator.pipeline.verify  # noqa: F401

if __name__ == "__main__":
    manager()
