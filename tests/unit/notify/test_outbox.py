"""From notices to notifications on both databases: grouped, counted, and not lost before delivery."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict

import pytest

from federator.model.notices import Notice, NoticeEvent, Severity
from federator.notify import DeliveryResult, deliver_due
from federator.notify import send_test as try_channel
from federator.notify.delivery import DELIVERY_LEASE, queue_notifications
from federator.settings import Settings
from federator.store import Index, notices, notifications
from federator.store.leases import acquire_lease
from tests.unit.notify.conftest import failed
from tests.unit.notify.receiver import Receiver

Make = Callable[..., Settings]
Note = Callable[..., None]


def rows(index: Index) -> list[dict[str, object]]:
    with index.read() as connection:
        return [asdict(item) for item in reversed(notifications.list_notifications(connection))]


def test_a_transaction_that_fails_leaves_no_notice(index: Index) -> None:
    def breaks() -> None:
        with index.write() as connection:
            notices.add_notices(connection, [failed("lake")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        breaks()
    with index.read() as connection:
        assert not notices.has_pending_notices(connection)


def test_a_thousand_failures_are_one_message(index: Index, settings_of: Make, note: Note, receiver: Receiver) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url})
    writes = [Notice(NoticeEvent.WRITE_FAILED, f"aws$s$t{n:04}", "denied", source="aws", mirror="m") for n in range(1200)]
    note(index, *writes, failed("lake"))
    assert deliver_due(index, settings, at_once=True) == DeliveryResult(sent=2)
    many, one = sorted((json.loads(body) for body in receiver.bodies), key=lambda body: -body["events"])
    assert (many["events"], many["counts"], many["more"]) == (1200, {"write_failed": 1200}, 1190)
    assert [notice["subject"] for notice in many["first"]] == [f"aws$s$t{n:04}" for n in range(10)]
    assert many["title"] == "error: 1,200 write failed (test)"
    assert (one["events"], one["title"]) == (1, "error: source failed: lake (test)")


def test_notices_join_a_group_that_still_waits(index: Index, settings_of: Make, note: Note, receiver: Receiver) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url, "group_wait": "1h"})
    note(index, *(failed(f"s{n}") for n in range(7)))
    assert deliver_due(index, settings) == DeliveryResult()
    note(index, *(failed(f"s{n}", severity=Severity.CRITICAL) for n in range(7, 14)))
    assert deliver_due(index, settings) == DeliveryResult()
    (row,) = rows(index)
    assert (row["events"], row["severity"], row["counts"]) == (14, "critical", {"source_failed": 14})
    assert [first["subject"] for first in row["first"]] == [f"s{n}" for n in range(10)]  # type: ignore[attr-defined]
    assert receiver.received == []
    # Its hour is over: what comes now begins a message of its own.
    queue_notifications(index, settings, time.time() + 3700)
    note(index, failed("late"))
    queue_notifications(index, settings, time.time() + 3700)
    assert [row["events"] for row in rows(index)] == [14, 1]


def test_rules_choose_the_channels(index: Index, settings_of: Make, note: Note) -> None:
    def channel(**rules: object) -> dict[str, object]:
        return {"kind": "webhook", "url": "http://127.0.0.1:9/", "group_wait": "1h", "group_by": ["event", "source"], **rules}

    settings = settings_of(
        everything=channel(min_severity="info"),
        urgent=channel(min_severity="critical"),
        plans=channel(events=["plan_held"]),
        lakes=channel(sources=["re:lake_.*"]),
        nightly=channel(mirrors=["nightly"], min_severity="info"),
    )
    note(
        index,
        failed("lake_hive"),
        failed("aws"),
        Notice(NoticeEvent.PLAN_HELD, "plan 1", "too many", mirror="nightly"),
        Notice(NoticeEvent.PLAN_DECIDED, "plan 1", "approved", mirror="hourly"),
        Notice(NoticeEvent.AUDIT_UNSEALED, "audit", "the anchor is away"),
    )
    deliver_due(index, settings)
    subjects_by_channel: dict[str, list[str]] = {}
    for row in rows(index):
        subjects_by_channel.setdefault(str(row["channel"]), []).append(str(row["first"][0]["subject"]))  # type: ignore[index]
    assert {name: sorted(subjects) for name, subjects in subjects_by_channel.items()} == {
        "everything": ["audit", "aws", "lake_hive", "plan 1", "plan 1"],
        "urgent": ["audit"],
        "plans": ["plan 1"],
        "lakes": ["audit", "lake_hive", "plan 1"],
        "nightly": ["audit", "aws", "lake_hive", "plan 1"],
    }


def test_without_channels_nothing_piles_up(index: Index, settings_of: Make, note: Note) -> None:
    note(index, failed("lake"))
    deliver_due(index, settings_of())
    with index.read() as connection:
        assert not notices.has_pending_notices(connection)
    assert rows(index) == []


def test_a_process_that_dies_after_sending_sends_again_under_the_same_id(
    index: Index, settings_of: Make, note: Note, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url})
    note(index, failed("lake"))

    def dies(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(notifications, "record_attempt", dies)
        with pytest.raises(SystemExit):
            deliver_due(index, settings, at_once=True)
    assert deliver_due(index, settings) == DeliveryResult(sent=1)
    first, second = receiver.received
    assert first.headers["Federator-Notification"] == second.headers["Federator-Notification"] == rows(index)[0]["id"]
    assert first.body == second.body


def test_a_process_that_dies_while_grouping_loses_and_doubles_nothing(
    index: Index, settings_of: Make, note: Note, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url})
    note(index, failed("lake"), failed("aws"))

    def dies(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(notices, "delete_notices", dies)
        with pytest.raises(SystemExit):
            deliver_due(index, settings, at_once=True)
    assert rows(index) == []
    assert deliver_due(index, settings, at_once=True) == DeliveryResult(sent=1)
    assert [row["events"] for row in rows(index)] == [2]


def test_one_process_sends_at_a_time(index: Index, settings_of: Make, note: Note, receiver: Receiver) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url})
    note(index, failed("lake"))
    with acquire_lease(index, DELIVERY_LEASE):
        assert deliver_due(index, settings, at_once=True) == DeliveryResult()
    assert receiver.received == []
    assert deliver_due(index, settings, at_once=True) == DeliveryResult(sent=1)


def test_a_channel_that_was_removed_leaves_its_messages_dead(
    index: Index, settings_of: Make, note: Note, receiver: Receiver
) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url, "group_wait": "1h"})
    note(index, failed("lake"))
    deliver_due(index, settings)
    note(index, failed("aws"))
    deliver_due(index, settings_of())
    (row,) = rows(index)
    assert (row["state"], row["error"]) == ("dead", "the channel is no longer configured")


def test_one_receiver_that_is_away_does_not_hold_the_others(
    index: Index, settings_of: Make, note: Note, receiver: Receiver
) -> None:
    settings = settings_of(
        away={"kind": "webhook", "url": "http://127.0.0.1:9/"}, there={"kind": "webhook", "url": receiver.url},
    )  # fmt: skip
    note(index, failed("lake"), Notice(NoticeEvent.AUDIT_UNSEALED, "audit", "the anchor is away"))
    assert deliver_due(index, settings, at_once=True) == DeliveryResult(sent=2, retrying=1)
    states = {(row["channel"], row["state"], row["attempts"]) for row in rows(index)}
    # Its second message was not tried: it would only have waited for the same silence.
    assert states == {("there", "sent", 1), ("away", "queued", 1), ("away", "queued", 0)}


def test_old_ones_are_removed(index: Index, settings_of: Make, note: Note, receiver: Receiver) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url})
    note(index, failed("lake"))
    deliver_due(index, settings, at_once=True)
    with index.write() as connection:
        assert notifications.delete_finished(connection, sent_before=time.time() - 60, dead_before=time.time() + 60) == 0
        assert notifications.delete_finished(connection, sent_before=time.time() + 60, dead_before=0.0) == 1
    assert rows(index) == []


def test_a_test_is_sent_at_once_whatever_the_rules(index: Index, settings_of: Make, receiver: Receiver) -> None:
    settings = settings_of(ops={"kind": "webhook", "url": receiver.url, "group_wait": "1h", "min_severity": "critical"})
    row = try_channel(index, settings, "ops")
    assert (row.state, row.attempts) == ("sent", 1)
    (body,) = map(json.loads, receiver.bodies)
    assert body["title"] == "info: test: test (test)"
