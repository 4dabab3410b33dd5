"""Spark on a cluster: the Python and the packages of its executors.

Executors run the connectors in their own Python. They need the driver's Python version (``3.11``, the third number may differ) and its
packages: installed there, or shipped as ``[spark] archive``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from federator.registry import PRELOAD
from federator.settings import Settings

#: the directory in which an executor unpacks the archive, below its working directory
UNPACKED = "federator-packages"


def executor_conf(settings: Settings, preload: str) -> dict[str, str]:
    """Return the Spark settings for executors on other machines. The user's own settings are part of them, and win."""
    own = settings.spark.conf
    conf = {f"spark.executorEnv.{PRELOAD}": preload}
    if settings.spark.archive:
        # By its own key, YARN gives an archive to each node once.
        archives = "spark.yarn.dist.archives" if settings.spark.master == "yarn" else "spark.archives"
        conf[archives] = _joined(own, archives, f"{settings.spark.archive}#{UNPACKED}", ",")
        conf["spark.executorEnv.PYTHONPATH"] = _joined(own, "spark.executorEnv.PYTHONPATH", UNPACKED, ":")
    return {**own, **conf}


def executor_python(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """Return the interpreter of executors: ``spark.pyspark.python``, ``PYSPARK_PYTHON``, else ``python3.N`` of the driver's version."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return settings.spark.conf.get("spark.pyspark.python") or environment.get("PYSPARK_PYTHON") or version


def _joined(conf: Mapping[str, str], key: str, value: str, separator: str) -> str:
    return separator.join([value, *filter(None, [conf.get(key)])])
