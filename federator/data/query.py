"""Rows of a table: counted, and queried by projection, filter, vector and words. Answers are files of Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import InvalidInput
from federator.connector.errors import TableColumnNotFound
from federator.data.limits import DataLimits
from federator.data.place import Place

_METRICS = ("l2", "cosine", "euclidean", "dot", "hamming")


def count(place: Place, *, version: int | None = None, branch: str | None = None, predicate: str | None = None) -> int:
    """How many rows there are, or match."""
    with place.opened(version, branch) as dataset:
        rows: int = dataset.count_rows(predicate or None)
        return rows


def query(place: Place, *, query: Mapping[str, Any], limits: DataLimits, output: str) -> dict[str, Any]:
    """Writes the rows to the file ``output`` as Arrow IPC; how many they are, and their bytes in memory.

    ``query`` has the fields of a ``QueryTableRequest``. Raises InvalidInput where the answer is beyond a limit.
    """
    import pyarrow as pa

    rows = size = 0
    with place.opened(query.get("version"), query.get("branch")) as dataset:
        scanner = _scanner(dataset, query, most=limits.rows + 1)
        with scanner.to_reader() as reader, pa.OSFile(output, "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
            for batch in reader:
                rows, size = rows + batch.num_rows, size + batch.nbytes
                limits.check(rows, size)
                writer.write_batch(batch)
    return {"rows": rows, "bytes": size}


def explain(place: Place, *, query: Mapping[str, Any], verbose: bool = False) -> str:
    """The plan of a query, as Lance writes it."""
    with place.opened(query.get("version"), query.get("branch")) as dataset:
        plan: str = _scanner(dataset, query).explain_plan(verbose)
        return plan


def analyze(place: Place, *, query: Mapping[str, Any]) -> str:
    """The plan of a query with what running it took."""
    with place.opened(query.get("version"), query.get("branch")) as dataset:
        plan: str = _scanner(dataset, query).analyze_plan()
        return plan


def _scanner(dataset: Any, query: Mapping[str, Any], most: int | None = None) -> Any:
    """``k`` is the number of rows, of neighbours where a vector is given; 0 is all of them. ``most`` bounds what is read."""
    vector, k = _vector(query), query.get("k") or None
    bounded = min(k, most) if k is not None and most is not None else k or most
    options: dict[str, Any] = {
        "columns": _columns(query), "filter": query.get("filter") or None, "offset": query.get("offset"),
        "with_row_id": bool(query.get("with_row_id")), "fast_search": query.get("fast_search"), "prefilter": query.get("prefilter"),
    }  # fmt: skip
    if vector is None:
        options["limit"] = bounded
        if words := query.get("full_text_query"):
            options["full_text_query"] = _words(words)
        return dataset.scanner(**_said(options))
    if query.get("full_text_query"):
        raise InvalidInput("a query searches by vector or by words, not both", hint="two queries")
    # The offset is taken from among the neighbours, so that there must be as many more.
    nearest = _nearest(dataset, query, vector, (bounded or 10) + (query.get("offset") or 0))
    return dataset.scanner(nearest=nearest, limit=bounded, **_said(options))


def _nearest(dataset: Any, query: Mapping[str, Any], vector: list[Any], k: int) -> dict[str, Any]:
    metric = query.get("distance_type")
    if metric is not None and metric.lower() not in _METRICS:
        raise InvalidInput(f"distance_type {metric!r} is unknown", hint=f"one of {', '.join(_METRICS)}")
    bounds = (query.get("lower_bound"), query.get("upper_bound"))
    probes = {name: query.get(name) for name in ("minimum_nprobes", "maximum_nprobes")}
    if not any(probes.values()):
        probes["nprobes"] = query.get("nprobes")
    told = {
        "column": query.get("vector_column") or _only_vector_column(dataset), "q": vector, "k": k, "metric": metric,
        "refine_factor": query.get("refine_factor"), "ef": query.get("ef"), "use_index": not query.get("bypass_vector_index"),
        "distance_range": bounds if any(bound is not None for bound in bounds) else None,
    }  # fmt: skip
    return _said(told | probes)


def _only_vector_column(dataset: Any) -> str:
    """The column that is searched where none is named: ``vector``, else the only one of vectors."""
    import pyarrow.types as t

    names: list[str] = [field.name for field in dataset.schema if t.is_fixed_size_list(field.type)]
    if "vector" in names:
        return "vector"
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise TableColumnNotFound(f"vector_column is not given, and the table's columns of vectors are: {found}")
    return names[0]


def _vector(query: Mapping[str, Any]) -> list[Any] | None:
    told = query.get("vector") or {}
    return told.get("single_vector") or told.get("multi_vector") or None


def _columns(query: Mapping[str, Any]) -> list[str] | dict[str, str] | None:
    told = query.get("columns") or {}
    names, aliases = told.get("column_names"), told.get("column_aliases")
    if names is not None and aliases is not None:
        raise InvalidInput("columns: column_names or column_aliases, not both")
    return names if names is not None else aliases


def _words(told: Mapping[str, Any]) -> Any:
    if structured := told.get("structured_query"):
        return _full_text(structured["query"])
    plain = told.get("string_query") or {}
    return _said({"query": plain.get("query", ""), "columns": plain.get("columns") or None})


def _full_text(told: Mapping[str, Any]) -> Any:
    from lance import query as fts

    kinds = [kind for kind, body in told.items() if body is not None]
    if len(kinds) != 1:
        raise InvalidInput("a structured query has exactly one of match, phrase, boost, multi_match, boolean")
    kind, body = kinds[0], told[kinds[0]]
    if kind == "match":
        return fts.MatchQuery(body["terms"], _named(body), **_match(body))
    if kind == "phrase":
        return fts.PhraseQuery(body["terms"], _named(body), **_said({"slop": body.get("slop")}))
    if kind == "boost":
        weight = _said({"negative_boost": body.get("negative_boost")})
        return fts.BoostQuery(_full_text(body["positive"]), _full_text(body["negative"]), **weight)
    if kind == "multi_match":
        return _multi_match(body["match_queries"])
    occurs = {"must": fts.Occur.MUST, "should": fts.Occur.SHOULD, "must_not": fts.Occur.MUST_NOT}
    return fts.BooleanQuery([(occur, _full_text(part)) for name, occur in occurs.items() for part in body.get(name) or ()])


def _multi_match(parts: list[Mapping[str, Any]]) -> Any:
    from lance import query as fts

    terms = {part["terms"] for part in parts}
    if len(terms) != 1:
        raise InvalidInput("multi_match: all of its match_queries search for the same terms")
    return fts.MultiMatchQuery(
        terms.pop(), [_named(part) for part in parts], boosts=[part.get("boost") or 1.0 for part in parts]
    )


def _match(body: Mapping[str, Any]) -> dict[str, Any]:
    from lance import query as fts

    operator = body.get("operator")
    names = ("boost", "fuzziness", "max_expansions", "prefix_length")
    told = {name: body.get(name) for name in names}
    if operator is not None and operator.upper() not in ("AND", "OR"):
        raise InvalidInput(f"operator {operator!r} is unknown", hint="one of And, Or")
    return _said(told | {"operator": fts.FullTextOperator[operator.upper()] if operator else None})


def _named(body: Mapping[str, Any]) -> str:
    if not body.get("column"):
        raise InvalidInput("a structured query names the column that it searches")
    return str(body["column"])


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
