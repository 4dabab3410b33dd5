"""Requests to verify tables: which tables a principal may name."""

from __future__ import annotations

from collections.abc import Sequence

from federator.api.paging import require_storable
from federator.connector import InvalidInput, StateError
from federator.model import parse_path_key
from federator.model.scopes import Scopes
from federator.store import Connection
from federator.views.freshness import read_freshness
from federator.views.tree import read_table


def list_verifiable(connection: Connection, ids: Sequence[str], scopes: Scopes) -> list[str]:
    """Return the object ids of tables in order, each once.

    Raise TableNotFound for one that is absent or not covered, StateError for one that verification does not open, and InvalidInput
    if there are none.
    """
    if not ids:
        raise InvalidInput("verify takes tables: their object ids")
    known = read_freshness(connection, scopes)
    distinct = sorted(set(ids))
    for table_id in distinct:
        node = parse_path_key(require_storable(table_id, "tables"))
        if obstacle := read_table(connection, node, known, scopes=scopes).unverifiable:
            raise StateError(obstacle)
    return distinct
