"""Sign-in and sign-out of people with a browser. The routes exist only if ``[serve.oidc.sign_in]`` is configured."""

from __future__ import annotations

import threading
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from federator import logs, web
from federator.api.claims import Grant, grant_principal
from federator.api.cookies import Cookie
from federator.api.dependencies import HOLD_PROVIDER_SHARE
from federator.api.http_middleware import NO_STORE
from federator.api.problems import RequestRejected
from federator.api.rate_limit import RequestRateLimiter
from federator.api.sessions import BrowserSession, SessionAuthenticator
from federator.api.sign_in import SIGN_IN_SECONDS, UNKNOWN_PERSON, SignIn, SignInRefused
from federator.connector import FederatorError
from federator.connector.options import resolve_secret
from federator.settings import Settings
from federator.settings.oidc import CALLBACK_PATH, SignInSettings
from federator.store import Index, sessions

LOGIN_PATH, LOGOUT_PATH = "/auth/login", "/auth/logout"
#: paths that a browser requests before a person is signed in
OPEN_PATHS = ("/", LOGIN_PATH, CALLBACK_PATH)
# The rate at which one process records refused callbacks in the audit log, and how many it records at once.
_RECORDS_PER_SECOND, _RECORDS_AT_ONCE = 0.2, 50
_log = logs.get_logger(__name__)


def install_sign_in(app: FastAPI, settings: Settings, index: Index) -> SessionAuthenticator | None:
    """Add the routes and return what authenticates the sessions. None if the sign-in is not configured.

    Raise ConfigError if the client secret cannot be read.
    """
    oidc = settings.serve.oidc
    if oidc is None or oidc.sign_in is None:
        return None
    from federator.api.oidc import JwtVerifier

    authenticator = SessionAuthenticator(index, oidc, oidc.sign_in)
    sign_in = SignIn(oidc, oidc.sign_in, JwtVerifier(oidc), client_secret=_read_client_secret(settings, oidc.sign_in))
    app.include_router(_Routes(index, sign_in, authenticator, Cookie("sign-in", oidc.sign_in)).build_router())
    return authenticator


def _read_client_secret(settings: Settings, sign_in: SignInSettings) -> str | None:
    if sign_in.client_secret is None:
        return None
    return resolve_secret(sign_in.client_secret, where=f"{settings.path}: [serve.oidc.sign_in] client_secret")


class _Routes:
    """The routes. ``cookie`` carries an unfinished sign-in from ``login`` to ``callback``; the session has another one."""

    def __init__(self, index: Index, sign_in: SignIn, authenticator: SessionAuthenticator, cookie: Cookie) -> None:
        self._index, self._sign_in, self._sessions, self._cookie = index, sign_in, authenticator, cookie
        # Routes run in threads, and the limiter is not safe for them.
        self._recording = threading.Lock()
        self._record_limiter = RequestRateLimiter(_RECORDS_PER_SECOND, _RECORDS_AT_ONCE)
        # Refusals beyond the rate since the last recorded one, which the next recorded one reports.
        self._unrecorded = 0

    def build_router(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        for path, route in ((LOGIN_PATH, self.login), (CALLBACK_PATH, self.callback)):
            router.add_api_route(path, route, methods=["GET"], response_class=Response, dependencies=[HOLD_PROVIDER_SHARE])
        router.add_api_route(LOGOUT_PATH, self.logout, methods=["POST"], response_class=Response)
        return router

    def login(self, return_to: Annotated[str, Query(max_length=1000)] = "/", *, fresh: bool = False) -> Response:
        """Send the browser to the identity provider. ``fresh``: it asks for credentials even if the person is signed in there."""
        try:
            started = self._sign_in.start(return_to, fresh=fresh)
        except FederatorError as error:
            return _message_page(error)
        response = Response(status_code=303, headers={"Location": started.url, **NO_STORE})
        self._cookie.set(response, started.cookie, SIGN_IN_SECONDS)
        return response

    def callback(self, request: Request) -> Response:
        """Finish a sign-in: create a session and send the browser to the page that it came from."""
        try:
            response = self._finish(request)
        except FederatorError as error:
            address = request.client.host if request.client else None
            _log.warning("sign-in refused", reason=error.message, address=address)
            if isinstance(error, RequestRejected):
                self._record_refusal(error, address)
            response = _message_page(error)
        self._cookie.delete(response)
        return response

    def _finish(self, request: Request) -> Response:
        earlier_session = self._sessions.cookie.read(request.headers)
        grant, return_to = self._sign_in.finish(request.query_params, self._cookie.read(request.headers))
        try:
            principal = grant_principal(self._sessions.settings, grant)
        except RequestRejected:
            raise self._refuse_person(grant, "role") from None
        if not principal.scopes.prefixes:
            raise self._refuse_person(grant, "scopes")
        secret = self._sessions.sign_in(grant, principal, replaced=earlier_session)
        response = Response(status_code=303, headers={"Location": return_to, **NO_STORE})
        self._sessions.cookie.set(response, secret, self._sessions.limits.lifetime)
        return response

    def _refuse_person(self, grant: Grant, missing: str) -> SignInRefused:
        """Return the error for a person who has no rights any more, and end the sessions from before."""
        actor = sessions.principal_name(grant.name)
        sessions.revoke_sessions(self._index, grant.name, actor=actor)
        message = f"{grant.name} is signed in, but has no {missing} here. Ask an administrator."
        return SignInRefused(message, status=403, actor=actor, reason=f"no {missing}")

    def _record_refusal(self, error: RequestRejected, address: str | None) -> None:
        """Record a refusal in the audit log. Anybody can send callbacks, so beyond a rate they are only counted."""
        actor, reason = (error.actor, error.reason) if isinstance(error, SignInRefused) else (UNKNOWN_PERSON, error.message)
        with self._recording:
            # One bucket for all of them: nobody is known yet.
            wait_seconds = self._record_limiter.try_acquire("")
            if wait_seconds:
                self._unrecorded += 1
                return
            sessions.record_refusal(self._index, actor=actor, reason=reason, address=address, unrecorded=self._unrecorded)
            self._unrecorded = 0

    def logout(self, request: Request) -> Response:
        """End the session of the browser. The person stays signed in at the identity provider."""
        session: BrowserSession | None = request.scope.get("session")
        if session is None:
            raise RequestRejected(400, "Invalid input", "only a signed-in person can sign out; revoke a token instead")
        self._sessions.sign_out(session)
        response = Response(status_code=204, headers=NO_STORE)
        self._sessions.cookie.delete(response)
        return response


def _message_page(error: FederatorError) -> HTMLResponse:
    status = error.status if isinstance(error, RequestRejected) else 503
    page = web.build_message("Sign-in refused" if status < 500 else "Sign-in unavailable", error.message, LOGIN_PATH)
    return HTMLResponse(page, status, headers=NO_STORE)
