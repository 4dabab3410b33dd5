"""The columns of a crawl, as Spark DDL and by name. Imported where Spark plans, so it has no slow imports."""

from __future__ import annotations

from federator.model.rows import RECORD_COLUMNS

#: the kinds of rows, in column ``row``: an object, the coverage of a namespace, the calls of a task, and the identity that it read
RECORD, COVERAGE, CALLS, IDENTITY = "record", "coverage", "calls", "identity"

#: Spark types by column name. A row has values in the columns of its kind only.
COLUMNS: dict[str, str] = {
    "source": "string", "row": "string", "shard": "int", "began_at": "double",
    **dict.fromkeys(RECORD_COLUMNS, "string"), "is_table": "smallint",
    "namespace": "string", "presence": "string", "presence_code": "int", "presence_reason": "string",
    "detail": "string", "detail_code": "int", "detail_reason": "string",
    "records": "bigint", "fold": "bigint", "found": "boolean", "calls": "string",
    "identity": "string", "identity_error": "string",
}  # fmt: skip

DDL = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
