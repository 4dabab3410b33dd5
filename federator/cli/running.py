"""Carrying out a run from a terminal: Spark started as a step of its own, Ctrl-C, and the way from a Result to an exit code."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from federator.cli.context import Cli
from federator.cli.errors import INTERRUPTED, Interrupted
from federator.cli.progress import Progress
from federator.connector.errors import ConfigError, FederatorError

if TYPE_CHECKING:
    from types import FrameType

    from federator.settings import Settings
    from federator.sync import Federator, Step


@contextmanager
def working(cli: Cli, *, spark: bool, settings: Settings | None = None) -> Iterator[Federator]:
    """A Federator that reports here and obeys Ctrl-C. Raises Interrupted after the first one, once the run has ended."""
    from federator.sync import Federator

    chosen = settings or cli.settings
    stop = threading.Event()
    logged = _logging(cli, chosen)
    with Progress(quiet=cli.quiet or logged is not None, stop=stop) as progress, _signals(stop, progress) as signals:
        federator = Federator.open(chosen, logged or progress)
        federator.stop = stop
        try:
            if spark:
                signals.watch(_start_spark(chosen, progress), connect=chosen.spark.master.startswith("sc://"))
            yield federator
        except KeyboardInterrupt:
            stop.set()
        finally:
            _tell(federator)
            federator.index.close()
        if stop.is_set():
            progress.say(["stopped; the next run goes on from here, and federator runs shows how far this one came"])
            raise Interrupted(signals.code)


def _logging(cli: Cli, settings: Settings) -> Callable[[Step], None] | None:
    """What logs each step, where somebody chose a format of logs; else progress is shown, and of the logs what went wrong."""
    from federator import logs

    wanted = cli.log_format or os.environ.get(logs.FORMAT) or (settings.logs.format if settings.logs.format != "auto" else None)
    if wanted is None:
        logs.configure(json=False, level=os.environ.get(logs.LEVEL, "warning"))
        return None
    from federator.schedule.progress import Progress as Logged

    logs.configure(json=wanted == "json", default_level=settings.logs.level)
    return Logged().note


def _tell(federator: Federator) -> None:
    """Sends what the run has to say; what cannot be sent now, the next run or the service sends."""
    from federator import notify
    from federator.index import DatabaseError

    try:
        notify.deliver(federator.index, federator.settings, at_once=True)
    except (FederatorError, DatabaseError) as error:
        sys.stderr.write(f"notifications wait: {str(error).splitlines()[0]}\n")


def _start_spark(settings: Settings, progress: Progress) -> Any:
    from federator.sync import Step

    began = time.monotonic()
    progress(Step("spark", "starting spark"))
    spark = start(settings)
    progress(Step("spark", "starting spark", "ok", "", time.monotonic() - began))
    return spark


def start(settings: Settings) -> Any:
    """The session. Raises ConfigError without Spark, StateError where it does not start."""
    from federator.pipeline.session import engine_errors, session

    with engine_errors("start") if importlib.util.find_spec("pyspark") else nullcontext():
        return session(settings)


class _Signals:
    """The first Ctrl-C lets calls in flight end; the second ends the process."""

    def __init__(self, stop: threading.Event, progress: Progress) -> None:
        self.code = INTERRUPTED
        self.ended = threading.Event()
        self._stop = stop
        self._progress = progress
        self._cancel: Callable[[], None] = lambda: None

    def watch(self, spark: Any, *, connect: bool) -> None:
        """Includes Spark's jobs; Spark's start has put its own handler in our place."""
        self._cancel = partial(_cancel_jobs, spark, connect=connect)
        self.install()

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._received)

    def _received(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number
        if self._stop.is_set():
            # Threads and Spark would hold every gentler end; the journal knows what was begun.
            if sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h")
            sys.stderr.write("ended at once; the next run looks at what was in flight\n")
            sys.stderr.flush()
            os._exit(self.code)
        self._stop.set()
        self._progress.say(["stopping: calls in flight end first; Ctrl-C again ends at once"])
        threading.Thread(target=self._keep_cancelling, name="cancel", daemon=True).start()

    def _keep_cancelling(self) -> None:
        """Until the run has ended: a job may begin after the first word that stops those there are."""
        while not self.ended.wait(1.0):
            self._cancel()


@contextmanager
def _signals(stop: threading.Event, progress: Progress) -> Iterator[_Signals]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signals = _Signals(stop, progress)
    signals.install()
    try:
        yield signals
    finally:
        signals.ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _cancel_jobs(spark: Any, *, connect: bool) -> None:
    """Ends Spark's jobs, which only read: nothing that they leave is published."""
    if connect:
        spark.interruptAll()
    else:
        spark.sparkContext.cancelAllJobs()


def need_sources(settings: Settings) -> None:
    """Raises ConfigError where there is nothing to read."""
    if not settings.sources:
        raise ConfigError(
            f"{settings.path}: no source is configured", hint="add a table [sources.NAME], as federator init shows"
        )
