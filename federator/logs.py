"""Logging: structured events on stderr, for people or as JSON lines. Nothing is configured at import.

A process that serves calls ``configure`` once; what runs inside it binds its run or source with ``bound``.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import AbstractContextManager
from typing import TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import Processor

#: ``json`` or ``console``; by default JSON unless stderr is a terminal
FORMAT = "FEDERATOR_LOG"
LEVEL = "FEDERATOR_LOG_LEVEL"
# What they say below a warning is about their own clockwork.
_QUIET = ("apscheduler", "py4j", "uvicorn.access", "alembic", "botocore", "urllib3")


def configure(*, json: bool | None = None, level: str | None = None, stream: TextIO | None = None) -> None:
    """Sends our events and those of the libraries to ``stream`` (default: stderr), in one format. May be called again."""
    out = stream if stream is not None else sys.stderr
    wanted = os.environ.get(FORMAT, "").lower()
    as_json = json if json is not None else wanted == "json" if wanted else not out.isatty()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_rendering(as_json, colors=_colours(out)))
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel((level or os.environ.get(LEVEL) or "INFO").upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


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


def _rendering(as_json: bool, *, colors: bool) -> list[Processor]:
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    # The library's own renderers print the local variables of every frame, and with them resolved secrets.
    if as_json:
        trace = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
        return [drop, trace, structlog.processors.JSONRenderer(ensure_ascii=False)]
    return [drop, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)]


def _colours(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR")
