"""Validation of Glue's responses against the members that the service always sends.

boto3 does not validate responses: a response without its list looks like an empty list, and so does an HTML page with status 200.
A member is required here if the Glue API reference marks it as required, or if AWS and moto send it even when it is empty. AWS omits
every other member that has no value.
"""

from __future__ import annotations

import json
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

#: required shape of the response of each operation that returns objects; the other operations are not checked
SHAPES: dict[str, Shape] = {
    "get_tables": {"TableList": [_TABLE]},
    "get_table": {"Table": _TABLE},
    "get_databases": {"DatabaseList": [_DATABASE]},
    "get_database": {"Database": _DATABASE},
    "get_catalogs": {"CatalogList": [{**_CATALOG, "Name": NAME}]},
    "get_catalog": {"Catalog": _CATALOG},
}
# The operations that request one object by its name, and the member of the response with this object.
_NAMED = {"get_table": "Table", "get_database": "Database"}
# The operations that list objects, and the member of the response with the list.
_LISTS = {"GetTables": "TableList", "GetDatabases": "DatabaseList", "GetCatalogs": "CatalogList"}


def reject_malformed_listing(operation_model: Any, response_dict: Any, **_: Any) -> None:
    """Handle botocore's event ``before-parse``: raise Internal if the body has another value in place of the list of objects.

    botocore's parser would make an empty list of it.
    """
    key = _LISTS.get(operation_model.name)
    if key is None or response_dict["status_code"] >= 300:
        return
    try:
        body = json.loads(response_dict["body"])
    except ValueError:
        return
    if isinstance(body, dict) and not isinstance(body.get(key, []), list):
        raise Internal(f"the response to {operation_model.name} is not valid: {key!r} is not a list")


class CheckedGlueClient:
    """A boto3 client of Glue with checked responses.

    The operations of ``SHAPES`` raise Internal if the response lacks a required member, or if its object has another name than the
    requested one.
    """

    def __init__(self, source: str, client: Any) -> None:
        self._source = source
        self._client = client

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        return partial(self._call_checked, name, attribute) if name in SHAPES else attribute

    def _call_checked(self, operation: str, call: Any, **request: Any) -> Any:
        response = call(**request)
        problem = mismatch(response, SHAPES[operation])
        if problem is None and operation in _NAMED:
            name = response[_NAMED[operation]]["Name"]
            # Glue folds names; an older metastore may return the name in the case of the request.
            problem = None if name.lower() == request["Name"].lower() else f"it is about {name!r}, not {request['Name']!r}"
        if problem:
            raise Internal(f"{self._source}: the response to {operation} is not valid: {problem}")
        return response
