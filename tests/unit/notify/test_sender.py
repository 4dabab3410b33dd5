"""The worker's notification sender: it runs beside the runs, survives database outages and ends when it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from federator.notify import NotificationSender, delivery, sender
from federator.settings import Settings
from federator.store import Index
from tests.fixtures.waiting import wait_until
from tests.unit.notify.conftest import failed
from tests.unit.notify.receiver import Receiver


def test_sends_beside_the_runs_and_outlives_what_goes_wrong(
    sqlite_index: Index,
    settings_of: Callable[..., Settings],
    note: Callable[..., None],
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "_POLL_SECONDS", 0.02)
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url, "group_wait": 0, "group_by": ["source"]})
    real, broken = delivery.deliver_due, threading.Event()

    def deliver(index: Index, settings: Settings) -> object:
        if not broken.is_set():
            broken.set()
            raise RuntimeError("a message that nobody foresaw")
        return real(index, settings)

    monkeypatch.setattr(sender, "deliver_due", deliver)
    with NotificationSender(settings, sqlite_index).running():
        wait_until(broken.is_set)
        note(sqlite_index, failed("one"))
        wait_until(lambda: len(receiver.received) == 1)
        note(sqlite_index, failed("two"))
        wait_until(lambda: len(receiver.received) == 2)
    assert not [thread for thread in threading.enumerate() if thread.name == "notification sender"]
