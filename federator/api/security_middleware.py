"""Security checks before routing: Host header, authentication, rate limit and the origin of writes."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from federator.api.authentication import CACHE_SECONDS, Authenticator
from federator.api.http_limits import CLOSE
from federator.api.http_middleware import NO_STORE
from federator.api.principals import ANONYMOUS, LOCAL_PRINCIPAL, Principal
from federator.api.problems import RequestRejected, database_error_response, error_response
from federator.api.rate_limit import RequestRateLimiter
from federator.api.routes.sign_in import OPEN_PATHS as SIGN_IN_PATHS
from federator.api.sessions import BrowserSession, SessionAuthenticator
from federator.api.shares import IDENTITY_PROVIDER, PrincipalThreads, ThreadShares
from federator.connector import ConfigError, FederatorError
from federator.connector.options import resolve_secret
from federator.settings import Settings
from federator.store import DatabaseError, Index

#: the page without any data, which shows the form for a token
_PAGE_PATHS = ("/", "/ui")
_PAGE_PREFIXES = ("/ui/", "/web/")
#: headers that pages of allowed origins may send and read
_ALLOWED_REQUEST_HEADERS = ("Authorization", "X-Api-Key", "Content-Type", "If-Match", "If-None-Match")
_EXPOSED_RESPONSE_HEADERS = ("ETag", "Location", "Retry-After", "Federator-Freshness", "Federator-Index", "Federator-Operation")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def is_loopback(host: str) -> bool:
    """Whether a host is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def configured_token(settings: Settings) -> str | None:
    """Return the configured token, resolved; None if none is configured.

    Raise ConfigError if authentication is needed and not configured.
    """
    where = f"{settings.path}: [serve] token"
    text = settings.serve.token
    if text is None:
        if not (is_loopback(settings.serve.host) or settings.serve.oidc or settings.serve.auth == "required"):
            raise ConfigError(
                f"{where}: required to listen on {settings.serve.host}",
                hint='set token = "${FEDERATOR_TOKEN}", or auth = "required" and use federator token, or host = "127.0.0.1"',
            )
        return None
    token = resolve_secret(text, where=where)
    if not token:
        raise ConfigError(f"{where}: is empty")
    return token


def requires_credential(settings: Settings) -> bool:
    """Whether a request needs a credential: a token, or one of the identity provider."""
    serve = settings.serve
    return serve.auth == "required" or serve.token is not None or serve.oidc is not None or not is_loopback(serve.host)


def install_security(
    app: Starlette, settings: Settings, index: Index, token: str | None, *, open_paths: Collection[str],
    sessions: SessionAuthenticator | None,
) -> None:  # fmt: skip
    """Add the security middleware in front of the routes and middleware that the app already has.

    ``open_paths`` need no credential. ``sessions``: None if people cannot sign in with a browser.
    """
    serve, loopback = settings.serve, is_loopback(settings.serve.host)
    verifier = None
    if serve.oidc is not None:
        from federator.api.oidc import JwtVerifier

        verifier = JwtVerifier(serve.oidc)
    authentication = Authenticator(index, token=token, oidc=verifier, required=requires_credential(settings))
    limits = RequestRateLimiter(serve.requests_per_second, serve.burst)
    app.add_middleware(
        SecurityMiddleware, authentication=authentication, sessions=sessions, limits=limits, shares=app.state.thread_shares,
        loopback=loopback, origins=[*serve.cors_origins, *filter(None, [serve.public_url])],
        open_paths=open_paths,
    )  # fmt: skip
    if serve.cors_origins:
        # CORS is outside the security checks, because browsers send preflight requests without a credential.
        app.add_middleware(
            CORSMiddleware, allow_origins=serve.cors_origins, allow_methods=("GET", "HEAD", "POST", "PUT", "DELETE"),
            allow_headers=_ALLOWED_REQUEST_HEADERS, expose_headers=_EXPOSED_RESPONSE_HEADERS,
        )  # fmt: skip


