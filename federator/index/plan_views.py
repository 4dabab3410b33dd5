"""Plans as a caller may see them: whole, in part, or not at all.

A mirror's plan is seen whole by who sees both of its sources whole, since guards and evidence speak of all that the mirror copies. Who
sees less sees the changes and refusals both of whose ends its scopes cover, and counts of these alone; a plan with none of them does
not exist for it. In part there is no text that may speak of the rest: no guards, no details of refusals, no number of what was
selected. A person's declarations have no origin: their plan is seen whole where all of it is covered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from federator.connector import StateError
from federator.index import plans
from federator.index import tables as t
from federator.index.run_views import Viewer
from federator.model import parse_key
from federator.planning.declaring import target_of

# Counts of plans by digest and scope, which never change: as many as a page or two of several callers.
_KEPT = 2000
_KNOWN: dict[tuple[str, ...], Counts | None] = {}
_BATCH = 50

Counted = dict[str, int]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many changes by action and refusals by reason a viewer sees of a plan, and whether that is a part of it."""

    partial: bool
    changes: Counted
    refusals: Counted


@dataclass(frozen=True, slots=True)
class SeenPlan:
    """A plan's row, without the body that it may have, and what is seen of it."""

    row: RowMapping
    counts: Counts


def page(
    connection: Connection, viewer: Viewer, *, mirror: str | None = None, state: str | None = None, run: str | None = None,
    after: tuple[float, str] | None = None, limit: int = 20,
) -> list[SeenPlan]:  # fmt: skip
    """The plans that a viewer sees something of, newest first; arguments as ``plans.page`` has them."""
    mirrors = None if mirror is None else [mirror]
    found: list[SeenPlan] = []
    while len(found) < limit:
        size = limit if viewer.scopes.everything else _BATCH
        rows = plans.page(connection, mirrors=mirrors, state=state, run=run, after=after, limit=size)
        for row in rows:
            counts = _counts(connection, viewer, row["digest"], row["mirror"])
            if counts is not None:
                found.append(SeenPlan(row, counts))
        if len(rows) < size:
            break
        after = (rows[-1]["created_at"], rows[-1]["digest"])
    return found[:limit]


def get(connection: Connection, viewer: Viewer, digest: str) -> tuple[RowMapping, bool, dict[str, Any]]:
    """A plan's row by its whole digest, whether the viewer sees a part of it, and of its body what it sees.

    Raises StateError, also where the viewer sees nothing of it.
    """
    row = plans.get(connection, digest)
    if row["digest"] != digest:
        raise StateError(f"no plan has the digest {digest!r}")
    body: dict[str, Any] = json.loads(row["body"])
    if _whole(viewer, row["mirror"]):
        return row, False, body
    seen = _seen(viewer, row["mirror"], body)
    if seen is None:
        raise StateError(f"no plan has the digest {digest!r}")
    return row, seen is not body, seen


def _whole(viewer: Viewer, mirror: str) -> bool:
    return viewer.scopes.everything or mirror in viewer.mirrors


def _counts(connection: Connection, viewer: Viewer, digest: str, mirror: str) -> Counts | None:
    if _whole(viewer, mirror):
        return Counts(False, *plans.counts(connection, digest))
    key = (digest, viewer.origins.get(mirror, ""), *viewer.scopes.texts)
    # Other threads empty it, too: what is returned was not read from it after it was looked for.
    with suppress(KeyError):
        return _KNOWN[key]
    body = json.loads(connection.execute(select(t.plan.c.body).where(t.plan.c.digest == digest)).scalar_one())
    seen = _seen(viewer, mirror, body)
    counts = None if seen is None else _counted(seen, partial=seen is not body)
    if len(_KNOWN) >= _KEPT:
        _KNOWN.clear()
    _KNOWN[key] = counts
    return counts


def _counted(body: Mapping[str, Any], *, partial: bool) -> Counts:
    changes, refusals = (change["action"] for change in body["changes"]), (refusal["reason"] for refusal in body["refusals"])
    return Counts(partial, dict(Counter(changes)), dict(Counter(refusals)))


def _seen(viewer: Viewer, mirror: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """What a viewer sees of a plan's body: the body itself where that is all of it, None where it is nothing."""
    person = target_of(mirror) is not None
    origin = viewer.origins.get(mirror, "")
    if not (person or origin):
        return None
    changes = [change for change in body["changes"] if _covered(viewer, change, change["origin_source"])]
    refusals = [refusal for refusal in body["refusals"] if _covered(viewer, refusal, origin)]
    if not (changes or refusals):
        return None
    if person and (len(changes), len(refusals)) == (len(body["changes"]), len(body["refusals"])):
        return body
    return {
        "mirror": body["mirror"],
        "origin_revision": body["origin_revision"],
        "target_revision": body["target_revision"],
        "changes": list(_paired(changes)),
        "refusals": [{**refusal, "detail": ""} for refusal in refusals],
        "held": [],
    }


def _covered(viewer: Viewer, line: Mapping[str, Any], origin: str) -> bool:
    """Whether both ends of a change or a refusal are inside the scopes, as far as it has them."""
    told = [
        (source, line[end]) for source, end in ((origin, "origin_path"), (line["target_source"], "target_path")) if line[end]
    ]
    shown = viewer.scopes.shows((line["target_source"],))
    return bool(told) and shown and all(viewer.scopes.covers((source, *parse_key(path))) for source, path in told)


def _paired(changes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The halves of a rename name each other only where both are seen."""
    pairs = Counter(change.get("pair") for change in changes)
    for change in changes:
        alone = change.get("pair") is not None and pairs[change["pair"]] < 2
        shown = {key: value for key, value in change.items() if not (alone and key == "pair")}
        # What it was declared for before, if anything, may be another's.
        yield {**shown, "reason": change["reason"].partition(" for ")[0]}
