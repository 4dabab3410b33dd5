"""Who may ask: the token, the Host header on loopback, the origin of writes; and the headers that every answer carries."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federator.api.access import LOCAL
from federator.api.problems import Refused, of_error
from federator.connector import ConfigError
from federator.connector.options import is_reference, resolve, secret
from federator.settings import Settings

#: probes carry no token
OPEN_PATHS = ("/healthz", "/readyz")
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_SAFE = ("GET", "HEAD", "OPTIONS")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def token_of(settings: Settings) -> str | None:
    """The configured token, resolved. Raises ConfigError where one is needed and not there, or stands in the file in clear."""
    where = f"{settings.path}: [serve] token"
    text = settings.serve.token
    if text is None:
        if not is_loopback(settings.serve.host):
            raise ConfigError(
                f"{where}: required to listen on {settings.serve.host}",
                hint='token = "${FEDERATOR_TOKEN}", or host = "127.0.0.1"',
            )
        return None
    if not is_reference(text):
        raise ConfigError(f"{where}: a secret must not stand in the file", hint="write ${VARIABLE} or file:PATH")
    try:
        token = secret(resolve(text, where=where))
    except ValueError as error:
        raise ConfigError(f"{where}: not {error}") from None
    if not token:
        raise ConfigError(f"{where}: is empty")
    return token


class Guard:
    """ASGI middleware. ``token`` None means that none is asked for; ``loopback`` that the Host header must name this
    machine; ``inline`` are the digests of the scripts and styles of our own pages."""

    def __init__(self, app: ASGIApp, *, token: str | None, loopback: bool, inline: Sequence[str]) -> None:
        self._app = app
        self._token = token.encode() if token is not None else None
        self._loopback = loopback
        allowed = " ".join(f"'{digest}'" for digest in inline)
        self._page_policy = f"{_POLICY}; script-src {allowed}; style-src {allowed}; connect-src 'self'; img-src data:"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._harden(MutableHeaders(scope=message))
            await send(message)

        try:
            self._check(scope, Headers(scope=scope))
            scope["caller"] = LOCAL
        except Refused as refused:
            await of_error(scope["path"], refused)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "")
        if self._loopback and not is_loopback(_hostname(host)):
            raise Refused(421, "Misdirected request", f"this service answers for localhost, not for {host or 'no Host'}")
        if scope["path"] not in OPEN_PATHS and self._token is not None and not self._carries_token(headers):
            raise Refused(401, "Unauthenticated", "a token is required: Authorization: Bearer <token>")
        origin = headers.get("origin")
        if scope["method"] not in _SAFE and origin is not None and urlsplit(origin).netloc != host:
            raise Refused(403, "Permission denied", "a page of another origin may not write here")

    def _carries_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            # What a browser can send for the page: the token as the password of any user.
            try:
                given = base64.b64decode(given, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token or b"")

    def _harden(self, headers: MutableHeaders) -> None:
        headers["X-Content-Type-Options"] = "nosniff"
        headers["X-Frame-Options"] = "DENY"
        headers["Referrer-Policy"] = "no-referrer"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        page = headers.get("content-type", "").startswith("text/html")
        headers["Content-Security-Policy"] = self._page_policy if page else _POLICY
        # Kept by nobody but the one who asked, and asked for again with its ETag.
        headers.setdefault("Cache-Control", "private, no-cache")


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
