"""HTTP client of one server, with timeouts, retries of repeatable requests, authentication and error mapping.

It uses proxies, but does not follow redirects and does not read ``.netrc``: neither a response nor another program's file can
redirect the credentials of the source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from email.utils import parsedate_to_datetime
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase
from requests.exceptions import RequestException

from federator.connector import CallLimits, CatalogError, Internal, InvalidInput, ServiceUnavailable, shared_call_policy
from federator_connectors._http.authentication import Authentication, FixedHeaders
from federator_connectors._http.response import ErrorOf, HttpResponse, TlsOptions

CONNECT_TIMEOUT_SECONDS = 10.0
READ_TIMEOUT_SECONDS = 60.0
_AGENT = "lance-federator"
#: methods that may be sent twice, because they do not change anything
_REPEATABLE = frozenset({"GET", "HEAD"})

Params = Mapping[str, str | int | None]


#: adds the headers of a signature to a request that is otherwise complete
Sign = Callable[[requests.PreparedRequest], None]


class _AsGiven(AuthBase):
    """Keeps a request's path as it was given, then signs the request.

    ``requests`` decodes ``%2E``, which servers tell from a period. Without an authentication, it would also read ``.netrc``.
    """

    def __init__(self, path: str, sign: Sign | None) -> None:
        self._path = path
        self._sign = sign

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.url = urlsplit(request.url or "")._replace(path=self._path).geturl()
        if self._sign:
            self._sign(request)
        return request


class HttpClient:
    """A client of one server. Thread-safe; ``close`` closes its idle connections.

    ``base`` is the URL before every path. ``error_of`` maps a response without success (2xx) to a CatalogError. ``sign`` is called for
    each request, last of all; it may raise CatalogError. ``connections`` is the most that are open at once; a request waits for one.
    """

    def __init__(
        self,
        source: str,
        base: str,
        *,
        error_of: ErrorOf,
        authentication: Authentication | None = None,
        limits: CallLimits | None = None,
        tls: TlsOptions | None = None,
        connect_timeout: float = CONNECT_TIMEOUT_SECONDS,
        read_timeout: float = READ_TIMEOUT_SECONDS,
        sign: Sign | None = None,
        connections: int | None = None,
    ) -> None:
        self._source = source
        self._base = base.rstrip("/")
        self._error_of = error_of
        self._authentication: Authentication = authentication or FixedHeaders()
        self._call_policy = shared_call_policy(source, self._base, limits or CallLimits())
        self._tls = tls or TlsOptions()
        self._timeouts = (connect_timeout, read_timeout)
        self._sign = sign
        self._slots = BoundedSemaphore(connections) if connections else nullcontext()
        # A requests session is not thread-safe, so each request borrows one, with its connection. A deque's append and pop are atomic.
        self._idle: deque[requests.Session] = deque()

    def get(self, path: str, params: Params | None = None, *, about: str, error_of: ErrorOf | None = None) -> HttpResponse:
        """Send a GET request. ``about`` describes it in messages: ``listing the tables of a$b``. Raise CatalogError."""
        return self.send("GET", path, params=params, about=about, error_of=error_of)

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
    ) -> HttpResponse:
        """Send one request and return its response. Raise CatalogError.

        ``path`` must be percent-encoded. ``body`` is sent as JSON. Parameters that are None are omitted. By default only GET and
        HEAD are repeated after retryable errors; ``repeatable`` overrides this, for example for a POST that only reads.
        ``error_of`` replaces the client's mapping if the meaning of a status depends on the request.
        """
        operation = f"{self._source}: {about}"
        may_repeat = method in _REPEATABLE if repeatable is None else repeatable

        def send_once() -> HttpResponse:
            response = self._send_checked(operation, method, path, params, body, form)
            if not 200 <= response.status < 300:
                raise self._redact_error(self._redirect_error(response) or (error_of or self._error_of)(response))
            return response

        return self._call_policy.call(send_once, repeatable=may_repeat)

    def close(self) -> None:
        """Close the idle connections. The client stays usable; a second call has no effect."""
        while self._idle:
            self._idle.pop().close()

    def _send_checked(
        self, operation: str, method: str, path: str, params: Params | None, body: Any, form: Mapping[str, str] | None
    ) -> HttpResponse:
        response = self._send_once(operation, method, path, params, body, form)
        if response.status == 401 and self._authentication.discard_refused_token():
            # Status 401 means that the server did not process the request, so a write may also be sent again.
            response = self._send_once(operation, method, path, params, body, form)
        return response

    def _send_once(
        self, operation: str, method: str, path: str, params: Params | None, body: Any, form: Mapping[str, str] | None
    ) -> HttpResponse:
        headers = {"User-Agent": _AGENT, "Accept": "application/json", **self._authentication.headers()}
        url = f"{self._base}{path}"
        query = {key: value for key, value in (params or {}).items() if value is not None}
        try:
            # Passed with every request, because REQUESTS_CA_BUNDLE would override a setting of the session.
            with self._slots, self._borrow_session() as session:
                response = session.request(
                    method, url, params=query, json=body, data=form, headers=headers, timeout=self._timeouts, allow_redirects=False,
                    auth=_AsGiven(urlsplit(url).path or "/", self._sign), verify=self._tls.requests_verify,
                )  # fmt: skip
            return HttpResponse(
                operation, response.status_code, response.text, response.headers.get("Content-Type", ""), _retry_after(response)
            )
        except RequestException as error:
            raise self._redact_error(self._connection_error(operation, error)) from None
        except CatalogError:
            raise
        except Exception as error:
            # Malformed responses raise other errors in the client's own code, for example an unknown charset or an invalid date.
            raise Internal(f"{operation}: the response of {self._base} cannot be read ({type(error).__name__})") from error

    @contextmanager
    def _borrow_session(self) -> Iterator[requests.Session]:
        try:
            session = self._idle.pop()
        except IndexError:
            session = requests.Session()
            session.cert = self._tls.requests_certificate
        try:
            yield session
        finally:
            self._idle.append(session)

    def _connection_error(self, operation: str, error: RequestException) -> CatalogError:
        if isinstance(error, requests.exceptions.SSLError):
            return ServiceUnavailable(
                f"{operation}: TLS with {self._base} failed: {_innermost_cause(error)}", hint="check tls.* of the source"
            )
        if isinstance(error, requests.exceptions.Timeout):
            return ServiceUnavailable(f"{operation}: {self._base} did not answer in time: {_innermost_cause(error)}")
        if isinstance(error, requests.exceptions.ConnectionError | requests.exceptions.ChunkedEncodingError):
            return ServiceUnavailable(f"{operation}: {self._base} is not reachable: {_innermost_cause(error)}")
        if isinstance(error, requests.exceptions.ContentDecodingError):
            return Internal(f"{operation}: the response of {self._base} cannot be decoded: {_innermost_cause(error)}")
        return InvalidInput(f"{operation}: the request to {self._base} could not be made: {_innermost_cause(error)}")

    def _redirect_error(self, response: HttpResponse) -> CatalogError | None:
        if not 300 <= response.status < 400:
            return None
        hint = (
            "configure the address that it redirects to; redirects are not followed, so that credentials are sent nowhere else"
        )
        return InvalidInput(f"{response.operation}: {self._base} redirects (HTTP {response.status})", hint=hint)

    def _redact_error(self, error: CatalogError) -> CatalogError:
        """Return the error with secrets redacted, because a server may repeat them."""
        for secret in filter(None, self._authentication.secrets()):
            if secret in error.message:
                error.message = error.message.replace(secret, "***")
                error.args = (error.message,)
        return error


def _innermost_cause(error: BaseException) -> str:
    """Return the text of the innermost cause: requests and urllib3 wrap it three times."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    text = str(reason or error)
    return text.rpartition(": ")[2] if "object at 0x" in text else text


def _retry_after(response: requests.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    if text.isdigit():
        return float(text)
    try:
        retry_at = parsedate_to_datetime(text)
    except ValueError:
        return None
    # Relative to the server's clock, if the response has a date.
    try:
        now = parsedate_to_datetime(response.headers.get("Date", ""))
    except ValueError:
        return None
    return max(0.0, (retry_at - now).total_seconds())
