"""One OpenTelemetry trace per run: its stages, the shards that Spark workers read, and the catalog calls of this process.

No tracing library is loaded unless ``[telemetry] endpoint`` or OpenTelemetry's own variables name a collector. Workers send
nothing: the times of their shards come back with the data, so that workers need no network, no library and no credential for a
trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import federator
from federator import logs
from federator.connector import ConfigError
from federator.connector.options import resolve_reference, resolve_secret
from federator.runtime import spans
from federator.runtime.redaction import redact
from federator.runtime.spans import Attributes
from federator.runtime.text import first_line
from federator.settings import Settings
from federator.store.runs import RunHandle

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HINT = "pip install 'lance-federator[otel]'"
# An unavailable collector delays the end of a run by at most this many seconds.
_EXPORT_TIMEOUT_SECONDS = 5
_log = logs.get_logger(__name__)


@contextmanager
def trace_run(settings: Settings, run: RunHandle) -> Iterator[None]:
    """Trace a run. Raise ConfigError if ``[telemetry]`` is set and the libraries are missing."""
    endpoint = settings.telemetry.endpoint
    if endpoint is None and (os.environ.get("OTEL_SDK_DISABLED") == "true" or not any(map(os.environ.get, VARIABLES))):
        yield
        return
    try:
        provider = _build_provider(settings)
    except ModuleNotFoundError as error:
        if endpoint is not None:
            raise ConfigError(f"[telemetry] needs the module {error.name!r}", hint=_HINT) from None
        # The variables may be set for all programs on this machine, so a missing library is no error.
        _log.warning("tracing is disabled", missing=error.name, hint=_HINT)
        yield
        return
    spans.set_tracer(_Tracer(provider))
    try:
        with spans.span(f"run {run.kind}", {"federator.run": run.id, "federator.kind": run.kind}):
            yield
    finally:
        spans.set_tracer(None)
        provider.shutdown()


def _build_provider(settings: Settings) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    section = f"{settings.path}: [telemetry]"
    options: dict[str, Any] = {"timeout": _EXPORT_TIMEOUT_SECONDS}
    if settings.telemetry.endpoint is not None:
        options["endpoint"] = f"{resolve_reference(settings.telemetry.endpoint, where=section).rstrip('/')}/v1/traces"
    if settings.telemetry.token is not None:
        token = resolve_secret(settings.telemetry.token, where=f"{section} token")
        options["headers"] = {"Authorization": f"Bearer {token}"}
    resource = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME", "lance-federator"),
        "service.version": federator.__version__,
    }
    if settings.instance.id is not None:
        resource["service.instance.id"] = settings.instance.id
    provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(**options)))
    return provider


class _Tracer:
    """``spans.Tracer`` over OpenTelemetry."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("federator", federator.__version__)

    @contextmanager
    def span(self, name: str, attributes: Attributes, *, client: bool) -> Iterator[object]:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        # The library's own records of exceptions contain whole tracebacks and the text of foreign errors, so they are disabled.
        span_context = self._tracer.start_as_current_span(
            name, kind=kind, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        )
        with span_context as span:
            try:
                yield span
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR, redact(first_line(error))))
                span.set_attribute("error.type", type(error).__name__)
                raise

    def record_span(self, name: str, attributes: Attributes, *, started_at: float, ended_at: float, error: str | None) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        span = self._tracer.start_span(
            name, kind=SpanKind.CLIENT, attributes=dict(attributes), start_time=int(started_at * 1e9)
        )
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, redact(error)))
        span.end(end_time=int(ended_at * 1e9))
