"""lance-spark 3.5 without credentials of its own: tables by the service's namespace, and by their locations with given options.

The argument is a file of JSON: ``uri`` and ``header`` (name, value) of the service, ``tables`` (a name, and a table's path in ``s3``),
``locations`` (a name, and a location) with their ``root`` and ``options``, and ``results``, the file to write.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tests.interop.scenarios import spark_session

CONFIG = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def session() -> SparkSession:
    name, value = CONFIG["header"]
    # The catalog of this name opens locations.
    by_location = {"impl": "dir", "root": CONFIG["root"], **{f"storage.{key}": text for key, text in CONFIG["options"].items()}}
    # The tokens of this run live for seconds; they are renewed before they expire.
    renewed = {"storage.refresh_offset_millis": "500"}
    by_name = {"impl": "rest", "uri": CONFIG["uri"], f"header.{name}": value, "parent": "s3", **renewed}
    return spark_session.start({"s3": by_name, "lance": by_location})


def result_of(call: Callable[[], object]) -> dict[str, object]:
    try:
        return {"result": call()}
    except Exception as error:  # noqa: BLE001 - every failure of the client is a result
        return {"error": str(error)}


def run(spark: SparkSession) -> dict[str, dict[str, object]]:
    def query(path: list[str]) -> object:
        return spark.sql(f"SELECT sum(id) FROM {'.'.join(path)}").collect()[0][0]

    def read(location: str) -> object:
        return spark.read.format("lance").load(location).agg({"id": "sum"}).collect()[0][0]

    return {
        **{name: result_of(partial(query, path)) for name, path in CONFIG["tables"].items()},
        **{name: result_of(partial(read, location)) for name, location in CONFIG["locations"].items()},
    }


Path(CONFIG["results"]).write_text(json.dumps(run(session())), encoding="utf-8")
