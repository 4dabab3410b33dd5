"""Logging: structured events on stderr, for people or as JSON lines. Nothing is configured at import.

A process calls ``configure`` once; what runs inside it binds its run, source or mirror with ``bound``. Whatever is logged, by us or
by a library, passes ``_redact`` last.
"""

from __future__ import annotations

import contextvars
import functools
import logging
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TextIO, TypeVar

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from federator.connector.secrets import redacted, redacted_data

P = ParamSpec("P")
R = TypeVar("R")

#: ``json`` or ``console``; by default JSON unless stderr is a terminal
FORMAT = "FEDERATOR_LOG"
LEVEL = "FEDERATOR_LOG_LEVEL"
# What they say below a warning is about their own clockwork.
_QUIET = ("apscheduler", "py4j", "uvicorn.access", "alembic", "botocore", "boto3", "s3transfer", "urllib3", "opentelemetry")


def configure(
    *,
    json: bool | None = None,
    level: str | None = None,
    stream: TextIO | None = None,
    default_format: str = "auto",
    default_level: str = "INFO",
) -> None:
    """Sends our events and those of the libraries to ``stream`` (default: stderr), in one format. May be called again.

    What is given here wins over the environment, and that over the defaults, which are the configuration's.
    """
    out = stream if stream is not None else sys.stderr
    wanted = os.environ.get(FORMAT, "").lower() or default_format
    as_json = json if json is not None else wanted == "json" if wanted in ("json", "console") else not out.isatty()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level, *shared, structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )  # fmt: skip
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_rendering(as_json, colors=_colours(out)))
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel((level or os.environ.get(LEVEL) or default_level).upper())
    logging.captureWarnings(capture=True)
    for name in _QUIET:
        # Whoever asks for everything gets theirs too.
        logging.getLogger(name).setLevel(logging.NOTSET if root.level <= logging.DEBUG else logging.WARNING)


def get(name: str) -> structlog.stdlib.BoundLogger:
    """A module's logger."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def bind(**values: str | int | None) -> None:
    """Adds values to every event of this thread until the ``bound`` block that named them ends."""
    structlog.contextvars.bind_contextvars(**values)


def bound(**values: str | int | None) -> AbstractContextManager[None]:
    """Adds values (``run``, ``source``, ...) to every event of this thread within the block."""
    return structlog.contextvars.bound_contextvars(**values)


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """The function for another thread, where it runs with what is bound here; each one handed out may run once at a time."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return run


def _rendering(as_json: bool, *, colors: bool) -> list[Processor]:
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    # The library's own renderers print the local variables of every frame, and with them resolved secrets.
    if as_json:
        trace = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
        return [drop, trace, _redact, _redacting(structlog.processors.JSONRenderer(ensure_ascii=False, default=str))]
    console = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    return [drop, _redact, _redacting(console)]


def _redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # A traceback to be rendered is no text yet: the line as a whole is looked at once more.
    return {key: value if key == "exc_info" else redacted_data({key: value})[key] for key, value in event.items()}


def _redacting(render: Processor) -> Processor:
    def run(logger: WrappedLogger, method: str, event: EventDict) -> str:
        return redacted(str(render(logger, method, event)))

    return run


def _colours(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR")
