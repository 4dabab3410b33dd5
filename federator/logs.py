"""Logging: structured events on stderr, for people or as JSON lines. Importing the module configures nothing.

A process calls ``configure`` once. Code that runs in it binds its run, source or mirror with ``bound``. Every log line, including
those of libraries, passes ``_redact`` last. The library is imported at the first use, because commands that only read never log.
"""

from __future__ import annotations

import contextvars
import functools
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO, TypeVar, cast

from federator.runtime.redaction import redact, redact_data

if TYPE_CHECKING:
    import structlog
    from structlog.typing import EventDict, Processor, WrappedLogger

P = ParamSpec("P")
R = TypeVar("R")

#: ``json`` or ``console``; by default JSON unless stderr is a terminal
FORMAT = "FEDERATOR_LOG"
LEVEL = "FEDERATOR_LOG_LEVEL"
_COLOR = re.compile("\x1b\\[[0-9;]*m")
# Indentation of the second and later lines of an event on a terminal.
_HANG = "    "
# Below a warning, these libraries log only internal details.
_QUIET = (
    "apscheduler", "py4j", "uvicorn", "alembic", "botocore", "boto3", "s3transfer", "urllib3", "opentelemetry", "azure", "msal",
    "google", "mcp",
)  # fmt: skip


def configure(
    *,
    json: bool | None = None,
    level: str | None = None,
    stream: TextIO | None = None,
    default_format: str = "auto",
    default_level: str = "INFO",
) -> None:
    """Send the events of the federator and of libraries to ``stream`` (default: stderr), in one format. May be called again.

    The arguments override the environment, which overrides the defaults from the configuration.
    """
    import structlog

    output = stream if stream is not None else sys.stderr
    format_name = os.environ.get(FORMAT, "").lower() or default_format
    as_json = json if json is not None else format_name == "json" if format_name in ("json", "console") else not output.isatty()
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
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=_rendering(as_json, colors=_supports_colors(output), terminal=output.isatty()),
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel((level or os.environ.get(LEVEL) or default_level).upper())
    logging.captureWarnings(capture=True)
    for name in _QUIET:
        # At level DEBUG, the libraries' events are shown too.
        logging.getLogger(name).setLevel(logging.NOTSET if root.level <= logging.DEBUG else logging.WARNING)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a module's logger."""
    return cast("structlog.stdlib.BoundLogger", _LazyLogger(name))


class _LazyLogger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        import structlog

        return getattr(structlog.stdlib.get_logger(self._name), attribute)


def bind(**values: str | int | None) -> None:
    """Add values to every event of this thread until the ``bound`` block that named them ends."""
    import structlog

    structlog.contextvars.bind_contextvars(**values)


def bound(**values: str | int | None) -> AbstractContextManager[None]:
    """Add values (``run``, ``source``, ...) to every event of this thread within the block."""
    import structlog

    return structlog.contextvars.bound_contextvars(**values)


def with_bound_context(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function for another thread, with the values that are bound here.

    The returned function may run in several threads, each call with its own copy of the values.
    """
    context = contextvars.copy_context()

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return run


def _rendering(as_json: bool, *, colors: bool, terminal: bool) -> list[Processor]:
    import structlog
    from structlog.tracebacks import ExceptionDictTransformer

    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    # The library's default renderers print the local variables of every frame, which may contain resolved secrets.
    if as_json:
        trace = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
        return [drop, trace, _redact, _redact_after(structlog.processors.JSONRenderer(ensure_ascii=False, default=str))]
    console = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    render = _redact_after(console)
    return [drop, _redact, _wrap_after(render) if terminal else render]


def _redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # A traceback is not rendered yet, so the whole line is redacted again later.
    return {key: value if key == "exc_info" else redact_data({key: value})[key] for key, value in event.items()}


def _redact_after(render: Processor) -> Processor:
    def run(logger: WrappedLogger, method: str, event: EventDict) -> str:
        return redact(str(render(logger, method, event)))

    return run


def _wrap_after(render: Processor) -> Processor:
    def run(logger: WrappedLogger, method: str, event: EventDict) -> str:
        width = shutil.get_terminal_size().columns
        return "\n".join(_wrap_line(line, width) for line in str(render(logger, method, event)).split("\n"))

    return run


def _wrap_line(line: str, width: int) -> str:
    """Break a line between words. Colours have no width."""
    lines, used = [""], 0
    for word in line.split(" "):
        length = len(_COLOR.sub("", word))
        if used + length > width and used > len(_HANG):
            lines.append(_HANG)
            used = len(_HANG)
        lines[-1] += f"{word} "
        used += length + 1
    return "\n".join(part.rstrip(" ") for part in lines)


def _supports_colors(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR")
