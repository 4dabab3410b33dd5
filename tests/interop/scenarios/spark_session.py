"""A session of Spark 3.5 with catalogs of lance-spark. ``LANCE_SPARK_JARS`` is the directory of its jars."""

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession


def start(catalogs: Mapping[str, Mapping[str, str]], **settings: str) -> SparkSession:
    """Return a session with catalogs: their properties by name. ``settings`` are Spark's, with ``spark.sql.x`` as ``sql_x``."""
    directory = os.environ["LANCE_SPARK_JARS"]
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", f"{directory}/*")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        # Arrow reads buffers directly, which Java 17 forbids by default.
        .config("spark.driver.extraJavaOptions", "--add-opens=java.base/java.nio=ALL-UNNAMED")
    )
    for key, text in settings.items():
        builder = builder.config(f"spark.{key.replace('_', '.')}", text)
    for name, properties in catalogs.items():
        builder = builder.config(f"spark.sql.catalog.{name}", "org.lance.spark.LanceNamespaceSparkCatalog")
        for key, text in properties.items():
            builder = builder.config(f"spark.sql.catalog.{name}.{key}", text)
    return builder.getOrCreate()
