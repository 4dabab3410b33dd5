"""Spans of the run's trace, for whoever traces: nothing happens until a tracer is installed (``federator.sync.tracing``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Attributes = Mapping[str, str | int | float | bool]


class Tracer(Protocol):
    """What makes spans. Attributes are texts, numbers or truth values; times are seconds since the epoch."""

    def span(self, name: str, attributes: Attributes, *, client: bool) -> AbstractContextManager[object]:
        """A span around a block, child of the one that is open in this context; an exception makes it a failed one."""
        ...

    def ended(self, name: str, attributes: Attributes, *, began: float, ended: float, error: str | None) -> None:
        """A span of something that happened elsewhere and is over."""
        ...


_tracer: Tracer | None = None


def install(tracer: Tracer | None) -> None:
    """Sets, or with None takes away, this process's tracer."""
    global _tracer
    _tracer = tracer


@contextmanager
def span(name: str, attributes: Attributes | None = None, *, client: bool = False) -> Iterator[None]:
    """A span around a block, where anybody traces; ``client``: the block is a call to another system."""
    if _tracer is None:
        yield
        return
    with _tracer.span(name, attributes or {}, client=client):
        yield


def ended(name: str, attributes: Attributes, *, began: float, ended: float, error: str | None = None) -> None:
    """A span of something that happened in another process; ``error`` says why it failed."""
    if _tracer is not None:
        _tracer.ended(name, attributes, began=began, ended=ended, error=error)
