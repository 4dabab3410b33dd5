"""The sections ``[logs]``, ``[notify.*]``, ``[telemetry]`` and ``[lineage]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from federator.connector import ConfigError
from federator.connector.options import is_secret_reference, resolve_reference, resolve_secret
from federator.model.notices import NoticeEvent, Severity
from federator.planning.key_types import Duration, Pattern
from federator.settings.field_types import LOOPBACK, Secret
from federator.settings.section import Section, section_keys


@dataclass(frozen=True, slots=True)
class ForKinds:
    """Marks a key that only channels of some kinds have."""

    kinds: tuple[str, ...]


HTTP, SMTP = ForKinds(("webhook", "slack")), ForKinds(("smtp",))


def _check_event(text: str) -> str:
    if text != "*" and text not in list(NoticeEvent):
        raise ValueError(f"must be one of *, {', '.join(NoticeEvent)}")
    return text


EventName = Annotated[str, AfterValidator(_check_event)]


class LogsSettings(Section):
    """Logs on stderr."""

    format: Literal["auto", "json", "console"] = "auto"
    """`"auto"`: JSON unless stderr is a terminal."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written."""


class TelemetrySettings(Section):
    """Receiver of traces. Without an endpoint, no traces are recorded."""

    endpoint: str | None = None
    """OTLP/HTTP address such as `https://collector:4318`. Default: the environment variable OTEL_EXPORTER_OTLP_ENDPOINT."""
    token: Secret | None = None
    """Bearer token for the receiver."""


class LineageSettings(Section):
    """Receiver of the mirrors' OpenLineage events: a server or a file."""

    url: str | None = None
    """URL of a server. It cannot be combined with `file`."""
    token: Secret | None = None
    """API key for the server."""
    file: str | None = None
    """File of JSON lines."""
    namespace: str | None = None
    """Namespace of the jobs. Default: the instance id."""


class NotifySettings(Section):
    """One channel: its receiver, the events that it gets, and their grouping."""

    kind: Literal["webhook", "slack", "smtp"]
    """Kind of the channel."""
    url: Annotated[str | None, HTTP] = None
    """Address of the receiver. The address of a Slack channel is a secret."""
    secret: Annotated[Secret | None, HTTP] = None
    """Key that signs the messages."""
    token: Annotated[Secret | None, HTTP] = None
    """Bearer token for the receiver."""
    ca: str | None = None
    """File with the certificates of the receiver's authority."""
    host: Annotated[str | None, SMTP] = None
    """Mail server."""
    port: Annotated[int | None, SMTP, Field(ge=1, le=65535)] = None
    """Port of the mail server. Default: the standard port of `tls`."""
    tls: Annotated[Literal["starttls", "tls", "none"] | None, SMTP] = None
    """Encryption. `"none"` is only allowed on loopback. Default: `"starttls"`."""
    username: Annotated[str | None, SMTP] = None
    """User name at the mail server."""
    password: Annotated[Secret | None, SMTP] = None
    """Password at the mail server."""
    sender: Annotated[str | None, SMTP, Field(alias="from")] = None
    """Address of the sender."""
    to: Annotated[tuple[str, ...], SMTP] = ()
    """Addresses of the receivers."""
    events: tuple[EventName, ...] = ("*",)
    """Events that are sent."""
    min_severity: Severity = Severity.WARNING
    """Lowest severity that is sent."""
    sources: tuple[Pattern, ...] = ("*",)
    """Sources whose events are sent."""
    mirrors: tuple[Pattern, ...] = ("*",)
    """Mirrors whose events are sent."""
    group_by: tuple[Literal["event", "severity", "source", "mirror", "run"], ...] = ("event",)
    """Notices with the same values of these fields are sent together."""
    group_wait: Duration = 30.0
    """Time to wait for further notices of a group."""
    attempts: int = Field(default=10, ge=1, le=100)
    """Number of failed attempts after which a notification is dead."""

    def check(self, where: str) -> None:
        """Raise ConfigError for invalid or missing keys of the kind, for a secret in clear, and for an unencrypted connection."""
        kinds = {
            key: mark.kinds
            for key, field in section_keys(type(self)).items()
            for mark in field.metadata
            if isinstance(mark, ForKinds)
        }
        for key, value in self.model_dump(by_alias=True).items():
            if value and self.kind not in kinds.get(key, (self.kind,)):
                valid_keys = ", ".join(valid for valid in kinds if self.kind in kinds[valid])
                raise ConfigError(
                    f'{where} {key} cannot be used with kind = "{self.kind}"', hint=f"valid keys for {self.kind}: {valid_keys}"
                )
        if self.kind == "slack" and self.url and not is_secret_reference(self.url):
            raise ConfigError(f"{where} url: a secret must not stand in the file", hint="write ${VARIABLE} or file:PATH")
        if self.kind == "smtp":
            self._check_smtp(where)
        else:
            check_url(self.resolve_secret("url", where), f"{where} url")
        for key in ("secret", "token", "password"):
            self.resolve_secret(key, where)

    def _check_smtp(self, where: str) -> None:
        for key, value in (("host", self.host), ("from", self.sender), ("to", self.to)):
            if not value:
                raise ConfigError(f'{where} {key}: required with kind = "smtp", and not set')
        for address in (str(self.sender), *self.to):
            if "@" not in address or any(c in address for c in "\r\n"):
                raise ConfigError(f"{where}: {address!r} is not an e-mail address", hint="use name@example.com")
        if self.tls == "none" and resolve_reference(str(self.host), where=where) not in LOOPBACK:
            raise ConfigError(f'{where} tls: "none" is only allowed for a host on loopback', hint='use "starttls" or "tls"')

    def resolve_secret(self, key: str, where: str) -> str | None:
        """Return the value of a reference; None if the key is not set. Raise ConfigError."""
        text = getattr(self, key)
        return resolve_secret(text, where=f"{where} {key}") if text is not None else None


def check_url(text: str | None, where: str) -> None:
    """Raise ConfigError unless the URL is https, or http on loopback. The message does not contain the URL."""
    try:
        parts = urlsplit(text or "")
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        has_host = bool(parts.hostname) and parts.password is None and parts.port != 0
    except ValueError:
        is_safe = has_host = False
    if not (is_safe and has_host):
        raise ConfigError(f"{where}: not an allowed URL", hint="use https://host/path, or http on loopback")


def validate_observability(
    telemetry: TelemetrySettings, lineage: LineageSettings, notify: dict[str, NotifySettings], file: object
) -> None:
    """Check values that are known only after references are resolved. Raise ConfigError."""
    for section, key, url, token in (
        ("telemetry", "endpoint", telemetry.endpoint, telemetry.token), ("lineage", "url", lineage.url, lineage.token),
    ):  # fmt: skip
        if url is not None:
            check_url(resolve_reference(url, where=f"{file}: [{section}]"), f"{file}: [{section}] {key}")
        if token is not None:
            resolve_secret(token, where=f"{file}: [{section}] token")
    if lineage.url and lineage.file:
        raise ConfigError(f"{file}: [lineage] file and url are mutually exclusive", hint="set only one of them")
    for name, channel in notify.items():
        channel.check(f"{file}: [notify.{name}]")
