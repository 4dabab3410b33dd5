"""Webhooks to a real server: signed, retried as the server requests, dead after the last attempt, no redirects."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from federator.connector import StateError
from federator.notify import DeliveryResult, deliver_due, delivery
from federator.notify.delivery import retry_delay
from federator.notify.webhook import parse_retry_after
from federator.settings import Settings
from federator.store import Index, notifications
from tests.unit.notify.conftest import failed
from tests.unit.notify.receiver import Receiver, receiving

Make = Callable[..., Settings]
Note = Callable[..., None]
DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "notifications.md"
SECRET = "s1gning-secret"


@pytest.fixture
def hook(receiver: Receiver, settings_of: Make, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    return settings_of(ops={"kind": "webhook", "url": f"{receiver.url}/hook", "secret": "${HOOK_SECRET}", "attempts": 3})


def only_row(index: Index) -> notifications.Notification:
    with index.read() as connection:
        (row,) = notifications.list_notifications(connection)
    return row


def is_genuine() -> Callable[..., bool]:
    """The function that the docs give to receivers."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    known: dict[str, Any] = {}
    exec(code, known)
    found: Callable[..., bool] = known["is_genuine"]
    return found


def test_the_docs_verify_what_is_sent(sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver) -> None:
    note(sqlite_index, failed("läke 😀"))
    assert deliver_due(sqlite_index, hook, at_once=True) == DeliveryResult(sent=1)
    (got,) = receiver.received
    check = is_genuine()
    assert check(SECRET, got.headers, got.body)
    assert not check("another", got.headers, got.body)
    assert not check(SECRET, got.headers, got.body.replace(b"error", b"info"))
    old = {**got.headers, "Federator-Timestamp": str(int(got.headers["Federator-Timestamp"]) - 400)}
    assert not check(SECRET, old, got.body)
    assert not check(SECRET, {}, got.body)
    body = json.loads(got.body)
    assert body["id"] == got.headers["Federator-Notification"] == only_row(sqlite_index).id
    documented = set(json.loads(re.sub("…", "", re.findall(r"```json\n(.*?)```", DOCS.read_text(), re.DOTALL)[0])))
    assert set(body) == documented


def test_later_means_later_and_the_server_says_when(
    sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver
) -> None:
    receiver.answers = [(503, {"Retry-After": "3600"})]
    note(sqlite_index, failed("lake"))
    assert deliver_due(sqlite_index, hook, at_once=True) == DeliveryResult(retrying=1)
    row = only_row(sqlite_index)
    assert (row.state, row.attempts, row.error) == ("queued", 1, "the server returned 503")
    assert row.due_at > time.time() + 3000
    assert deliver_due(sqlite_index, hook) == DeliveryResult()
    assert deliver_due(sqlite_index, hook, only=row.id) == DeliveryResult(sent=1)
    assert len(receiver.received) == 2


def test_attempts_end_and_a_person_retries_them(sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver) -> None:
    receiver.answers = [(500, {}), (429, {}), (502, {})]
    note(sqlite_index, failed("lake"))
    deliver_due(sqlite_index, hook, at_once=True)
    number = only_row(sqlite_index).id
    assert deliver_due(sqlite_index, hook, only=number) == DeliveryResult(retrying=1)
    assert deliver_due(sqlite_index, hook, only=number) == DeliveryResult(dead=1)
    row = only_row(sqlite_index)
    assert (row.state, row.attempts, row.error) == ("dead", 3, "the server returned 502; that was attempt 3 of 3")
    with sqlite_index.write() as connection:
        notifications.requeue_dead(connection, number[:20])
    assert deliver_due(sqlite_index, hook) == DeliveryResult(sent=1)
    assert {got.headers["Federator-Notification"] for got in receiver.received} == {number}
    with pytest.raises(StateError, match="is sent, not dead"), sqlite_index.write() as connection:
        notifications.requeue_dead(connection, number)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 413])
def test_a_refusal_is_final(sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver, status: int) -> None:
    receiver.answers = [(status, {})]
    note(sqlite_index, failed("lake"))
    assert deliver_due(sqlite_index, hook, at_once=True) == DeliveryResult(dead=1)
    assert only_row(sqlite_index).error == f"the server returned {status}"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver, status: int) -> None:
    with receiving() as elsewhere:
        receiver.answers = [(status, {"Location": f"{elsewhere.url}/stolen"})]
        note(sqlite_index, failed("lake"))
        assert deliver_due(sqlite_index, hook, at_once=True) == DeliveryResult(dead=1)
        assert elsewhere.received == []
    assert only_row(sqlite_index).error == f"the server returned {status}: redirects are not followed"


