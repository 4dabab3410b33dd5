"""Limits on how a client sends: size and time of a request's head, progress of its body, and the number of connections.

They hold on the connection itself, before and after authentication, whether or not the route reads the body.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from federator.api.problems import problem_response
from federator.settings.sections import ServeSettings

#: request line and headers of one request, in bytes; an object id has up to 8,000 characters
MAX_HEAD_BYTES = 32 * 1024
#: from the first byte of a request to the end of its headers, and from a connection to its first request
HEAD_SECONDS = 10.0
MAX_CONNECTIONS = 512


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the limits.

    Too large a head is answered with 431, and a connection whose head is late is closed. If there are too many connections, the one
    that has waited longest for the end of its head is closed: callers who send whole requests are served while others hold
    connections open. The new connection is answered with 503 only if no other one waits.

    A body must end, or bring ``body_progress`` bytes, within each ``body_seconds``. Otherwise the request is answered with 408, or
    the connection is closed if its response has begun. Time in which the service itself does not read does not count.
    """

    body_seconds: ClassVar[float] = ServeSettings().body_timeout
    body_progress: ClassVar[int] = ServeSettings().body_progress

    #: the connections that wait for the end of a head, the longest first
    _waiting: ClassVar[dict[LimitedHttpProtocol, None]] = {}

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._reads_head = True
        self._head_timer: asyncio.TimerHandle | None = None
        self._reads_body = False
        self._body_timer: asyncio.TimerHandle | None = None
        self._body_bytes = 0
        self._was_paused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            longest = next(iter(self._waiting), None)
            if longest is None:
                self._refuse("503 Service Unavailable")
                return
            longest.transport.abort()
            longest._stop_head_timer()
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_body_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._reads_head:
            self._start_head_timer()
            self._head_bytes += len(data)
        super().data_received(data)
        # The parser may have read a whole head, and the beginning of a body, out of the last data.
        if self._reads_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse("431 Request Header Fields Too Large")
        # Started here, so that a body that arrives with its head costs no timer.
        if self._reads_body and self._body_timer is None and not self.transport.is_closing():
            self._start_body_timer()

    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        self._reads_head, self._head_bytes = False, 0
        self._reads_body = True
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refuse("431 Request Header Fields Too Large")
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)
            self._body_bytes += len(body)
            self._was_paused |= self.flow.read_paused

    def on_message_complete(self) -> None:
        self._reads_head, self._reads_body = True, False
        self._stop_body_timer()
        if not self.transport.is_closing():
            super().on_message_complete()

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
            self._waiting[self] = None

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
            del self._waiting[self]

    def _start_body_timer(self) -> None:
        self._body_bytes, self._was_paused = 0, self.flow.read_paused
        self._body_timer = self.loop.call_later(self.body_seconds, self._check_body_progress)

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _check_body_progress(self) -> None:
        self._body_timer = None
        # The client cannot send while the service does not read, or before the service asks for the body.
        is_own_delay = self._was_paused or self.flow.read_paused or self.cycle.waiting_for_100_continue
        if is_own_delay or self._body_bytes >= self.body_progress:
            self._start_body_timer()
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse_late_body()

    def _refuse_late_body(self) -> None:
        path = self.scope["raw_path"].decode("ascii", "replace")
        detail = f"the request body brought less than {self.body_progress} bytes in {self.body_seconds:g} s"
        response = problem_response(path, 408, "Request timeout", detail, {"Connection": "close"})
        # The route is still waiting for the body: it gets a disconnect, and what it responds to that is not sent.
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
        self.transport.write(b"HTTP/1.1 408 Request Timeout\r\n%s\r\n%s" % (head, bytes(response.body)))
        self.transport.close()

    def _refuse(self, status: str) -> None:
        self.transport.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        self.transport.close()


def limited_protocol(settings: ServeSettings) -> type[LimitedHttpProtocol]:
    """Return the protocol with the configured limits."""
    limits = {"body_seconds": settings.body_timeout, "body_progress": settings.body_progress}
    return type("ConfiguredHttpProtocol", (LimitedHttpProtocol,), limits)
