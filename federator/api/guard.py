"""Before every route: the Host header on loopback, who asks, how often, the origin of writes."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from federator.api.access import LOCAL, Caller, Role
from federator.api.authentication import Authentication
from federator.api.limits import Limits
from federator.api.problems import Refused, of_database, of_error
from federator.connector import ConfigError, FederatorError
from federator.connector.options import is_reference, resolve, secret
from federator.index import DatabaseError, Index
from federator.model.scopes import Scopes
from federator.settings import Settings

#: probes carry no token
OPEN_PATHS = ("/healthz", "/readyz")
#: headers that pages of other origins may send, and read
_ASKED_WITH = ("Authorization", "X-Api-Key", "Content-Type", "If-Match", "If-None-Match")
_ANSWERED_WITH = ("ETag", "Location", "Retry-After", "Federator-Freshness", "Federator-Index", "Federator-Operation")
_NOBODY = Caller("nobody", Role.VIEWER, Scopes())
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
        if not (is_loopback(settings.serve.host) or settings.serve.oidc or settings.serve.auth == "required"):
            raise ConfigError(
                f"{where}: required to listen on {settings.serve.host}",
                hint='token = "${FEDERATOR_TOKEN}", or auth = "required" with tokens of federator token, or host = "127.0.0.1"',
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


def install(app: Starlette, settings: Settings, index: Index, token: str | None) -> None:
    """Puts the guard before everything that an app has by now."""
    serve, loopback = settings.serve, is_loopback(settings.serve.host)
    verifier = None
    if serve.oidc is not None:
        from federator.api.oidc import Verifier

        verifier = Verifier(serve.oidc)
    required = serve.auth == "required" or token is not None or verifier is not None or not loopback
    authentication = Authentication(index, token=token, oidc=verifier, required=required)
    limits = Limits(serve.requests_per_second, serve.burst)
    app.add_middleware(Guard, authentication=authentication, limits=limits, loopback=loopback, origins=serve.cors_origins)
    if serve.cors_origins:
        # Outside the guard: a browser asks beforehand, without a credential.
        app.add_middleware(
            CORSMiddleware, allow_origins=serve.cors_origins, allow_methods=("GET", "HEAD", "POST", "PUT", "DELETE"),
            allow_headers=_ASKED_WITH, expose_headers=_ANSWERED_WITH,
        )  # fmt: skip


class Guard:
    """ASGI middleware. ``loopback`` means that the Host header must name this machine; pages of ``origins`` may write, besides our
    own."""

    def __init__(
        self, app: ASGIApp, *, authentication: Authentication, limits: Limits, loopback: bool, origins: Sequence[str]
    ) -> None:
        self._app = app
        self._authentication = authentication
        self._limits = limits
        self._loopback = loopback
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        try:
            scope["caller"] = await self._admitted(scope, Headers(scope=scope))
        except FederatorError as refused:
            await of_error(scope["path"], refused)(scope, receive, send)
            return
        except DatabaseError as error:
            await of_database(scope["path"], error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admitted(self, scope: Scope, headers: Headers) -> Caller:
        host = headers.get("host", "")
        if self._loopback and not is_loopback(_hostname(host)):
            raise Refused(421, "Misdirected request", f"this service answers for localhost, not for {host or 'no Host'}")
        if scope["path"] in OPEN_PATHS:
            return _NOBODY
        caller = await self._caller(scope, headers)
        if caller is not LOCAL:
            self._pass(caller.name)
        origin = headers.get("origin")
        foreign = origin is not None and origin not in self._origins and urlsplit(origin).netloc != host
        if scope["method"] not in _SAFE and foreign:
            raise Refused(403, "Permission denied", "a page of another origin may not write here")
        return caller

    async def _caller(self, scope: Scope, headers: Headers) -> Caller:
        try:
            found = self._authentication.at_once(headers)
            return found if isinstance(found, Caller) else await run_in_threadpool(self._authentication.ask, found)
        except Refused:
            # Guesses are counted where they come from; who they are is not known.
            self._pass(f"address:{(scope.get('client') or ('', 0))[0]}")
            raise

    def _pass(self, name: str) -> None:
        wait = self._limits.take(name)
        if wait:
            headers = {"Retry-After": str(wait)}
            raise Refused(429, "Too many requests", f"too many requests: again in {wait} s", headers=headers)


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
