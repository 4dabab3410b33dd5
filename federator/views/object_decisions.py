"""What the newest plan of a mirror decides about one object.

A large plan is read by a process of its own, ``python -m federator.views.object_decisions``: it takes memory, and time in which no
other thread of a process would run. The module has both sides.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from federator.connector import ServiceUnavailable
from federator.planning.changes import Change, Decision, Refusal
from federator.planning.plan import Plan
from federator.runtime.child_process import ChildMemoryExceeded, ChildProcess, ChildProcessDied, serve_requests
from federator.store import Connection, approvals, open_index, plans
from federator.store.plans import PlanRecord
from federator.views.plan_outcomes import ChangeOutcome, find_change_outcome
from federator.views.plans import bounding_memory

Role = Literal["origin", "target"]
_MAX_SECONDS = 120.0
_MAX_MEMORY = 2 << 30


class Waiting(NamedTuple):
    """Why a change waits: the reason code, the hold that stops it, and the command that lifts it."""

    reason: str
    hold: str
    release_command: str


@dataclass(frozen=True, slots=True)
class ObjectDecision:
    """The newest plan of a mirror, and its decision about an object: None if the plan leaves it as it is.

    ``outcome`` is the journal line of a change that was started. ``has_holds``: the plan of a change has a hold.
    """

    plan: PlanRecord
    decision: Decision | None = None
    waiting: Waiting | None = None
    outcome: ChangeOutcome | None = None
    has_holds: bool = False


def find_object_decision(connection: Connection, mirror: str, role: Role, key: str, principal: str) -> ObjectDecision | None:
    """Return the newest plan of a mirror, with its decision about the object that has this role and path key. None without a plan.

    ``principal`` is the one that waits for a large plan (``bounding_memory``). Raise ServiceUnavailable if it cannot be read in time.
    """
    newest = plans.find_newest_plan(connection, mirror, about=key)
    if newest is None:
        return None
    if newest.size == 0:
        return ObjectDecision(newest.record)
    with bounding_memory(newest.size, principal) as is_large:
        read_decision = _read_in_process if is_large else _read_decision
        read = read_decision(connection, newest.record.digest, role, key)
    change, refusal, waiting, outcome = read["change"], read["refusal"], read["waiting"], read["outcome"]
    return ObjectDecision(
        newest.record, Change.from_json(change) if change else Refusal.from_json(refusal) if refusal else None,
        Waiting(*waiting) if waiting else None, ChangeOutcome(**outcome) if outcome else None, read["has_holds"],
    )  # fmt: skip


def _read_decision(connection: Connection, digest: str, role: Role, key: str) -> dict[str, Any]:
    """Read a plan, and return what ``ObjectDecision`` has, as JSON."""
    stored = plans.get_plan(connection, digest)
    body = stored.content
    read: dict[str, Any] = {"change": None, "refusal": None, "waiting": None, "outcome": None, "has_holds": False}
    # Only the decision about the object is converted: a plan may have a million of them.
    for number, change_json in enumerate(body["changes"]):
        if change_json[f"{role}_path"] == key:
            outcome = find_change_outcome(connection, digest, number, Change.from_json(change_json))
            read |= {"change": change_json, "outcome": outcome and asdict(outcome), "has_holds": bool(body.get("holds"))}
            plan = Plan.from_json(body)
            release = approvals.get_release(connection, stored.state, plan)
            waiting = next((item for item in release.waiting if item.number == number), None)
            if waiting is not None:
                read["waiting"] = [waiting.reason.value, str(waiting.hold), plan.release_command]
            return read
    return read | {"refusal": next((item for item in body["refusals"] if item[f"{role}_path"] == key), None)}


def _read_in_process(connection: Connection, digest: str, role: Role, key: str) -> dict[str, Any]:
    process = ChildProcess("federator.views.object_decisions")
    request = {
        "index": connection.engine.url.render_as_string(hide_password=False), "digest": digest, "role": role, "key": key,
    }  # fmt: skip
    try:
        return process.request(request, _MAX_SECONDS, _MAX_MEMORY)
    except (ChildMemoryExceeded, ChildProcessDied, TimeoutError):
        raise ServiceUnavailable(f"the plan {digest[:12]} could not be read in time", hint="federator plans show") from None
    finally:
        process.kill()


def _handle(request: Mapping[str, Any]) -> dict[str, Any]:
    with open_index(request["index"]).read() as connection:
        return _read_decision(connection, request["digest"], request["role"], request["key"])


if __name__ == "__main__":
    # This process handles one request. Its millions of objects have no cycles; searching for cycles took a third of the time.
    gc.disable()
    serve_requests(_handle)
