"""``python -m tests.adversary.command ORDERS LOG ARGUMENTS``: the command ``federator ARGUMENTS`` that may strike itself.

ORDERS is JSON: the fields of ``tests.adversary.killing.Orders``. A moment is before or after a record of the journal. ``ttl`` and
``deadline`` take the place of the leases' own. ``ADVERSARY_ROOM``: the pages by which an SQLite index may still grow.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from federator.apply.store_journal import StoreJournal
from federator.cli import main
from federator.store import leases
from tests.adversary.killing import Moments, Orders


def _watched(name: str, record: Callable[..., Any], moments: Moments) -> Callable[..., Any]:
    def watched(journal: StoreJournal, intent: Any, *more: Any) -> Any:
        what = f"{name} {intent.change.action.value} {intent.change.target_path}"
        moments.reach(f"before {what}")
        answer = record(journal, intent, *more)
        moments.reach(f"after {what}")
        return answer

    return watched


def _fill(connection: Any, _: Any) -> None:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {_FIRST.setdefault('pages', pages) + int(os.environ['ADVERSARY_ROOM'])}")


_FIRST: dict[str, int] = {}

if __name__ == "__main__":
    orders, log = Orders(**json.loads(sys.argv[1])), Path(sys.argv[2])
    leases.LEASE_TTL_SECONDS, leases.CALL_DEADLINE_SECONDS = orders.ttl, orders.deadline
    watching = Moments(orders, log)
    for method in ("record_intent", "record_outcome"):
        setattr(StoreJournal, method, _watched(method, getattr(StoreJournal, method), watching))
    if "ADVERSARY_ROOM" in os.environ:
        event.listen(Engine, "connect", _fill)
    sys.argv = ["federator", *sys.argv[3:]]
    main()
