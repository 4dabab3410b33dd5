"""Queries of a table's rows: filter, projection, vector search and full-text search; counts and query plans.

A query is a mapping with the fields of the Lance protocol's ``QueryTableRequest``. All functions raise CatalogError if the table
cannot be opened or read (``TableHandle.open_dataset``), and InvalidInput or TableColumnNotFound for an invalid query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import InvalidInput
from federator.connector.errors import TableColumnNotFound
from federator.data.limits import DataLimits
from federator.data.table_handle import TableHandle
from federator.runtime.mappings import without_none

# Larger numbers end the process. A client that asks for all rows sends the largest k.
_MAX_COUNTS = {"k": (1 << 63) - 1, "offset": (1 << 63) - 1} | dict.fromkeys(
    ("refine_factor", "ef", "nprobes", "minimum_nprobes", "maximum_nprobes"), (1 << 31) - 1
)
_METRICS = ("l2", "cosine", "euclidean", "dot", "hamming")
_TEXT_QUERIES = ("match", "phrase", "boost", "multi_match", "boolean")


def count_rows(
    handle: TableHandle, *, version: int | None = None, branch: str | None = None, predicate: str | None = None
) -> int:
    """Return the number of rows, or of those that match ``predicate``, an SQL expression."""
    with handle.opened_dataset(version, branch) as dataset:
        rows: int = dataset.count_rows(predicate or None)
        return rows


def query_rows(handle: TableHandle, *, query: Mapping[str, Any], limits: DataLimits, output: str) -> dict[str, Any]:
    """Write the result to the file ``output`` as Arrow IPC. Return the number of ``rows``, and their ``bytes`` in memory.

    Raise InvalidInput if the result exceeds a limit; ``output`` is then incomplete.
    """
    import pyarrow as pa

    rows = size = 0
    with handle.opened_dataset(query.get("version"), query.get("branch")) as dataset:
        # One row more than allowed, so that ``limits.check`` sees the excess.
        scanner = _build_scanner(dataset, query, max_rows=limits.rows + 1)
        with scanner.to_reader() as reader, pa.OSFile(output, "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
            for batch in reader:
                rows, size = rows + batch.num_rows, size + batch.nbytes
                limits.check(rows, size)
                writer.write_batch(batch)
    return {"rows": rows, "bytes": size}


def explain_query(handle: TableHandle, *, query: Mapping[str, Any], verbose: bool = False) -> str:
    """Return Lance's plan of a query as text. The query does not run."""
    with handle.opened_dataset(query.get("version"), query.get("branch")) as dataset:
        plan: str = _build_scanner(dataset, query).explain_plan(verbose)
        return plan


def analyze_query(handle: TableHandle, *, query: Mapping[str, Any]) -> str:
    """Run a query, with no other row limit than its ``k``. Return its plan with measurements as text."""
    with handle.opened_dataset(query.get("version"), query.get("branch")) as dataset:
        plan: str = _build_scanner(dataset, query).analyze_plan()
        return plan


def _build_scanner(dataset: Any, query: Mapping[str, Any], max_rows: int | None = None) -> Any:
    """Build the scanner of a query that reads at most ``max_rows`` rows (None: no limit).

    The query's ``k`` is the number of rows, or of neighbours if it has a vector. If ``k`` is 0 or missing, a query reads
    ``max_rows`` rows; without ``max_rows``, it reads all rows or 10 neighbours.
    """
    for name in _MAX_COUNTS:
        _require_count(name, query.get(name))
    vector, k = _parse_vector(query), query.get("k") or None
    limit = min(k, max_rows) if k is not None and max_rows is not None else k or max_rows
    options: dict[str, Any] = {
        "columns": _parse_columns(query), "filter": query.get("filter") or None, "offset": query.get("offset"),
        "with_row_id": bool(query.get("with_row_id")), "fast_search": query.get("fast_search"), "prefilter": query.get("prefilter"),
    }  # fmt: skip
    if vector is None:
        options["limit"] = limit
        if text_query := query.get("full_text_query"):
            options["full_text_query"] = _build_full_text_query(text_query)
        return dataset.scanner(**without_none(options))
    if query.get("full_text_query"):
        raise InvalidInput("vector and full_text_query are mutually exclusive", hint="use two queries")
    column = query.get("vector_column") or _default_vector_column(dataset)
    if _is_several(dataset, column, vector):
        if query.get("offset"):
            raise InvalidInput("offset has no meaning for several vectors", hint="use a query for each vector")
        # Each vector has ``k`` rows of its own.
        nearest = _build_nearest_options(query, column, vector, limit or 10)
        return dataset.scanner(nearest=nearest, **without_none(options | {"limit": max_rows}))
    # The offset skips the nearest neighbours, so the search must return these too.
    nearest = _build_nearest_options(query, column, vector, (limit or 10) + (query.get("offset") or 0))
    return dataset.scanner(nearest=nearest, limit=limit, **without_none(options))


def _is_several(dataset: Any, column: str, vector: list[Any]) -> bool:
    """Return whether a query has several vectors. For a column with several vectors in each row, they are one query."""
    from pyarrow.types import is_fixed_size_list

    field = dataset.lance_schema.field(column)
    return isinstance(vector[0], list) and field is not None and is_fixed_size_list(field.to_arrow().type)


