"""The operations of a child process of ``data.process_pool``, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from federator.data import columns, drop, indices, query, rows, stats, versions

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add_columns": columns.add_columns,
    "add_null_columns": columns.add_null_columns,
    "alter_columns": columns.alter_columns,
    "analyze": query.analyze_query,
    "branches": versions.list_branches,
    "columns": rows.read_columns,
    "count": query.count_rows,
    "create": rows.create_table,
    "create_branch": versions.create_branch,
    "create_index": indices.create_index,
    "create_tag": versions.create_tag,
    "delete": rows.delete_rows,
    "delete_branch": versions.delete_branch,
    "delete_tag": versions.delete_tag,
    "describe": stats.describe_table,
    "drop": drop.drop_table_data,
    "drop_columns": columns.drop_columns,
    "drop_index": indices.drop_index,
    "explain": query.explain_query,
    "foreign_files": drop.list_foreign_files,
    "index_stats": indices.get_index_stats,
    "indices": indices.list_indices,
    "insert": rows.insert_rows,
    "inspect": stats.inspect_table,
    "lost_tables": drop.list_lost_tables,
    "merge": rows.merge_rows,
    "query": query.query_rows,
    "resolve": stats.resolve_locations,
    "restore": versions.restore_version,
    "set_schema_metadata": columns.set_schema_metadata,
    "stats": stats.get_table_stats,
    "tag_version": versions.get_tag_version,
    "tags": versions.list_tags,
    "update": rows.update_rows,
    "update_field_metadata": columns.update_field_metadata,
    "update_tag": versions.update_tag,
    "version": versions.describe_version,
    "versions": versions.list_versions,
}
