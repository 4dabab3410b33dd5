"""Limits on slow and large requests: size and time of the head, progress of bodies and responses, and the number of connections.

The head of a request is its request line and its headers. The limits apply to the connection itself: before and after authentication,
and whether or not the route reads the body.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from contextlib import suppress
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from federator.api.problems import problem_response
from federator.settings.sections import ServeSettings

#: request line and headers of one request, in bytes; an object id has up to 8,000 characters
MAX_HEAD_BYTES = 32 * 1024
#: time to send a head, from its first byte; the first head of a connection counts from the connection
HEAD_SECONDS = 10.0
#: time that a connection stays open without a request. Clients and proxies keep an unused one for up to 90 s; if the service closed it
#: first, it could break a request that is on its way, and a POST is not sent again.
IDLE_SECONDS = 120
_ABSOLUTE_TARGET = re.compile(rb"[a-z][a-z0-9+.-]*://([^/?#]*)", re.IGNORECASE)
#: maximum number of open connections of the process
MAX_CONNECTIONS = 512
#: requests of a connection that wait for the ones before them: one packet of a client has thousands
MAX_PIPELINED = 16
#: ASGI extension of a request: a function that closes its connection at once
CLOSE = "federator.close"
#: bytes of responses in the memory of the process that their clients have not read
MAX_UNREAD_BYTES = 256 << 20


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the limits.

    A request without exactly one Host header is answered with 400, except one of HTTP/1.0 without any. The host of an absolute target
    replaces that of the header.

    A head that is too large is answered with 431, and so are trailers and extensions of chunks. Trailers are ignored. A connection
    whose head is not complete in time is closed. If there are too many connections, one of the most numerous kind is closed, so that
    clients that send complete requests and read are served while others only hold connections open: the one that has waited longest
    for the end of its head, or whose client has not read for the longest time, or whose body has taken longest, or that has been
    without a request for the longest time. If there is none of them, the new connection is answered with 503.

    A body must end, or progress by ``body_progress`` bytes, in each period of ``body_seconds``. Otherwise the request is answered with
    408, or the connection is closed if its response has begun. Time in which the service itself does not read does not count.

    A client must read a response, or ``body_progress`` bytes of it, in each period of ``response_seconds``. Otherwise the connection is
    closed. If unread responses take too much memory together, connections of the principal with most of it are closed, first the one
    whose client has not read for the longest time.

    Up to ``MAX_PIPELINED`` requests of a connection wait. Later ones are ignored, and it is closed after the last response.
    """

    body_seconds: ClassVar[float] = ServeSettings().body_timeout
    body_progress: ClassVar[int] = ServeSettings().body_progress
    response_seconds: ClassVar[float] = ServeSettings().response_timeout

    #: the timers of the connections that wait for the end of a head, in the order in which they began
    _waiting_for_head: ClassVar[dict[LimitedHttpProtocol, asyncio.TimerHandle]] = {}
    #: the timers of the connections whose clients do not read, in the order in which they stopped
    _unread: ClassVar[dict[LimitedHttpProtocol, asyncio.TimerHandle]] = {}
    #: the timers of the connections whose bodies have not ended, in the order in which these began
    _unfinished_bodies: ClassVar[dict[LimitedHttpProtocol, asyncio.TimerHandle]] = {}
    #: the timers of the connections without a request, in the order in which their last responses were read
    _idle: ClassVar[dict[LimitedHttpProtocol, asyncio.TimerHandle]] = {}

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.timeout_keep_alive = IDLE_SECONDS
        #: bytes of the present head; in a body, those received after its last content: extensions of chunks, or trailers
        self._head_bytes = 0
        self._is_reading_head = True
        self._is_reading_body = False
        self._body_bytes = 0
        self._was_reading_paused = False
        self._unread_bytes = 0
        self._is_pipeline_full = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        # ``pause_writing`` is called as soon as the client's window is full, also at the end of a response.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > MAX_CONNECTIONS:
            # Close the oldest connection of the most numerous kind. Clients that reconnect again and again to send slow bodies then
            # close each other's connections, not those that others have just opened.
            most_numerous = max(self._waiting_for_head, self._unread, self._unfinished_bodies, self._idle, key=len)
            longest_waiting = next(iter(most_numerous), None)
            if longest_waiting is None:
                self._refuse("503 Service Unavailable")
                return
            longest_waiting.transport.abort()
            longest_waiting._stop_waiting()
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._idle.pop(self, None)
        self._start_unread_timer()
        self._limit_unread()

    def resume_writing(self) -> None:
        _stop_timer(self._unread, self)
        super().resume_writing()
        self._note_idle()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._is_pipeline_full:
            return
        if self._is_reading_head:
            self._start_head_timer()
        self._head_bytes += len(data)
        super().data_received(data)
        # The counter is read again, because the parser may have completed the head with this data.
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()
        if self.transport.is_closing():
            return
        # The timer starts only here: a body that has arrived completely with its head needs none.
        if self._is_reading_body and self not in self._unfinished_bodies:
            self._start_body_timer()
        # The body of a request that was answered before its end: uvicorn stops its timer when data arrives, and starts no other.
        elif (
            self._is_reading_head
            and self not in self._waiting_for_head
            and self.cycle is not None
            and self.cycle.response_complete
        ):
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
            self._note_idle()

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser reports trailers like headers, and the request has begun.
        if self._is_reading_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        _stop_timer(self._waiting_for_head, self)
        self._is_reading_head, self._head_bytes = False, 0
        hosts = sum(name == b"host" for name, _ in self.headers)
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refuse_head()
        elif hosts > 1 or (hosts == 0 and self.parser.get_http_version() != "1.0"):
            # RFC 9112, 3.2: proxies and this service could act on different ones.
            path = self.url.partition(b"?")[0].decode("ascii", "replace")
            self._refuse_with_problem(path, 400, "Bad request", f"a request has one Host header, not {hosts}")
        elif self._is_pipeline_full or len(self.pipeline) >= MAX_PIPELINED:
            # The connection ends with the response to the newest request that waits.
            self._is_pipeline_full, self.cycle.keep_alive = True, False
        else:
            self._use_host_of_target()
            scope: Any = self.scope
            scope["extensions"] = {CLOSE: self.transport.abort}
            super().on_headers_complete()
        # Only now: ``_refuse_head`` of this head must not take the response to the previous request for its own.
        self._is_reading_body = True

    def _use_host_of_target(self) -> None:
        """Replace the Host header by the host of a target such as ``http://host/path`` (RFC 9112, 3.2.2), so that it is checked."""
        if (target := _ABSOLUTE_TARGET.match(self.url)) is not None:
            self.headers[:] = [header for header in self.headers if header[0] != b"host"] + [(b"host", target[1])]

    def on_body(self, body: bytes) -> None:
        if not (self.transport.is_closing() or self._is_pipeline_full):
            super().on_body(body)
            self._head_bytes = 0
            self._body_bytes += len(body)
            self._was_reading_paused |= self.flow.read_paused

    def on_message_complete(self) -> None:
        self._is_reading_head, self._is_reading_body = True, False
        _stop_timer(self._unfinished_bodies, self)
        if not (self.transport.is_closing() or self._is_pipeline_full):
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_idle()

    def _note_idle(self) -> None:
        # A response has ended when the app has written it, also if the client still reads it.
        if self.timeout_keep_alive_task is not None and self not in self._unread:
            self._idle[self] = self.timeout_keep_alive_task

    def _unset_keepalive_if_required(self) -> None:
        # uvicorn calls this when data arrives, and when a response has ended.
        self._idle.pop(self, None)
        super()._unset_keepalive_if_required()

    def _start_head_timer(self) -> None:
        if self not in self._waiting_for_head:
            self._waiting_for_head[self] = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        _stop_timer(self._waiting_for_head, self)
        _stop_timer(self._unread, self)
        _stop_timer(self._unfinished_bodies, self)
        _stop_timer(self._idle, self)

    def _start_body_timer(self) -> None:
        self._body_bytes, self._was_reading_paused = 0, self.flow.read_paused
        # A body that makes progress keeps its place.
        self._unfinished_bodies[self] = self.loop.call_later(self.body_seconds, self._check_body_progress)

    def _check_body_progress(self) -> None:
        # The client cannot send while the service does not read, or before the service asks for the body.
        is_delay_of_service = self._was_reading_paused or self.flow.read_paused or self.cycle.waiting_for_100_continue
        if is_delay_of_service or self._body_bytes >= self.body_progress:
            self._start_body_timer()
            return
        _stop_timer(self._unfinished_bodies, self)
        if self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse_late_body()

    def _refuse_late_body(self) -> None:
        path = self.scope["raw_path"].decode("ascii", "replace")
        detail = f"the request body brought less than {self.body_progress} bytes in {self.body_seconds:g} s"
        # The route still waits for the body. As after a disconnect, it stops waiting, and its response is not sent.
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        self._refuse_with_problem(path, 408, "Request timeout", detail)

    def _start_unread_timer(self) -> None:
        self._unread_bytes = self._count_unread()
        self._unread[self] = self.loop.call_later(self.response_seconds, self._check_unread)

    @property
    def _principal(self) -> object:
        """The principal of the newest request; None before it is known."""
        scope: Any = self.scope
        return scope.get("principal") if scope else None

    def _limit_unread(self) -> None:
        sizes = {connection: connection.transport.get_write_buffer_size() for connection in self._unread}
        while len(sizes) > 1 and sum(sizes.values()) > MAX_UNREAD_BYTES:
            by_principal = Counter[object]()
            for connection, size in sizes.items():
                by_principal[connection._principal] += size
            greedy = by_principal.most_common(1)[0][0]
            longest_unread = next(each for each in sizes if each._principal == greedy)
            del sizes[longest_unread]
            longest_unread.transport.abort()
            longest_unread._stop_waiting()

    def _count_unread(self) -> int:
        """Return the bytes of the response that the client has not received. The system has a part of them, and counts it on Linux."""
        queued = bytearray(4)
        with suppress(OSError):
            ioctl(self.transport.get_extra_info("socket").fileno(), TIOCOUTQ, queued)
        return self.transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)

    def _check_unread(self) -> None:
        read = self._unread_bytes - self._count_unread()
        _stop_timer(self._unread, self)
        if read >= self.body_progress:
            self._start_unread_timer()
        else:
            self.transport.abort()

    def _refuse_with_problem(self, path: str, status: int, title: str, detail: str) -> None:
        """Send a problem without the app, and close the connection."""
        response = problem_response(path, status, title, detail, {"Connection": "close"})
        head = b"".join(b"%s: %s\r\n" % header for header in response.raw_headers)
        self.transport.write(b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, title.encode(), head, bytes(response.body)))
        self.transport.close()

    def _refuse_head(self) -> None:
        """Answer a head, or what a body has besides its content, with 431. Close the connection if its response has begun."""
        if self._is_reading_body and self.cycle is not None and self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse("431 Request Header Fields Too Large")

    def _refuse(self, status: str) -> None:
        """Send an empty response with a status line such as ``503 Service Unavailable``, and close the connection."""
        self.transport.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        self.transport.close()


def _stop_timer(timers: dict[LimitedHttpProtocol, asyncio.TimerHandle], connection: LimitedHttpProtocol) -> None:
    if (timer := timers.pop(connection, None)) is not None:
        timer.cancel()


def build_limited_protocol(settings: ServeSettings) -> type[LimitedHttpProtocol]:
    """Return the protocol class with the configured limits. uvicorn creates an instance for each connection."""
    limits = {
        "body_seconds": settings.body_timeout, "body_progress": settings.body_progress, "response_seconds": settings.response_timeout
    }  # fmt: skip
    return type("ConfiguredHttpProtocol", (LimitedHttpProtocol,), limits)