def _build_nearest_options(query: Mapping[str, Any], column: str, vector: list[Any], k: int) -> dict[str, Any]:
    """Return the options of a vector search for ``k`` neighbours. Raise InvalidInput."""
    metric = query.get("distance_type")
    if metric is not None and metric.lower() not in _METRICS:
        raise InvalidInput(f"unknown distance_type: {metric!r}", hint=f"use one of {', '.join(_METRICS)}")
    bounds = (query.get("lower_bound"), query.get("upper_bound"))
    probes = {name: query.get(name) for name in ("minimum_nprobes", "maximum_nprobes")}
    # ``nprobes`` sets both bounds, so it has no effect beside one of them.
    if not any(probes.values()):
        probes["nprobes"] = query.get("nprobes")
    options = {
        "column": column, "q": vector, "k": k, "metric": metric,
        "refine_factor": query.get("refine_factor"), "ef": query.get("ef"), "use_index": not query.get("bypass_vector_index"),
        "distance_range": bounds if any(bound is not None for bound in bounds) else None,
    }  # fmt: skip
    return without_none(options | probes)


def _default_vector_column(dataset: Any) -> str:
    """Return the column to search if a query names none: ``vector``, else the only vector column. Raise TableColumnNotFound."""
    from pyarrow.types import is_fixed_size_list

    names: list[str] = [field.name for field in dataset.schema if is_fixed_size_list(field.type)]
    if "vector" in names:
        return "vector"
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise TableColumnNotFound(f"vector_column is required; vector columns of the table: {listed}")
    return names[0]


def _parse_vector(query: Mapping[str, Any]) -> list[Any] | None:
    """Return the query's vector, or the list of its vectors. None if it has none."""
    vector = query.get("vector") or {}
    several = vector.get("multi_vector")
    if several and not all(several):
        raise InvalidInput("multi_vector contains a vector without values")
    return vector.get("single_vector") or several or None


def _require_count(name: str, value: int | None) -> None:
    """Raise InvalidInput for a number that Lance cannot hold."""
    if value is not None and not 0 <= value <= _MAX_COUNTS[name]:
        raise InvalidInput(f"{name}: must be from 0 to {_MAX_COUNTS[name]:,}")


def _parse_columns(query: Mapping[str, Any]) -> list[str] | dict[str, str] | None:
    """Return the names of the columns to read, or the columns by output name. None means all columns."""
    columns = query.get("columns") or {}
    names, aliases = columns.get("column_names"), columns.get("column_aliases")
    if names and aliases:
        raise InvalidInput("column_names and column_aliases are mutually exclusive", hint="set only one of them")
    # The Java client sends what was not set as an empty list.
    return names or aliases or None


def _build_full_text_query(text_query: Mapping[str, Any]) -> Any:
    if structured := text_query.get("structured_query"):
        return _build_structured_query(structured["query"])
    plain = text_query.get("string_query") or {}
    return without_none({"query": plain.get("query", ""), "columns": plain.get("columns") or None})


def _build_structured_query(text_query: Mapping[str, Any]) -> Any:
    from lance import query as fts

    kinds = [kind for kind, body in text_query.items() if body is not None]
    if len(kinds) != 1:
        raise InvalidInput(f"a structured query needs exactly one of {', '.join(_TEXT_QUERIES)}")
    kind, body = kinds[0], text_query[kinds[0]]
    if kind == "match":
        return fts.MatchQuery(body["terms"], _require_column(body), **_parse_match_options(body))
    if kind == "phrase":
        return fts.PhraseQuery(body["terms"], _require_column(body), **without_none({"slop": body.get("slop")}))
    if kind == "boost":
        weight = without_none({"negative_boost": body.get("negative_boost")})
        return fts.BoostQuery(_build_structured_query(body["positive"]), _build_structured_query(body["negative"]), **weight)
    if kind == "multi_match":
        return _build_multi_match(body["match_queries"])
    if kind != "boolean":
        raise InvalidInput(f"unknown kind of structured query: {kind!r}", hint=f"use one of {', '.join(_TEXT_QUERIES)}")
    occurs = {"must": fts.Occur.MUST, "should": fts.Occur.SHOULD, "must_not": fts.Occur.MUST_NOT}
    return fts.BooleanQuery(
        [(occur, _build_structured_query(clause)) for name, occur in occurs.items() for clause in body.get(name) or ()]
    )


def _build_multi_match(match_queries: list[Mapping[str, Any]]) -> Any:
    from lance import query as fts

    terms = {match["terms"] for match in match_queries}
    if len(terms) != 1:
        raise InvalidInput("multi_match: all match_queries must have the same terms")
    return fts.MultiMatchQuery(
        terms.pop(), [*map(_require_column, match_queries)], boosts=[match.get("boost") or 1.0 for match in match_queries]
    )


def _parse_match_options(body: Mapping[str, Any]) -> dict[str, Any]:
    from lance import query as fts

    operator = body.get("operator")
    names = ("boost", "fuzziness", "max_expansions", "prefix_length")
    options = {name: body.get(name) for name in names}
    if operator is not None and operator.upper() not in ("AND", "OR"):
        raise InvalidInput(f"unknown operator: {operator!r}", hint="allowed: And, Or")
    return without_none(options | {"operator": fts.FullTextOperator[operator.upper()] if operator else None})


def _require_column(body: Mapping[str, Any]) -> str:
    if not body.get("column"):
        raise InvalidInput("a structured query needs a column")
    return str(body["column"])
