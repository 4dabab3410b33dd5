"""Requests to verify tables: which tables a principal may name, and how many requests it may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from federator.api.paging import require_storable
from federator.api.problems import RequestRejected
from federator.connector import InvalidInput
from federator.model import parse_path_key
from federator.model.scopes import Scopes
from federator.stages.verify import require_verifiable
from federator.store import Connection, records, requests
from federator.views.freshness import read_freshness
from federator.views.tree import read_table

# Each one occupies the worker for up to ``[verify] timeout`` for each of its tables.
_MAX_UNFINISHED = 5
_RETRY_SECONDS = 5


def list_verifiable(connection: Connection, ids: Sequence[str], scopes: Scopes) -> list[str]:
    """Return the object ids of tables in order, each once.

    Raise TableNotFound for one that is absent or not covered, StateError for one that verification does not open, and InvalidInput
    if there are none.
    """
    if not ids:
        raise InvalidInput("verify takes tables: their object ids")
    known = read_freshness(connection, scopes)
    for table_id in ids:
        node = parse_path_key(require_storable(table_id, "tables"))
        read_table(connection, node, known, scopes=scopes)
        table = records.find_table(connection, node[0], node[1:])
        assert table is not None
        require_verifiable(table)
    return sorted(set(ids))


def find_verify_request(connection: Connection, argument: Mapping[str, Any], actor: str) -> requests.Request | None:
    """Return the actor's request to verify the same tables that is still queued. None if there is none.

    Raise RequestRejected (429) if the actor has too many unfinished ones.
    """
    unfinished = requests.list_unfinished(connection, "verify", actor=actor)
    for request in unfinished:
        # A verification that has started may have read the table before what the actor wants to be seen.
        if request.state == requests.QUEUED and request.argument["tables"] == argument["tables"]:
            return request
    if len(unfinished) >= _MAX_UNFINISHED:
        raise RequestRejected(
            429, "Too many requests", f"{actor} has {len(unfinished)} requests to verify tables that have not ended",
            headers={"Retry-After": str(_RETRY_SECONDS)},
        )  # fmt: skip
    return None
