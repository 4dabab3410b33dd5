"""Approvals of changes, by their evidence (``planning.release``): whatever plan holds such a change finds its approval."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping

from sqlalchemy import Connection, RowMapping, delete, insert, select

from federator.index import tables as t
from federator.index.bulk import chunks
from federator.planning.plan import Plan
from federator.planning.release import KEPT, Approvals, Release, release


def current(connection: Connection, mirror: str) -> Approvals:
    """A mirror's approvals that hold now: the guards that objected when they were given, by the change's evidence."""
    a = t.approval.c
    query = select(a.evidence, a.guards).where(a.mirror == mirror, a.approved_at > time.time() - KEPT)
    return {evidence: frozenset(json.loads(guards)) for evidence, guards in connection.execute(query)}


def released(connection: Connection, row: RowMapping) -> Release:
    """What of a stored plan may go now, and what waits. Of a plan that is over nothing goes and nothing waits."""
    if row["state"] in ("applied", "outdated"):
        return Release((), ())
    return release(Plan.from_json(json.loads(row["body"])), current(connection, row["mirror"]))


def approve(connection: Connection, mirror: str, guards: Mapping[str, Collection[str]], *, plan: str, actor: str) -> None:
    """Approves changes: ``guards`` names those that object now, by the change's evidence. An earlier approval of the same change
    keeps the guards that it was given for."""
    a = t.approval.c
    before = current(connection, mirror)
    connection.execute(delete(t.approval).where(a.mirror == mirror, a.approved_at <= time.time() - KEPT))
    withdraw(connection, mirror, guards)
    rows = [
        {
            "mirror": mirror, "evidence": evidence, "plan": plan, "actor": actor, "approved_at": time.time(),
            "guards": json.dumps(sorted({*names, *before.get(evidence, ())})),
        }
        for evidence, names in guards.items()
    ]  # fmt: skip
    if rows:
        connection.execute(insert(t.approval), rows)


def withdraw(connection: Connection, mirror: str, evidence: Collection[str]) -> None:
    """Takes approvals of changes back."""
    a = t.approval.c
    for part in chunks(sorted(evidence)):
        connection.execute(delete(t.approval).where(a.mirror == mirror, a.evidence.in_(part)))
