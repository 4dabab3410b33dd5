"""The protocol's routes that no catalog here can serve: they answer Unsupported (0, 406) with a sentence.

A version of a table is made by writing it, and removed by pylance's own clean-up; materialized views, backfills and transactions are
services of an engine that this is not.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter

from federator.connector import Unsupported

router = APIRouter(prefix="/v1", include_in_schema=False)

_VIEWS = "materialized views are kept by an engine, and there is none here"
_TRANSACTIONS = "transactions are the table format's own, and no catalog here keeps them"
_VERSIONS = "a table's versions are made by writing to it at its location, and removed by cleaning it up there"
#: route → why it is not served
UNSUPPORTED = {
    "/materialized_view/{id}/create": _VIEWS,
    "/materialized_view/{id}/refresh": _VIEWS,
    "/transaction/{id}/describe": _TRANSACTIONS,
    "/transaction/{id}/alter": _TRANSACTIONS,
    "/table/{id}/backfill_column": "columns are filled by an engine, and there is none here",
    "/table/batch-commit": "no catalog here changes several tables as one",
    "/table/version/batch-create": _VERSIONS,
    "/table/{id}/version/create": _VERSIONS,
    "/table/{id}/version/delete": _VERSIONS,
}


def _refusing(sentence: str) -> Callable[[], None]:
    def refuse() -> None:
        raise Unsupported(sentence)

    return refuse


for _path, _sentence in UNSUPPORTED.items():
    router.add_api_route(_path, _refusing(_sentence), methods=["POST"], name=f"unsupported {_path}")
