"""One OpenTelemetry trace a run: its stages, the shards that Spark's workers read, and the calls that this process made to catalogs.

Nothing of it is loaded unless ``[telemetry] endpoint`` or OpenTelemetry's own variables name a collector. Workers send nothing: when
they read which shard comes back with what they read, so that a trace needs no network, no library and no credential there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import federator
from federator import logs
from federator.connector import ConfigError, spans
from federator.connector.options import resolve
from federator.connector.secrets import redacted
from federator.connector.spans import Attributes
from federator.index.runs import RunHandle
from federator.settings import Settings
from federator.settings.telling import resolved

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HINT = "pip install 'lance-federator[otel]'"
# A collector that is away costs the end of a run no more than this.
_SECONDS = 5
_log = logs.get(__name__)


@contextmanager
def tracing(settings: Settings, run: RunHandle) -> Iterator[None]:
    """A trace around a run. Raises ConfigError where ``[telemetry]`` asks for one and the libraries are missing."""
    endpoint = settings.telemetry.endpoint
    if endpoint is None and (os.environ.get("OTEL_SDK_DISABLED") == "true" or not any(map(os.environ.get, VARIABLES))):
        yield
        return
    try:
        provider = _provider(settings)
    except ModuleNotFoundError as error:
        if endpoint is not None:
            raise ConfigError(f"[telemetry] needs the module {error.name!r}", hint=_HINT) from None
        # The variables may be there for everything that runs on this machine.
        _log.warning("no traces", missing=error.name, hint=_HINT)
        yield
        return
    spans.install(_Tracer(provider))
    try:
        with spans.span(f"run {run.kind}", {"federator.run": run.id, "federator.kind": run.kind}):
            yield
    finally:
        spans.install(None)
        provider.shutdown()


def _provider(settings: Settings) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    where = f"{settings.path}: [telemetry]"
    told: dict[str, Any] = {"timeout": _SECONDS}
    if settings.telemetry.endpoint is not None:
        told["endpoint"] = f"{resolve(settings.telemetry.endpoint, where=where).rstrip('/')}/v1/traces"
    token = resolved(settings.telemetry.token, f"{where} token")
    if token is not None:
        told["headers"] = {"Authorization": f"Bearer {token}"}
    own = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "lance-federator"), "service.version": federator.__version__}
    if settings.instance.id is not None:
        own["service.instance.id"] = settings.instance.id
    provider = TracerProvider(resource=Resource.create(own), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(**told)))
    return provider


class _Tracer:
    """``spans.Tracer`` over OpenTelemetry."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("federator", federator.__version__)

    def span(self, name: str, attributes: Attributes, *, client: bool) -> AbstractContextManager[object]:
        return self._around(name, attributes, client=client)

    @contextmanager
    def _around(self, name: str, attributes: Attributes, *, client: bool) -> Iterator[object]:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        # The library's own records of exceptions hold whole tracebacks, and whatever stands in a foreign error's text.
        opened = self._tracer.start_as_current_span(
            name, kind=kind, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        )
        with opened as made:
            try:
                yield made
            except BaseException as error:
                made.set_status(
                    Status(StatusCode.ERROR, redacted(str(error).splitlines()[0] if str(error) else type(error).__name__))
                )
                made.set_attribute("error.type", type(error).__name__)
                raise

    def ended(self, name: str, attributes: Attributes, *, began: float, ended: float, error: str | None) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        made = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=dict(attributes), start_time=int(began * 1e9))
        if error is not None:
            made.set_status(Status(StatusCode.ERROR, redacted(error)))
        made.end(end_time=int(ended * 1e9))
