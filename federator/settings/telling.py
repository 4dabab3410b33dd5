"""The sections that say what the service tells, and whom: ``[logs]``, ``[notify.*]``, ``[telemetry]``, ``[lineage]``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from federator.connector import ConfigError
from federator.connector.options import is_reference, resolve, secret
from federator.model.notices import Event, Severity
from federator.settings.values import Duration, Pattern

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OF_HTTP = ("url", "secret", "token")
_OF_SMTP = ("host", "port", "tls", "username", "password", "sender", "to")
_SECRET = ("secret", "token", "password")


def _event(text: str) -> str:
    if text != "*" and text not in list(Event):
        raise ValueError(f"one of *, {', '.join(Event)}")
    return text


EventName = Annotated[str, AfterValidator(_event)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LogsSettings(_Section):
    """What is logged, and how: ``auto`` is JSON unless stderr is a terminal."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class TelemetrySettings(_Section):
    """Where traces go: an OTLP/HTTP ``endpoint`` such as ``https://collector:4318``. Default: what OTEL_EXPORTER_OTLP_ENDPOINT says;
    else none are made."""

    endpoint: str | None = None
    token: str | None = None


class LineageSettings(_Section):
    """Where OpenLineage events of mirrors go: to the ``url`` of a server, or as lines into a ``file``. ``namespace`` is that of the
    jobs; default: the instance's id."""

    url: str | None = None
    token: str | None = None
    file: str | None = None
    namespace: str | None = None


class NotifySettings(_Section):
    """One channel: where notifications go, which events become one, and how they are grouped.

    ``group_wait`` is how long further notices of a group are waited for; ``attempts`` is how often one is tried before it is dead.
    """

    kind: Literal["webhook", "slack", "smtp"]
    url: str | None = None
    secret: str | None = None
    token: str | None = None
    ca: str | None = None
    host: str | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    tls: Literal["starttls", "tls", "none"] | None = None
    username: str | None = None
    password: str | None = None
    sender: str | None = Field(default=None, alias="from")
    to: tuple[str, ...] = ()
    events: tuple[EventName, ...] = ("*",)
    min_severity: Severity = Severity.WARNING
    sources: tuple[Pattern, ...] = ("*",)
    mirrors: tuple[Pattern, ...] = ("*",)
    group_by: tuple[Literal["event", "severity", "source", "mirror", "run"], ...] = ("event",)
    group_wait: Duration = 30.0
    attempts: int = Field(default=10, ge=1, le=100)

    def check(self, where: str) -> None:
        """Raises ConfigError for keys that the kind has not, or lacks; for a secret in clear; for a way that others can read."""
        own, foreign = (_OF_SMTP, _OF_HTTP) if self.kind == "smtp" else (_OF_HTTP, _OF_SMTP)
        for key in foreign:
            if getattr(self, key):
                shown = "from" if key == "sender" else key
                allowed = ", ".join("from" if k == "sender" else k for k in own)
                raise ConfigError(f'{where} {shown}: goes not with kind = "{self.kind}"', hint=f"its keys: {allowed}")
        for key in (*_SECRET, *(("url",) if self.kind == "slack" else ())):
            text = getattr(self, key)
            if text and not is_reference(text):
                raise ConfigError(f"{where} {key}: a secret must not stand in the file", hint="write ${VARIABLE} or file:PATH")
        if self.kind == "smtp":
            self._check_smtp(where)
        else:
            check_url(self.resolved("url", where), f"{where} url")
        for key in _SECRET:
            self.resolved(key, where)

    def _check_smtp(self, where: str) -> None:
        for key, value in (("host", self.host), ("from", self.sender), ("to", self.to)):
            if not value:
                raise ConfigError(f'{where} {key}: required with kind = "smtp", and not set')
        for address in (str(self.sender), *self.to):
            if "@" not in address or any(c in address for c in "\r\n"):
                raise ConfigError(f"{where}: {address!r} is no address", hint="name@example.com")
        if self.tls == "none" and resolve(str(self.host), where=where) not in _LOOPBACK:
            raise ConfigError(f"{where} tls: others could read what is sent in clear", hint='"starttls" or "tls"')

    def resolved(self, key: str, where: str) -> str | None:
        """The value behind a reference, None where the key is not set. Raises ConfigError."""
        return resolved(getattr(self, key), f"{where} {key}")


def resolved(text: str | None, where: str) -> str | None:
    """The secret behind a reference. Raises ConfigError that names the variable or the file."""
    if text is None:
        return None
    try:
        return secret(resolve(text, where=where))
    except ValueError as error:
        raise ConfigError(f"{where}: not {error}") from None


def check_url(text: str | None, where: str) -> None:
    """Raises ConfigError, which shows nothing of the URL, for one that is not https (http: loopback only)."""
    parts = urlsplit(text or "")
    try:
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        named = bool(parts.hostname) and parts.password is None and parts.port != 0
    except ValueError:
        safe = named = False
    if not (safe and named):
        raise ConfigError(f"{where}: not an address that may be used", hint="https://host/path (http for loopback only)")


def check_telling(
    telemetry: TelemetrySettings, lineage: LineageSettings, notify: dict[str, NotifySettings], file: object
) -> None:
    """What only values behind references show. Raises ConfigError."""
    for section, url, token in _addresses(telemetry, lineage):
        if token and not is_reference(token):
            raise ConfigError(f"{file}: [{section}] token: a secret must not stand in the file", hint="write ${VARIABLE}")
        if url is not None:
            check_url(
                resolve(url, where=f"{file}: [{section}]"),
                f"{file}: [{section}] {'url' if section == 'lineage' else 'endpoint'}",
            )
        resolved(token, f"{file}: [{section}] token")
    if lineage.url and lineage.file:
        raise ConfigError(f"{file}: [lineage] file: goes not with url", hint="one of both")
    for name, channel in notify.items():
        channel.check(f"{file}: [notify.{name}]")


def _addresses(telemetry: TelemetrySettings, lineage: LineageSettings) -> Iterator[tuple[str, str | None, str | None]]:
    yield "telemetry", telemetry.endpoint, telemetry.token
    yield "lineage", lineage.url, lineage.token
