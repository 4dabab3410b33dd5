"""The dialect of LanceDB's own service, which lancedb's remote client speaks.

Bodies of queries differ from the protocol in ``vector`` (a list, empty for none), ``columns`` (a list of names, or expressions by name)
and ``full_text_query`` (its ``query`` is a text, or a structured query). Columns without values are added with an Arrow IPC stream that
has their schema. Some responses have other fields: their routes ask for ``LancedbDialect``.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Annotated, Any

from fastapi import Header
from lance_namespace import (
    AlterTableAddColumnsRequest,
    AnalyzeTableQueryPlanRequest,
    ExplainTableQueryPlanRequest,
    QueryTableRequest,
)
from pydantic import BeforeValidator

#: the name of the database, which lancedb's remote client sends with every request; None for other clients
LancedbDialect = Annotated[str | None, Header(alias="x-lancedb-database", include_in_schema=False)]
# Each message of an Arrow IPC stream starts with it.
_ARROW_MESSAGE = b"\xff\xff\xff\xff"
#: the options of a match that lancedb sends if none is set
_DEFAULT_OPTIONS = {"boost": 1.0, "fuzziness": 0, "max_expansions": 50, "operator": "Or", "prefix_length": 0}


def to_protocol_query(body: Any) -> Any:
    """Return a body with the protocol's fields. Fields that already have the protocol's form stay as they are."""
    if not isinstance(body, dict):
        return body
    converted = dict(body)
    vector, columns, text = (body.get(key) for key in ("vector", "columns", "full_text_query"))
    if isinstance(vector, list):
        is_several = bool(vector) and isinstance(vector[0], list)
        converted["vector"] = {"multi_vector" if is_several else "single_vector": vector} if vector else {}
    if isinstance(columns, list):
        converted["columns"] = {"column_names": columns}
    elif isinstance(columns, dict) and columns and not columns.keys() & {"column_names", "column_aliases"}:
        converted["columns"] = {"column_aliases": columns}
    if isinstance(text, dict) and "query" in text:
        plain = text if isinstance(text["query"], str) else _to_plain_query(text["query"])
        converted["full_text_query"] = (
            {"string_query": plain} if plain else {"structured_query": {**text, "query": _to_protocol_text(text["query"])}}
        )
    return converted


def _to_protocol_text(query: Any) -> Any:
    """Return a structured full-text query with the protocol's form of ``multi_match``, also inside other queries."""
    if isinstance(query, list):
        return [_to_protocol_text(item) for item in query]
    if not isinstance(query, dict):
        return query
    several = query.get("multi_match")
    if isinstance(several, dict) and isinstance(several.get("columns"), list) and "query" in several:
        columns, boosts = several["columns"], several.get("boost") or several.get("boosts") or []
        matches = [
            {"terms": several["query"], "column": column, "boost": boost}
            for column, boost in zip_longest(columns, boosts[: len(columns)], fillvalue=1.0)
        ]
        return {**query, "multi_match": {"match_queries": matches}}
    return {key: _to_protocol_text(value) for key, value in query.items()}


def _to_plain_query(structured: Any) -> dict[str, Any] | None:
    """Return a query for terms in any column, which lancedb sends as a match without a column. None for any other query."""
    match = structured.get("match") if isinstance(structured, dict) and len(structured) == 1 else None
    if not isinstance(match, dict) or match.get("column") is not None:
        return None
    options = {key: value for key, value in match.items() if key not in ("column", "terms") and value is not None}
    return {"query": match.get("terms")} if options.items() <= _DEFAULT_OPTIONS.items() else None


def _to_protocol_explain(body: Any) -> Any:
    return {**body, "query": to_protocol_query(body["query"])} if isinstance(body, dict) and "query" in body else body


def _omit_schema_stream(body: Any) -> Any:
    """Return None for the Arrow IPC stream of a schema, which the route reads itself; any other body as it is."""
    if body is None:
        raise ValueError("it must be an object with named fields")
    return None if isinstance(body, bytes) and body.startswith(_ARROW_MESSAGE) else body


#: the body of a request to add columns; None for an Arrow IPC stream
AddColumnsBody = Annotated[AlterTableAddColumnsRequest | None, BeforeValidator(_omit_schema_stream)]
#: the body of a query, and of requests for its plan, in the protocol's form or in lancedb's
QueryBody = Annotated[QueryTableRequest, BeforeValidator(to_protocol_query)]
ExplainBody = Annotated[ExplainTableQueryPlanRequest, BeforeValidator(_to_protocol_explain)]
AnalyzeBody = Annotated[AnalyzeTableQueryPlanRequest, BeforeValidator(to_protocol_query)]
