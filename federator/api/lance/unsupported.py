"""Protocol routes that no catalog can serve: they raise Unsupported (0, 406) with a reason.

Versions of a table are created by writing to it and removed by pylance's clean-up. Materialized views, backfills and transactions
need an engine, which the federator is not.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter

from federator.connector import Unsupported

router = APIRouter(prefix="/v1", include_in_schema=False)

_VIEWS = "materialized views need an engine, and this service has none"
_TRANSACTIONS = "transactions belong to the table format, and no catalog stores them"
_VERSIONS = "versions are created by writing to the table's location, and removed by cleaning it up"
#: route → reason why it is not supported
UNSUPPORTED = {
    "/materialized_view/{id}/create": _VIEWS,
    "/materialized_view/{id}/refresh": _VIEWS,
    "/transaction/{id}/describe": _TRANSACTIONS,
    "/transaction/{id}/alter": _TRANSACTIONS,
    "/table/{id}/backfill_column": "backfills need an engine, and this service has none",
    "/table/batch-commit": "no catalog can change several tables in one transaction",
    "/table/version/batch-create": _VERSIONS,
    "/table/{id}/version/create": _VERSIONS,
    "/table/{id}/version/delete": _VERSIONS,
}


def _unsupported_route(reason: str) -> Callable[[], None]:
    def raise_unsupported() -> None:
        raise Unsupported(reason)

    return raise_unsupported


for _path, _reason in UNSUPPORTED.items():
    router.add_api_route(_path, _unsupported_route(_reason), methods=["POST"], name=f"unsupported {_path}")
