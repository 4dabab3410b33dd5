"""PyIceberg in a process of its own, by lines of JSON. Runs in PyIceberg's environment."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog  # type: ignore[import-not-found]

from tests.interop.json_lines import Call, serve

COLUMNS = pa.schema([pa.field("dummy", pa.string())])


def open_client(impl: str, properties: dict[str, str]) -> Call:
    catalog = load_catalog("interop", type=impl, **properties)

    def call(name: str, request: Mapping[str, Any]) -> Any:
        path = tuple(request["id"])
        match name:
            case "list":
                return [each[-1] for each in catalog.list_tables(path)]
            case "create":
                catalog.create_table(path, COLUMNS, location=request["location"], properties=request["properties"])
            case "load":
                table = catalog.load_table(path)
                rows = table.scan().to_arrow().num_rows
                return {"location": table.location(), "columns": table.schema().column_names, "rows": rows}
            case "append":
                catalog.load_table(path).append(pa.table({"dummy": ["a row"]}, schema=COLUMNS))
            case "drop":
                catalog.drop_table(path)
            case "purge":
                catalog.purge_table(path)
            case _:
                raise ValueError(name)
        return None

    return call


if __name__ == "__main__":
    serve(open_client)
