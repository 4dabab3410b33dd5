"""Notifications over HTTP: pages, filters, and retries of dead ones; they need the whole tree in scope."""

from __future__ import annotations

from federator.store import Index, notifications
from federator.store.notifications import DeliveryAttempt
from tests.unit.api.conftest import Api

FIRST = {
    "event": "source_failed", "severity": "error", "at": 1.5, "subject": "lake", "message": "away", "source": "lake", "mirror": None,
    "run": None,
}  # fmt: skip


def fill(index: Index, number: int, state: str = "queued") -> list[str]:
    body = {"group": {"event": "source_failed"}, "counts": {"source_failed": 1}, "first": [FIRST]}
    created = []
    with index.write() as connection:
        for _ in range(number):
            created.append(
                notifications.queue_notification(connection, "ops", "{}", severity="error", events=1, body=body, due_at=0.0)
            )
            if state != "queued":
                notifications.record_attempt(connection, created[-1], DeliveryAttempt(state, "it answered 400"))
    return created


def test_pages_newest_first(api: Api, index: Index) -> None:
    created = fill(index, 5)
    first = api.json("/api/v1/notifications?limit=3")
    rest = api.json(f"/api/v1/notifications?limit=3&cursor={first['next']}")
    assert sorted(row["id"] for row in first["notifications"] + rest["notifications"]) == sorted(created)
    assert [row["id"] for row in first["notifications"]] == sorted((r["id"] for r in first["notifications"]), reverse=True)
    assert rest["next"] is None
    row = first["notifications"][0]
    assert (row["state"], row["events"], row["first"][0]["at"]) == ("queued", 1, "1970-01-01T00:00:01.500000Z")
    assert api.get(f"/api/v1/notifications?limit=3&state=dead&cursor={first['next']}").status_code == 400
    assert api.get("/api/v1/notifications?state=lost").status_code == 400


def test_a_dead_one_is_sent_again(api: Api, index: Index) -> None:
    (number,) = fill(index, 1, "dead")
    (row,) = api.json("/api/v1/notifications?state=dead&channel=ops")["notifications"]
    assert (row["id"], row["error"], row["attempts"]) == (number, "it answered 400", 1)
    response = api.post(f"/api/v1/notifications/{number}/retry")
    assert response.status_code == 202
    assert (response.json()["state"], response.json()["attempts"]) == ("queued", 0)
    assert api.post(f"/api/v1/notifications/{number}/retry").status_code == 409
    assert api.post("/api/v1/notifications/nothing/retry").status_code == 404
