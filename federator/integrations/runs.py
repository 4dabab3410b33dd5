"""Runs that another program requests and waits for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from federator.client import Client, ClientError
from federator.client.models import RunDetail


class RunNotAccepted(ClientError):
    """A run ended in a state that the caller does not accept, such as ``held`` or ``failed``."""


def run_and_wait(
    client: Client,
    kind: Literal["plan", "sync"],
    mirrors: Sequence[str] = (),
    *,
    accepted: Collection[str] = ("ok",),
    timeout: float = 3600.0,
) -> dict[str, Any]:
    """Request a run, wait at most ``timeout`` seconds and return its summary as JSON data. Empty ``mirrors`` means all.

    Raise RunNotAccepted for a state that is not in ``accepted``, with the digests of held plans.
    """
    run = client.wait_for_run(client.request_run(kind, mirrors=mirrors), timeout=timeout)
    summary = summarize(client, run)
    if run.state not in accepted:
        held = [plan["digest"][:12] for plan in summary["plans"] if plan["state"] == "held"]
        waits = f"; federator plans approve {' '.join(held)}" if held else ""
        raise RunNotAccepted(f"run {run.id} ({kind}) is {run.state}{f': {run.error}' if run.error else ''}{waits}")
    return summary


def summarize(client: Client, run: RunDetail) -> dict[str, Any]:
    """Return a run as JSON data: its id, state and number of changes that were done, and its plans."""
    plans = client.list_plans(run=run.id)
    return {
        "run": run.id,
        "state": run.state,
        "done": sum(change.state == "done" for change in run.changes),
        "plans": [
            {"digest": plan.digest, "mirror": plan.mirror, "state": plan.state, "changes": plan.changes, "refusals": plan.refusals}
            for plan in plans
        ],
    }  # fmt: skip
