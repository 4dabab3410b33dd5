"""The service in one process: HTTP, the worker, or both, until SIGINT or SIGTERM."""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

import uvicorn

from federator import logs
from federator.api.app import create_app
from federator.connector import ConfigError, StateError
from federator.schedule import Worker
from federator.settings import Settings
from federator.sync import Federator

ROLES = ("all", "api", "worker")
# How long answers in flight may take to end, and how long a write to a catalog that is under way.
_HTTP_GRACE = 10
_WORKER_GRACE = 75.0
_log = logs.get(__name__)


def serve(
    settings: Settings, *, host: str | None = None, port: int | None = None, role: str = "all", log_format: str | None = None
) -> None:
    """Serves until SIGINT or SIGTERM; a second signal does not wait for what is under way.

    Raises ConfigError and StateError for what keeps it from starting.
    """
    if role not in ROLES:
        raise ConfigError(f"there is no role {role!r}", hint=f"one of {', '.join(ROLES)}")
    chosen = {"host": host or settings.serve.host, "port": settings.serve.port if port is None else port}
    settings = settings.model_copy(update={"serve": settings.serve.model_copy(update=chosen)})
    with _own_stderr() as stream:
        chosen_format, level = settings.logs.format, settings.logs.level
        as_json = log_format == "json" if log_format is not None else None
        logs.configure(json=as_json, stream=stream, default_format=chosen_format, default_level=level)
        if role == "api":
            _make_index(settings)
            _serve_http(settings, stream)
        elif role == "worker":
            _work(settings, stream)
        else:
            with _in_background(Worker(settings)):
                _serve_http(settings, stream)


def _serve_http(settings: Settings, stream: TextIO) -> None:
    app = create_app(settings)
    with _listening(settings.serve.host, settings.serve.port) as listener:
        config = uvicorn.Config(
            app, log_config=None, server_header=False, proxy_headers=False, timeout_graceful_shutdown=_HTTP_GRACE
        )
        server = _Server(config, listener, stream)

        def end() -> None:
            # A second signal: whoever sent it does not want to wait.
            server.force_exit = server.should_exit
            server.should_exit = True

        with _on_signal(end):
            server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says where it listens once it does, and leaves the signals to us: the worker ends with them too."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, stream: TextIO) -> None:
        super().__init__(config)
        self._listener = listener
        self._stream = stream

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self._listener.getsockname()[:2]
        self._stream.write(f"federator listens on http://{f'[{host}]' if ':' in host else host}:{port}\n")
        self._stream.flush()


def _work(settings: Settings, stream: TextIO) -> None:
    worker = Worker(settings)
    ended = threading.Event()
    with _on_signal(ended.set), _in_background(worker):
        stream.write("federator works\n")
        stream.flush()
        ended.wait()


@contextmanager
def _in_background(worker: Worker) -> Iterator[None]:
    thread = threading.Thread(target=worker.run, name="worker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(_WORKER_GRACE)
        if thread.is_alive():
            _log.error("the run in hand did not end in time; the next worker reads its open intents again")


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A bound socket: an address that is taken is our error, not the server's way to end the process."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Only of sockets that are said to be TCP does asyncio turn off what holds an answer's body back for 40 ms.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise StateError(f"cannot listen on {host}:{port}: {error.strerror or error}", hint="[serve] port, or --port") from None
    with listener:
        yield listener


@contextmanager
def _on_signal(end: Callable[[], None]) -> Iterator[None]:
    """Calls ``end`` on SIGINT and SIGTERM within the block. Only the main thread hears signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        end()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _own_stderr() -> Iterator[TextIO]:
    """Our own way to stderr: starting Spark redirects the process's for a moment, and a line must not get lost in it."""
    try:
        number = os.dup(sys.stderr.fileno())
    except (io.UnsupportedOperation, OSError, AttributeError):
        yield sys.stderr
        return
    with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1) as stream:
        yield stream


def _make_index(settings: Settings) -> None:
    """A new SQLite file gets its tables; any other database may still be migrated while we already answer probes."""
    try:
        Federator.open(settings).index.close()
    except StateError as error:
        _log.warning("not ready", error=str(error))
