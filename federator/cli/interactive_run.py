"""Runs from a terminal: start of Spark, progress, Ctrl-C and notifications."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from federator.cli.context import Cli
from federator.cli.errors import INTERRUPTED, Interrupted
from federator.cli.progress import ProgressDisplay
from federator.cli.terminal_logs import configure_terminal_logs
from federator.connector.errors import ConfigError, FederatorError
from federator.runtime.shutdown import end_process_later, wake_main_thread
from federator.runtime.text import first_line

if TYPE_CHECKING:
    from types import FrameType

    from federator.service import Federator
    from federator.settings import Settings
    from federator.stages.result import ProgressEvent

_ENDED = "ended at once; the next run resolves the open intents\n"


@contextmanager
def open_run(cli: Cli, *, spark: bool, settings: Settings | None = None) -> Iterator[Federator]:
    """A Federator that shows its progress and stops on Ctrl-C. Raise Interrupted when a stopped run has ended."""
    run_settings = settings or cli.settings
    if spark:
        _launch_jvm(run_settings)
    from federator.service import Federator

    stop = threading.Event()
    record_event = _configure_logs(cli, run_settings)
    with (
        ProgressDisplay(quiet=cli.quiet or record_event is not None, stop=stop) as progress,
        _handle_interrupts(stop, progress) as interrupts,
    ):
        federator = Federator.open(run_settings, record_event or progress)
        federator.stop = stop
        try:
            if spark:
                interrupts.watch(_start_with_progress(run_settings, progress), connect=run_settings.spark.is_connect)
            yield federator
        except KeyboardInterrupt:
            stop.set()
        finally:
            _deliver_notifications(federator)
            federator.index.close()
        if stop.is_set():
            progress.print_parts(["stopped; the next run continues, and federator runs shows the state of this one"])
            raise Interrupted(interrupts.code)


def _configure_logs(cli: Cli, settings: Settings) -> Callable[[ProgressEvent], None] | None:
    """Configure the log, and return the function that logs progress events. None without a log format: only warnings are logged."""
    from federator import logs

    log_format = (
        cli.log_format or os.environ.get(logs.FORMAT) or (settings.logs.format if settings.logs.format != "auto" else None)
    )
    if log_format is None:
        configure_terminal_logs("warning")
        return None
    from federator.worker.progress import RunProgress

    logs.configure(json=log_format == "json", default_level=settings.logs.level)
    return RunProgress().record


def _deliver_notifications(federator: Federator) -> None:
    """Send due notifications. The next run or the service sends those that cannot be sent now."""
    from federator import notify
    from federator.store import DatabaseError

    try:
        notify.deliver_due(federator.index, federator.settings, at_once=True)
    except (FederatorError, DatabaseError) as error:
        sys.stderr.write(f"notifications are not sent yet: {first_line(error)}\n")


def _start_with_progress(settings: Settings, progress: ProgressDisplay) -> Any:
    from federator.stages.result import ProgressEvent

    started_at = time.monotonic()
    progress(ProgressEvent("spark", "starting spark"))
    spark = start_spark(settings)
    progress(ProgressEvent("spark", "starting spark", "ok", "", time.monotonic() - started_at))
    return spark


def _launch_jvm(settings: Settings) -> None:
    """Let the JVM start during the imports and the checks of the index. Its errors are raised where Spark is needed."""
    from federator.pipeline.session import launch_jvm

    with suppress(FederatorError):
        launch_jvm(settings)


def start_spark(settings: Settings) -> Any:
    """Return the Spark session. Raise ConfigError if Spark is not installed, StateError if it does not start."""
    from federator.pipeline.session import get_session
    from federator.pipeline.spark_errors import translate_spark_errors

    with translate_spark_errors("start") if importlib.util.find_spec("pyspark") else nullcontext():
        return get_session(settings)


class _InterruptHandler:
    """The first Ctrl-C waits for calls in flight; the second one ends the process. SIGTERM waits ``shutdown.GRACE_SECONDS``.

    ``code`` is the exit code of the last signal. Set ``ended`` when the run has ended.
    """

    def __init__(self, stop: threading.Event, progress: ProgressDisplay) -> None:
        self.code = INTERRUPTED
        self.ended = threading.Event()
        self._stop = stop
        self._progress = progress
        self._cancel: Callable[[], None] = lambda: None

    def watch(self, spark: Any, *, connect: bool) -> None:
        """After a signal, also cancel Spark's jobs, and install the handlers again: the start of Spark has replaced them."""
        self._cancel = partial(_cancel_jobs, spark, connect=connect)
        self.install()

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        if self._stop.is_set():
            # Threads and Spark would delay a normal exit. The journal has all open intents, so nothing is lost.
            if sys.stderr.isatty():
                # Show the cursor, which the progress display has hidden.
                sys.stderr.write("\x1b[?25h")
            sys.stderr.write(_ENDED)
            sys.stderr.flush()
            os._exit(self.code)
        self._stop.set()
        if number == signal.SIGTERM:
            end_process_later(self.code, partial(sys.stderr.write, _ENDED))
        self._progress.print_parts(["stopping: waiting for calls in flight; press Ctrl-C again to end at once"])
        threading.Thread(target=self._keep_cancelling, name="cancel", daemon=True).start()

    def _keep_cancelling(self) -> None:
        """Cancel jobs until the run has ended, because a job can start after the first cancellation."""
        while not self.ended.wait(1.0):
            self._cancel()


@contextmanager
def _handle_interrupts(stop: threading.Event, progress: ProgressDisplay) -> Iterator[_InterruptHandler]:
    """Set ``stop`` on Ctrl-C and SIGTERM, for a block."""
    previous_handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interrupts = _InterruptHandler(stop, progress)
    interrupts.install()
    try:
        with wake_main_thread():
            yield interrupts
    finally:
        interrupts.ended.set()
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _cancel_jobs(spark: Any, *, connect: bool) -> None:
    """Cancel Spark's jobs. They only read, and an incomplete result is never published."""
    if connect:
        spark.interruptAll()
    else:
        spark.sparkContext.cancelAllJobs()


def require_sources(settings: Settings) -> None:
    """Raise ConfigError if no source is configured."""
    if not settings.sources:
        raise ConfigError(
            f"{settings.path}: no source is configured", hint="add a table [sources.NAME], as federator init shows"
        )
