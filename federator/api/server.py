"""The service process: HTTP, the worker, or both, until SIGINT or SIGTERM."""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TextIO

import uvicorn

from federator import logs
from federator.api.app import create_app
from federator.api.http_limits import build_limited_protocol
from federator.api.security_middleware import configured_token
from federator.connector import ConfigError, StateError
from federator.runtime.shutdown import GRACE_SECONDS, end_process_later, wake_main_thread
from federator.service import Federator
from federator.settings import Settings
from federator.worker import Worker

ROLES = ("all", "api", "worker")
_log = logs.get_logger(__name__)


def run_service(
    settings: Settings, *, host: str | None = None, port: int | None = None, role: str = "all", log_format: str | None = None
) -> None:
    """Serve until SIGINT or SIGTERM. Then responses and calls in flight have ``GRACE_SECONDS`` to end, and the process ends with code 0
    half a second later at the latest. A second signal ends it without waiting for open requests.

    Raise ConfigError or StateError if the service cannot start.
    """
    if role not in ROLES:
        raise ConfigError(f"{role!r} is not a role", hint=f"use one of {', '.join(ROLES)}")
    chosen = {"host": host or settings.serve.host, "port": settings.serve.port if port is None else port}
    # The worker records changes of the configuration, which the options of the command line are not.
    served = settings.model_copy(update={"serve": settings.serve.model_copy(update=chosen)})
    if role != "worker":
        # Before the worker starts, which would take the lease and may begin a run.
        configured_token(served)
    with _private_stderr() as stream:
        chosen_format, level = settings.logs.format, settings.logs.level
        as_json = log_format == "json" if log_format is not None else None
        logs.configure(json=as_json, stream=stream, default_format=chosen_format, default_level=level)
        if role == "api":
            _create_sqlite_index(settings)
            with _bound_socket(served.serve.host, served.serve.port) as listener:
                _serve_http(served, listener, stream, lambda: None)
        elif role == "worker":
            _run_worker(settings, stream)
        else:
            worker = Worker(settings)
            with _bound_socket(served.serve.host, served.serve.port) as listener, _worker_thread(worker):
                _serve_http(served, listener, stream, worker.stop)


def _serve_http(settings: Settings, listener: socket.socket, stream: TextIO, stop_worker: Callable[[], None]) -> None:
    app = create_app(settings)
    config = uvicorn.Config(
        app, http=build_limited_protocol(settings.serve), ws="none", log_config=None, server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=int(GRACE_SECONDS),
    )  # fmt: skip
    server = _Server(config, listener, stream)

    def stop() -> None:
        # A second signal: do not wait for open requests.
        server.force_exit = server.should_exit
        server.should_exit = app.state.live_states.is_closed = True
        stop_worker()

    with _handle_signals(stop):
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Prints its address when it listens. It leaves the signals to ``_handle_signals``, because they also stop the worker."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, stream: TextIO) -> None:
        super().__init__(config)
        self._listener = listener
        self._stream = stream

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self.force_exit:
            # Uvicorn leaves the end of the application out, and the closing loop would report it as cancelled, with a traceback.
            await self.lifespan.shutdown()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self._listener.getsockname()[:2]
        self._stream.write(f"federator listens on http://{f'[{host}]' if ':' in host else host}:{port}\n")
        self._stream.flush()


def _run_worker(settings: Settings, stream: TextIO) -> None:
    worker = Worker(settings)
    stopping = threading.Event()
    with _handle_signals(stopping.set), wake_main_thread(), _worker_thread(worker):
        stream.write("federator works\n")
        stream.flush()
        stopping.wait()


@contextmanager
def _worker_thread(worker: Worker) -> Iterator[None]:
    thread = threading.Thread(target=worker.run, name="worker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(GRACE_SECONDS)


@contextmanager
def _bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """A bound socket. Bind before uvicorn does: it would exit on an address in use, and this raises StateError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only on sockets with an explicit TCP protocol; without it a response body is delayed by 40 ms.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise StateError(
            f"cannot listen on {host}:{port}: {error.strerror or error}", hint="set another [serve] port, or use --port"
        ) from None
    with listener:
        yield listener


@contextmanager
def _handle_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on SIGINT and SIGTERM within the block, and limit the time until the process ends.

    Outside the main thread nothing is installed: only it gets signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    message = "calls in flight did not end in time; the next run resolves their open intents"

    def handle(_number: int, _frame: FrameType | None) -> None:
        end_process_later(0, partial(_log.error, message))
        stop()

    previous_handlers = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


@contextmanager
def _private_stderr() -> Iterator[TextIO]:
    """A private copy of stderr: starting Spark redirects the process's stderr for a moment, and log lines must not get lost."""
    try:
        number = os.dup(sys.stderr.fileno())
    except (io.UnsupportedOperation, OSError, AttributeError):
        yield sys.stderr
        return
    with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1) as stream:
        yield stream


def _create_sqlite_index(settings: Settings) -> None:
    """Create the tables of a new SQLite file. Any other database may be migrated later, while health checks are already answered."""
    try:
        Federator.open(settings).index.close()
    except StateError as error:
        _log.warning("not ready", error=str(error))
