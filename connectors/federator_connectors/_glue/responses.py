"""The one place where Glue's responses are held against what the service sends always.

boto3 fills in nothing: a response without its list is parsed as an empty one, and so is a page of HTML with status 200. Required is
what the Glue API reference marks so, and what AWS and moto were seen to send also where it is empty. AWS leaves out other members
that have no value.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from federator.connector import Internal
from federator.connector.shapes import NAME, TEXTS, Shape, maybe, mismatch

_COLUMN = {"Name": maybe(str), "Type": maybe(str), "Comment": maybe(str)}
_TABLE = {
    "Name": NAME, "Parameters": maybe(TEXTS), "TableType": maybe(str), "Description": maybe(str), "Owner": maybe(str),
    "VersionId": maybe(str), "StorageDescriptor": maybe({"Location": maybe(str), "Columns": maybe([_COLUMN])}),
}  # fmt: skip
_DATABASE = {"Name": NAME, "Parameters": maybe(TEXTS), "Description": maybe(str), "LocationUri": maybe(str)}
_CATALOG = {"CatalogId": NAME, "Parameters": maybe(TEXTS), "Description": maybe(str)}

#: what each operation's response must have; the response of one that is not named here is empty
SHAPES: dict[str, Shape] = {
    "get_tables": {"TableList": [_TABLE]},
    "get_table": {"Table": _TABLE},
    "get_databases": {"DatabaseList": [_DATABASE]},
    "get_database": {"Database": _DATABASE},
    "get_catalogs": {"CatalogList": [{**_CATALOG, "Name": NAME}]},
    "get_catalog": {"Catalog": _CATALOG},
}
# Where the object that was asked for by its name is in the response.
_NAMED = {"get_table": "Table", "get_database": "Database"}


class Checked:
    """A boto3 client of Glue whose responses are checked. Raises Internal for one that lacks a field or is of another object."""

    def __init__(self, source: str, client: Any) -> None:
        self._source = source
        self._client = client

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        return partial(self._checked, name, attribute) if name in SHAPES else attribute

    def _checked(self, operation: str, call: Any, **request: Any) -> Any:
        response = call(**request)
        problem = mismatch(response, SHAPES[operation])
        if problem is None and operation in _NAMED:
            name = response[_NAMED[operation]]["Name"]
            # Glue folds names; an older metastore may answer in the case in which it was asked.
            problem = None if name.lower() == request["Name"].lower() else f"it is of {name!r}, not of {request['Name']!r}"
        if problem:
            raise Internal(f"{self._source}: the response to {operation} is not Glue's: {problem}")
        return response
