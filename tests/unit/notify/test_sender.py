"""The worker's notification sender: it runs beside the runs, survives database outages and ends when it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from federator.notify import NotificationSender, delivery, sender
from federator.settings import Settings
from federator.store import Index
from tests.unit.notify.conftest import failed
from tests.unit.notify.receiver import Receiver

PATIENCE = 120.0


def eventually(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


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
        eventually(broken.is_set)
        note(sqlite_index, failed("one"))
        eventually(lambda: len(receiver.received) == 1)
        note(sqlite_index, failed("two"))
        eventually(lambda: len(receiver.received) == 2)
    assert not [thread for thread in threading.enumerate() if thread.name == "notification sender"]
