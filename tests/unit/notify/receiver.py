"""A real HTTP server that records requests and responds as configured by a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """A request; its headers' names are in title case."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """``answers`` are (status, headers) for the next requests; after them all are taken with 200.

    ``raw_answers`` are whole responses as bytes, which come first. With ``drips``, each response is a header that grows by a byte now
    and then, until this is set.
    """

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    raw_answers: list[bytes] = field(default_factory=list)
    drips: threading.Event | None = None

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.received]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.received.append(Received(self.path, {name.title(): value for name, value in self.headers.items()}, body))
            if receiver.drips is not None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                with suppress(OSError):
                    while not receiver.drips.wait(0.05):
                        self.wfile.write(b"a")
                self.close_connection = True
                return
            if receiver.raw_answers:
                self.wfile.write(receiver.raw_answers.pop(0))
                self.close_connection = True
                return
            status, headers = receiver.answers.pop(0) if receiver.answers else (200, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
