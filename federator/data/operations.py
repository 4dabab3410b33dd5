"""What a child process can be asked, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from federator.data import columns, history, indices, query, stats, writing

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add_columns": columns.add_columns,
    "alter_columns": columns.alter_columns,
    "analyze": query.analyze,
    "branches": history.branches,
    "count": query.count,
    "create": writing.create,
    "create_branch": history.create_branch,
    "create_index": indices.create_index,
    "create_tag": history.create_tag,
    "delete": writing.delete,
    "delete_branch": history.delete_branch,
    "delete_tag": history.delete_tag,
    "describe": stats.describe,
    "drop": writing.drop,
    "drop_columns": columns.drop_columns,
    "drop_index": indices.drop_index,
    "explain": query.explain,
    "index_stats": indices.index_stats,
    "indices": indices.indices,
    "insert": writing.insert,
    "look": stats.look,
    "merge": writing.merge,
    "query": query.query,
    "restore": history.restore,
    "set_schema_metadata": columns.set_schema_metadata,
    "stats": stats.stats,
    "strangers": writing.strangers,
    "tag_version": history.tag_version,
    "tags": history.tags,
    "update": writing.update,
    "update_field_metadata": columns.update_field_metadata,
    "update_tag": history.update_tag,
    "version": history.version,
    "versions": history.versions,
}
