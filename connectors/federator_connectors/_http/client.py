"""One HTTP server, asked politely: time limits, retries of what may be repeated, one sign-in, one mapping of errors.

Redirects are not followed, proxies are, and ``.netrc`` is not read: an answer or a file of someone else's never decides where our
credentials go.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import requests
from requests.auth import AuthBase
from requests.exceptions import RequestException

from federator.connector import CatalogError, Internal, InvalidInput, Limits, ServiceUnavailable, politeness
from federator_connectors._http.answer import Answer, ErrorOf, Tls
from federator_connectors._http.signin import FixedHeaders, SignIn

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0
_AGENT = "lance-federator"
#: what may be sent twice without doing it twice
_REPEATABLE = frozenset({"GET", "HEAD"})

Params = Mapping[str, str | int | None]


class _NoNetrc(AuthBase):
    """Keeps requests from reading ``.netrc``, which it does where no authentication is given."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


class HttpClient:
    """A client of one server. Thread-safe; ``close`` ends its connections.

    ``base`` is the URL before every path. ``error_of`` turns what is no success (2xx) into an error of ours.
    """

    def __init__(
        self,
        source: str,
        base: str,
        *,
        error_of: ErrorOf,
        sign_in: SignIn | None = None,
        limits: Limits | None = None,
        tls: Tls | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        self._source = source
        self._base = base.rstrip("/")
        self._error_of = error_of
        self._sign_in: SignIn = sign_in or FixedHeaders()
        self._politeness = politeness(source, self._base, limits or Limits())
        self._tls = tls or Tls()
        self._timeouts = (connect_timeout, read_timeout)
        # A requests session is not for two threads at once.
        self._local = threading.local()
        self._sessions: list[requests.Session] = []

    def get(self, path: str, params: Params | None = None, *, about: str) -> Answer:
        """Reads. ``about`` says what, for messages: ``listing the tables of a$b``. Raises CatalogError."""
        return self.send("GET", path, params=params, about=about)

    def send(
        self,
        method: str,
        path: str,
        *,
        about: str,
        params: Params | None = None,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        error_of: ErrorOf | None = None,
    ) -> Answer:
        """Sends one request; ``path`` is already percent-encoded, ``body`` becomes JSON, parameters that are None are left out.

        Only GET is repeated after soft errors, unless ``repeatable`` says otherwise (a POST that only reads). ``error_of`` takes the
        place of the client's, where what a status means depends on what was asked. Raises CatalogError.
        """
        what = f"{self._source}: {about}"
        again = method in _REPEATABLE if repeatable is None else repeatable

        def once() -> Answer:
            answer = self._answered(what, method, path, params, body, form)
            if not 200 <= answer.status < 300:
                raise self._clean(self._redirected(answer) or (error_of or self._error_of)(answer))
            return answer

        return self._politeness.call(once, repeatable=again)

    def close(self) -> None:
        """Harmless twice; the client stays usable."""
        sessions, self._sessions = self._sessions, []
        self._local = threading.local()
        for session in sessions:
            session.close()

    def _answered(
        self, what: str, method: str, path: str, params: Params | None, body: Any, form: Mapping[str, str] | None
    ) -> Answer:
        answer = self._sent(what, method, path, params, body, form)
        if answer.status == 401 and self._sign_in.refused():
            # Refused before it was looked at, so that also a write may be sent again.
            answer = self._sent(what, method, path, params, body, form)
        return answer

    def _sent(
        self, what: str, method: str, path: str, params: Params | None, body: Any, form: Mapping[str, str] | None
    ) -> Answer:
        headers = {"User-Agent": _AGENT, "Accept": "application/json", **self._sign_in.headers()}
        given = {key: value for key, value in (params or {}).items() if value is not None}
        try:
            # Said with every request: REQUESTS_CA_BUNDLE would override what the session says.
            response = self._session().request(
                method, f"{self._base}{path}", params=given, json=body, data=form, headers=headers,
                timeout=self._timeouts, allow_redirects=False, verify=self._tls.requests_verify,
            )  # fmt: skip
            return Answer(
                what, response.status_code, response.text, response.headers.get("Content-Type", ""), _retry_after(response)
            )
        except RequestException as error:
            raise self._clean(self._unanswered(what, error)) from None
        except Exception as error:
            # What a response makes the client's own code raise: a charset that nobody knows, a header that is no date, and so on.
            raise Internal(f"{what}: the response of {self._base} cannot be read ({type(error).__name__})") from error

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.auth = _NoNetrc()
            session.cert = self._tls.requests_certificate
            self._sessions.append(session)
        return session

    def _unanswered(self, what: str, error: RequestException) -> CatalogError:
        if isinstance(error, requests.exceptions.SSLError):
            return ServiceUnavailable(
                f"{what}: TLS with {self._base} failed: {_cause(error)}", hint="check tls.* of the source"
            )
        if isinstance(error, requests.exceptions.Timeout):
            return ServiceUnavailable(f"{what}: {self._base} did not answer in time: {_cause(error)}")
        if isinstance(error, requests.exceptions.ConnectionError | requests.exceptions.ChunkedEncodingError):
            return ServiceUnavailable(f"{what}: {self._base} is not reachable: {_cause(error)}")
        if isinstance(error, requests.exceptions.ContentDecodingError):
            return Internal(f"{what}: the response of {self._base} cannot be decoded: {_cause(error)}")
        return InvalidInput(f"{what}: the request to {self._base} could not be made: {_cause(error)}")

    def _redirected(self, answer: Answer) -> CatalogError | None:
        if not 300 <= answer.status < 400:
            return None
        hint = "redirects are not followed, so that credentials stay here; write the address that it redirects to"
        return InvalidInput(f"{answer.about}: {self._base} redirects (HTTP {answer.status})", hint=hint)

    def _clean(self, error: CatalogError) -> CatalogError:
        """The error without our secrets, should the server have repeated one."""
        for secret in filter(None, self._sign_in.secrets()):
            if secret in error.message:
                error.message = error.message.replace(secret, "***")
                error.args = (error.message,)
        return error


def _cause(error: BaseException) -> str:
    """The innermost reason: requests and urllib3 wrap it three times."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    text = str(reason or error)
    return text.rpartition(": ")[2] if "object at 0x" in text else text


def _retry_after(response: requests.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    if text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    # By the server's own clock, where it tells it.
    try:
        now = parsedate_to_datetime(response.headers.get("Date", ""))
    except ValueError:
        return None
    return max(0.0, (at - now).total_seconds())
