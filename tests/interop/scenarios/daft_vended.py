"""daft without credentials of its own: tables by the service's namespace, and by their locations with given options.

The argument is a file of JSON: ``uri`` and ``header`` (name, value) of the service, ``tables`` (a name, and a table's path),
``locations`` (a name, and a location) with their ``options``, and ``results``, the file to write.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import daft  # type: ignore[import-not-found]
import daft_lance  # type: ignore[import-not-found]
from daft.io import IOConfig, S3Config  # type: ignore[import-not-found]

CONFIG = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def result_of(call: Callable[[], daft.DataFrame]) -> dict[str, object]:
    try:
        return {"result": sum(call().to_pydict()["id"])}
    except Exception as error:  # noqa: BLE001 - every failure of the client is a result
        return {"error": str(error)}


def read_table(path: list[str]) -> daft.DataFrame:
    name, value = CONFIG["header"]
    properties = {"uri": CONFIG["uri"], f"header.{name}": value}
    return daft_lance.read_lance(namespace_impl="rest", namespace_properties=properties, table_id=path)


def read_location(location: str) -> daft.DataFrame:
    options = {key.removeprefix("aws_"): text for key, text in CONFIG["options"].items()}
    store = S3Config(
        endpoint_url=options["endpoint"], region_name=options["region"], use_ssl=False, key_id=options["access_key_id"],
        access_key=options["secret_access_key"], session_token=options["session_token"],
    )  # fmt: skip
    return daft.read_lance(location, io_config=IOConfig(s3=store))


results = {
    **{name: result_of(partial(read_table, path)) for name, path in CONFIG["tables"].items()},
    **{name: result_of(partial(read_location, location)) for name, location in CONFIG["locations"].items()},
}
Path(CONFIG["results"]).write_text(json.dumps(results), encoding="utf-8")