class SecurityMiddleware:
    """ASGI middleware. ``loopback``: the Host header must name this machine. ``origins``: origins whose pages may write,
    besides that of the Host header, which a proxy may have replaced.

    ``open_paths`` need no credential and have no rate limit.
    """

    def __init__(
        self, app: ASGIApp, *, authentication: Authenticator, sessions: SessionAuthenticator | None, limits: RequestRateLimiter,
        shares: ThreadShares, loopback: bool, origins: Sequence[str], open_paths: Collection[str],
    ) -> None:  # fmt: skip
        self._open_paths = open_paths
        self._app = app
        self._authentication = authentication
        self._sessions = sessions
        self._limits = limits
        self._loopback = loopback
        self._origins = origins
        # A provider that does not respond holds up those alone whose credentials it must confirm.
        self._provider_threads = PrincipalThreads(shares, IDENTITY_PROVIDER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        try:
            scope["principal"] = await self._admit(scope, Headers(scope=scope))
        except FederatorError as error:
            if self._sessions is not None and isinstance(error, RequestRejected) and error.status == 401:
                # Without "Basic", a browser shows no password dialog over the page, which offers the sign-in.
                error.headers["WWW-Authenticate"] = "Bearer"
            # Scripts of a page handle a refusal themselves: the page has a form for the token. Only a navigation may open a prompt.
            may_prompt = Headers(scope=scope).get("sec-fetch-mode", "navigate") == "navigate"
            await error_response(scope["path"], error, may_prompt=may_prompt)(scope, receive, send)
            return
        except DatabaseError as error:
            await database_error_response(scope["path"], error)(scope, receive, send)
            return
        await self._app(scope, self._admitting_body(scope, receive), self._admitting_response(scope, send))

    def _admitting_body(self, scope: Scope, receive: Receive) -> Receive:
        """Return ``receive`` that identifies the principal again at the end of the body: a slow body could outlast its credential.

        It raises RequestRejected if the credential is no longer that of the same principal with the same rights.
        """
        principal: Principal = scope["principal"]
        if principal is ANONYMOUS or scope["method"] in _SAFE_METHODS:
            return receive

        async def receive_admitted() -> Message:
            message = await receive()
            is_end = message["type"] == "http.request" and not message.get("more_body", False)
            if is_end and await self._identify(scope, Headers(scope=scope)) != principal:
                raise RequestRejected(401, "Unauthenticated", "the rights of this credential changed while the body arrived")
            return message

        return receive_admitted

    def _admitting_response(self, scope: Scope, send: Send) -> Send:
        """Return ``send`` that ends a response if its credential loses its rights: an event stream, or rows that are read slowly."""
        principal, clock = scope["principal"], asyncio.get_running_loop().time
        if principal in (ANONYMOUS, LOCAL_PRINCIPAL):
            return send
        checked_at, is_over = clock(), False

        async def send_admitted(message: Message) -> None:
            nonlocal checked_at, is_over
            is_checked = message.get("more_body") or _has_secrets(message)
            if not is_over and is_checked and clock() - checked_at > CACHE_SECONDS:
                checked_at = clock()
                if not await self._still_is(scope, principal):
                    is_over = True
                    if message["type"] == "http.response.start":
                        error = RequestRejected(401, "Unauthenticated", "the rights of this credential changed meanwhile")
                        await error_response(scope["path"], error)(scope, _receive_nothing, send)
                        return
                    # The client seems to have left: a stream then ends. It gets no last part, so that rows do not look complete.
                    if (close := scope.get("extensions", {}).get(CLOSE)) is None:
                        raise ClientDisconnect
                    close()
            if not is_over:
                await send(message)

        return send_admitted

    async def _still_is(self, scope: Scope, principal: Principal) -> bool:
        try:
            return await self._identify(scope, Headers(scope=scope)) == principal
        except RequestRejected as error:
            # It may only be too many requests.
            return error.status not in (401, 403)
        except (FederatorError, DatabaseError):
            return True

    async def _admit(self, scope: Scope, headers: Headers) -> Principal:
        # Other servers than ``federator serve`` may pass several.
        if len(hosts := headers.getlist("host")) > 1:
            raise RequestRejected(400, "Bad request", f"a request has one Host header, not {len(hosts)}")
        host = headers.get("host", "")
        if self._loopback and not is_loopback(_hostname(host)):
            raise RequestRejected(
                421, "Misdirected request", f"this service accepts only localhost as Host, not {host or 'an empty Host'}",
                hint="let the proxy send Host: localhost, or set another [serve] host, which needs credentials",
            )  # fmt: skip
        if scope["path"] in self._open_paths or _is_page(scope):
            return ANONYMOUS
        if self._sessions is not None and scope["path"] in SIGN_IN_PATHS:
            self._refuse_after(self._limits.try_acquire(_address(scope)))
            return ANONYMOUS
        principal = await self._identify(scope, headers)
        if principal is not LOCAL_PRINCIPAL:
            self._refuse_after(self._limits.try_acquire(principal.name))
        origin = headers.get("origin")
        is_foreign = origin is not None and origin not in self._origins and origin.partition("://")[2] != host
        if scope["method"] not in _SAFE_METHODS and is_foreign:
            raise RequestRejected(
                403, "Permission denied", f"pages of {origin} are not allowed to write",
                hint="behind a proxy, let it keep the Host header, or list the address of the page in [serve] cors_origins",
            )  # fmt: skip
        if self._sessions is not None and (session := scope.get("session")) and scope["method"] not in _SAFE_METHODS:
            self._sessions.require_own_page(session, headers)
        return principal

    async def _identify(self, scope: Scope, headers: Headers) -> Principal:
        # A credential in a header counts: the browser adds the cookie to every request by itself.
        if self._sessions is not None and "authorization" not in headers and "x-api-key" not in headers:
            secret = self._sessions.cookie.read(headers)
            if secret is not None:
                scope["session"] = session = await self._find_session(self._sessions, secret, _address(scope))
                return session.principal
        # Failed attempts are counted by client address, because no principal is known.
        address = _address(scope)
        try:
            result = self._authentication.authenticate_cached(headers)
        except RequestRejected:
            self._refuse_after(self._limits.try_acquire(address))
            raise
        if isinstance(result, Principal):
            return result
        # Counted before the lookup, so that guesses beyond the limit cost neither a query nor a signature check.
        self._refuse_after(self._limits.try_acquire(address))
        if self._authentication.needs_provider(result):
            principal = await self._provider_threads.run(self._authentication.authenticate, result)
        else:
            principal = await run_in_threadpool(self._authentication.authenticate, result)
        self._limits.give_back(address)
        return principal

    async def _find_session(self, sessions: SessionAuthenticator, secret: str, address: str) -> BrowserSession:
        session = sessions.authenticate_cached(secret)
        if session is None:
            self._refuse_after(self._limits.try_acquire(address))
            session = await run_in_threadpool(sessions.authenticate, secret)
            self._limits.give_back(address)
        return session

    def _refuse_after(self, wait: int) -> None:
        if wait:
            headers = {"Retry-After": str(wait)}
            raise RequestRejected(429, "Too many requests", f"too many requests, retry in {wait} s", headers=headers)


def _has_secrets(message: Message) -> bool:
    """Return whether a response begins that nothing may store: issuing credentials may outlast those of the request."""
    begins = message["type"] == "http.response.start"
    return begins and Headers(raw=message["headers"]).get("cache-control") == NO_STORE["Cache-Control"]


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}


def _address(scope: Scope) -> str:
    return f"address:{(scope.get('client') or ('', 0))[0]}"


def _is_page(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] in _SAFE_METHODS and (path in _PAGE_PATHS or path.startswith(_PAGE_PREFIXES))


def _hostname(host: str) -> str:
    try:
        parts = urlsplit(f"//{host}")
    except ValueError:
        return ""
    # RFC 9110 7.2: a Host header has no user.
    return parts.hostname or "" if parts.username is None else ""
