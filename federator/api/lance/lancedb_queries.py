"""Bodies of queries as lancedb's remote client sends them, which are those of LanceDB's own service.

They differ from the protocol in ``vector`` (a list, empty for none), ``columns`` (a list of names, or expressions by name) and
``full_text_query`` (its ``query`` is a text, or a structured query).
"""

from __future__ import annotations

from typing import Annotated, Any

from lance_namespace import AnalyzeTableQueryPlanRequest, ExplainTableQueryPlanRequest, QueryTableRequest
from pydantic import BeforeValidator


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
        is_plain = isinstance(text["query"], str)
        converted["full_text_query"] = {"string_query" if is_plain else "structured_query": text}
    return converted


def _to_protocol_explain(body: Any) -> Any:
    return {**body, "query": to_protocol_query(body["query"])} if isinstance(body, dict) and "query" in body else body


#: the body of a query, and of requests for its plan, in the protocol's form or in lancedb's
QueryBody = Annotated[QueryTableRequest, BeforeValidator(to_protocol_query)]
ExplainBody = Annotated[ExplainTableQueryPlanRequest, BeforeValidator(_to_protocol_explain)]
AnalyzeBody = Annotated[AnalyzeTableQueryPlanRequest, BeforeValidator(to_protocol_query)]
