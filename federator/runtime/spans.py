"""Spans of a run's trace. Without a tracer (``federator.stages.tracing``) they have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Attributes = Mapping[str, str | int | float | bool]


class Tracer(Protocol):
    """Creates spans. Attribute values are texts, numbers or booleans; times are seconds since the epoch."""

    def span(self, name: str, attributes: Attributes, *, client: bool) -> AbstractContextManager[object]:
        """Span around a block, a child of the span that is open in this context. An exception marks it as failed."""
        ...

    def record_span(self, name: str, attributes: Attributes, *, started_at: float, ended_at: float, error: str | None) -> None:
        """Record a finished span of another process."""
        ...


_tracer: Tracer | None = None


def set_tracer(tracer: Tracer | None) -> None:
    """Set the tracer of this process, or remove it with None."""
    global _tracer
    _tracer = tracer


@contextmanager
def span(name: str, attributes: Attributes | None = None, *, client: bool = False) -> Iterator[None]:
    """Span around a block. ``client``: the block is a call to another system."""
    if _tracer is None:
        yield
        return
    with _tracer.span(name, attributes or {}, client=client):
        yield


def record_span(name: str, attributes: Attributes, *, started_at: float, ended_at: float, error: str | None = None) -> None:
    """Record a finished span of another process. ``error`` is the reason of a failure."""
    if _tracer is not None:
        _tracer.record_span(name, attributes, started_at=started_at, ended_at=ended_at, error=error)