@pytest.mark.parametrize(
    ("response", "result", "error"),
    [
        (b"500 X\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", "retrying", "the server returned 500"),
        (b"502 X\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n", "retrying", "the server returned 502"),
        (b"400 X\r\nContent-Length: 500\r\n\r\nshort", "dead", "the server returned 400"),
        (b"503 X\r\nRetry-After: Fri, 31 Dec 2100 23:59:59 +99999999999999999\r\n\r\n", "retrying", "the server returned 503"),
        (b"302 X\r\nLocation: http://[\r\n\r\n", "dead", "the server returned 302: redirects are not followed"),
    ],
)
def test_a_response_that_cannot_be_read_counts_as_its_status(
    sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver, response: bytes, result: str, error: str
) -> None:
    receiver.raw_answers = [b"HTTP/1.1 " + response]
    note(sqlite_index, failed("lake"))
    assert deliver_due(sqlite_index, hook, at_once=True) == DeliveryResult(**{result: 1})
    row = only_row(sqlite_index)
    assert (row.attempts, row.error and row.error.removesuffix(": short")) == (1, error)


def test_a_receiver_that_sends_a_byte_now_and_then_does_not_hold_the_others_up(
    sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_EXCHANGE_SECONDS", 0.5)
    receiver.drips = threading.Event()
    note(sqlite_index, failed("lake"))
    try:
        assert deliver_due(sqlite_index, hook, at_once=True) == DeliveryResult(retrying=1)
    finally:
        receiver.drips.set()
    row = only_row(sqlite_index)
    assert (row.attempts, row.error) == (1, "the receiver of ops did not complete its response in time (call timeout=0.5 s)")


@pytest.mark.parametrize("token", ["pässwört 日本", "t0ken-1\nt0ken-2"])
def test_a_token_that_no_header_can_have_ends_one_message(
    sqlite_index: Index, settings_of: Make, note: Note, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", token)
    channels = settings_of(ops={"kind": "webhook", "url": receiver.url, "token": "${HOOK_TOKEN}"})
    note(sqlite_index, failed("lake"))
    assert deliver_due(sqlite_index, channels, at_once=True) == DeliveryResult(dead=1)
    assert only_row(sqlite_index).error == "the token contains characters that cannot be in a header"
    assert receiver.received == []


def test_netrc_is_not_asked(
    sqlite_index: Index, hook: Settings, note: Note, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login ann password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    note(sqlite_index, failed("lake"))
    deliver_due(sqlite_index, hook, at_once=True)
    assert "Authorization" not in receiver.received[0].headers


def test_silence_says_nothing_of_the_url(
    sqlite_index: Index, settings_of: Make, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("URL", "http://127.0.0.1:9/T000/B000/planted-path")
    note(sqlite_index, failed("lake"))
    deliver_due(sqlite_index, settings_of(chat={"kind": "slack", "url": "${URL}"}), at_once=True)
    assert only_row(sqlite_index).error == "no response (ConnectionError)"


def test_pauses_grow_and_obey() -> None:
    def none() -> float:
        return 0.0

    assert [retry_delay(n, None, none) for n in (1, 2, 3, 4)] == [10, 20, 40, 80]
    assert retry_delay(50, None, none) == 3600
    assert retry_delay(1, None, lambda: 1.0) == 15
    assert retry_delay(1, 7.0, none) == 7
    assert retry_delay(1, 10**9, none) == 86_400


def test_retry_after_is_a_number_or_a_date() -> None:
    assert parse_retry_after({"Retry-After": " 12 "}) == 12
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    retry_after = parse_retry_after({"Retry-After": soon})
    assert retry_after is not None
    assert 3000 < retry_after <= 3600
    assert parse_retry_after({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert [parse_retry_after({"Retry-After": text}) for text in ("", "soon", "-5")] == [None, None, None]


def test_slack_gets_blocks_and_a_text_without_the_federators_markup(
    sqlite_index: Index, settings_of: Make, note: Note, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("URL", receiver.url)
    note(
        sqlite_index, failed("<!channel> *lake*", "a & b\nover `two` lines"), *(failed(f"s{n}", "x" * 5000) for n in range(30))
    )
    assert deliver_due(sqlite_index, settings_of(chat={"kind": "slack", "url": "${URL}"}), at_once=True) == DeliveryResult(
        sent=1
    )
    payload = json.loads(receiver.bodies[0])
    assert payload["text"] == ":x: error: 31 source failed (test)"
    header, section, context = payload["blocks"]
    assert (header["type"], header["text"]["type"]) == ("header", "plain_text")
    lines = section["text"]["text"].splitlines()
    assert lines[0] == ":x: *&lt;!channel&gt; ∗lake∗* source failed: a &amp; b over 'two' lines"
    assert len(section["text"]["text"]) < 3000
    assert context["elements"][0]["text"].startswith(f"and {31 - len(lines)} more · ")
