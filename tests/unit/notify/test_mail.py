"""E-mail through a real SMTP server with TLS and a password."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from federator.notify import DeliveryResult, deliver_due
from federator.settings import Settings
from federator.store import Index, notifications
from tests.fixtures.certificates import Certificates, make
from tests.unit.notify.conftest import failed

Make = Callable[..., Settings]
Note = Callable[..., None]
PASSWORD = "mail-passw0rd"


@dataclass
class Mailbox:
    mails: list[EmailMessage] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    refuses: str = ""

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if self.refuses:
            return self.refuses
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.encrypted.append(session.ssl is not None or bool(server.transport.get_extra_info("cipher")))
        return "250 OK"


def check_password(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    good = mechanism in ("LOGIN", "PLAIN") and (data.login, data.password) == (b"federator", PASSWORD.encode())
    return AuthResult(success=good, handled=good)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


@contextmanager
def serving(mailbox: Mailbox, certificates: Certificates, kind: str) -> Iterator[int]:
    """A server in a thread of its own; the system chooses its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server)
    with_password = {"auth_required": True, "authenticator": check_password}
    options: dict[str, dict[str, Any]] = {
        "starttls": {"tls_context": context, "require_starttls": True, **with_password},
        "tls": {"auth_require_tls": False, **with_password},
        "plain": {},
    }
    loop = asyncio.new_event_loop()

    def build_server() -> SMTP:
        return SMTP(mailbox, hostname="localhost", loop=loop, **options[kind])

    server = loop.run_until_complete(loop.create_server(build_server, "127.0.0.1", 0, ssl=context if kind == "tls" else None))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


@pytest.fixture
def channel(settings_of: Make, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)

    def make_settings(port: int, **more: Any) -> Settings:
        own = {
            "kind": "smtp", "host": "localhost", "port": port, "from": "federator@example.com",
            "to": ["a@example.com", "b@example.com"],
            "username": "federator", "password": "${MAIL_PASSWORD}", "ca": certificates.ca, **more,
        }  # fmt: skip
        return settings_of(mail={key: value for key, value in own.items() if value is not None})

    return make_settings


def state_and_error(index: Index) -> str:
    with index.read() as connection:
        (row,) = notifications.list_notifications(connection)
    return f"{row.state}: {row.error}"


@pytest.mark.parametrize("tls", ["starttls", "tls"])
@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # TLS from the first byte is TLS too
def test_a_notification_arrives_over_tls_with_a_password(
    sqlite_index: Index, channel: Callable[..., Settings], certificates: Certificates, note: Note, tls: str
) -> None:
    mailbox = Mailbox()
    note(sqlite_index, *(failed(f"läke{n}", "does not answer\nBcc: everybody@example.com") for n in range(12)))
    with serving(mailbox, certificates, tls) as port:
        assert deliver_due(sqlite_index, channel(port, tls=tls), at_once=True) == DeliveryResult(sent=1)
    (mail,) = mailbox.mails
    assert mailbox.encrypted == [True]
    assert mail["Subject"] == "[federator] error: 12 source failed (test)"
    assert mail["To"] == "a@example.com, b@example.com"
    assert mail["Bcc"] is None
    text = mail.get_content().replace("\r\n", "\n")
    assert "- source failed: läke0\n  does not answer Bcc: everybody@example.com\n  source läke0, 20" in text
    assert "- and 2 more" in text
    with sqlite_index.read() as connection:
        (row,) = notifications.list_notifications(connection)
    assert mail["Message-ID"] == f"<{row.id}@federator.invalid>"


@pytest.mark.parametrize(
    ("served", "more", "expected"),
    [
        ("starttls", {"password": "${WRONG}"}, "dead: the server returned 535 (SMTPAuthenticationError)"),
        ("starttls", {"ca": None}, "queued: the server's certificate is not accepted, or it does not support TLS"),
        ("starttls", {"password": "${UMLAUT}"}, "dead: username or password is not ASCII, or host is not a host name"),
        ("starttls", {"host": "smtp..invalid"}, "dead: username or password is not ASCII, or host is not a host name"),
        ("plain", {}, "dead: the server does not support STARTTLS, or no known authentication method"),
        ("plain", {"tls": "none"}, "dead: the server does not support STARTTLS, or no known authentication method"),
    ],
)
def test_an_error_is_recorded_without_the_password(
    sqlite_index: Index, channel: Callable[..., Settings], certificates: Certificates, note: Note, monkeypatch: pytest.MonkeyPatch,
    served: str, more: dict[str, Any], expected: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("WRONG", "wr0ng-password")
    monkeypatch.setenv("UMLAUT", "schlüssel-für-post")
    mailbox = Mailbox()
    note(sqlite_index, failed("lake"))
    with serving(mailbox, certificates, served) as port:
        deliver_due(sqlite_index, channel(port, **more), at_once=True)
    assert state_and_error(sqlite_index) == expected
    assert mailbox.mails == []


@pytest.mark.parametrize(("refuses", "state"), [("452 full", "queued"), ("550 nobody", "dead")])
def test_a_temporary_refusal_is_tried_again_and_a_permanent_one_is_not(
    sqlite_index: Index, channel: Callable[..., Settings], certificates: Certificates, note: Note, refuses: str, state: str
) -> None:
    note(sqlite_index, failed("lake"))
    with serving(Mailbox(refuses=refuses), certificates, "starttls") as port:
        deliver_due(sqlite_index, channel(port), at_once=True)
    assert state_and_error(sqlite_index) == f"{state}: the server refused all recipients ({refuses[:3]})"
