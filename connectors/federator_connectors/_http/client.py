"""HTTP client of one server, with timeouts, retries of repeatable requests, authentication and error mapping.

It uses proxies, but does not follow redirects and does not read ``.netrc``: neither a response nor another program's file can
redirect the credentials of the source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.exceptions import RequestException
from urllib3 import PoolManager

from federator.connector import CallLimits, CatalogError, Internal, InvalidInput, ServiceUnavailable, shared_call_policy
from federator.connector.call_deadline import CallDeadline, CallSlots, call_seconds
from federator.connector.catalog_pool import close_idle
from federator_connectors._http.authentication import Authentication, FixedHeaders
from federator_connectors._http.response import STATUSES_OF_REFUSED_TOKENS, ErrorOf, HttpResponse, TlsOptions
from federator_connectors._http.watched_connections import watch_pools

CONNECT_TIMEOUT_SECONDS = 10.0
READ_TIMEOUT_SECONDS = 60.0
_AGENT = "lance-federator"
#: methods that may be sent twice, because they do not change anything
_REPEATABLE = frozenset({"GET", "HEAD"})
# A part of a response. No request asks for one.
_PARTIAL_CONTENT = 206

Params = Mapping[str, str | int | None]
#: adds the headers of a signature to a request that is otherwise complete
Sign = Callable[[requests.PreparedRequest], None]


class WatchedAdapter(HTTPAdapter):
    """An adapter of requests whose connections end with the deadline of their call, also through a proxy."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        watch_pools(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **options: Any) -> PoolManager:
        manager: PoolManager = super().proxy_manager_for(*args, **options)
        watch_pools(manager)
        return manager


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

    ``base`` is the URL before every path. ``error_of`` maps a response without success (2xx, but not 206) to a CatalogError. ``sign``
    is called for each request, last of all; it may raise CatalogError. ``connections`` is the most that are open at once; a request
    waits for one.
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
        self._slots = CallSlots(connections)
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
            response = self._send_authenticated(
                partial(self._send, operation, method, path, params, body, form, writes=not may_repeat)
            )
            if not 200 <= response.status < 300 or response.status == _PARTIAL_CONTENT:
                raise self._redact_error(self._redirect_error(response) or (error_of or self._error_of)(response))
            return response

        # Waiting comes first: by then, the server may have failed to respond to the calls before, so that this one is not made.
        with self._slots:
            return self._call_policy.call(send_once, repeatable=may_repeat)

    def close(self) -> None:
        """Close the idle connections. The client stays usable; a second call has no effect."""
        close_idle(self._idle)

    def _send_authenticated(self, send: Callable[[Mapping[str, str]], HttpResponse]) -> HttpResponse:
        """Return the response of ``send``, which is given the headers of the authentication. A refused token is replaced once."""
        sent = self._authentication.headers()
        response = send(sent)
        if response.status in STATUSES_OF_REFUSED_TOKENS and self._authentication.discard_refused_token(sent):
            # The status means that the server did not process the request, so a write may also be sent again.
            response = send(self._authentication.headers())
        return response

    def _send(
        self,
        operation: str,
        method: str,
        path: str,
        params: Params | None,
        body: Any,
        form: Mapping[str, str] | None,
        authentication: Mapping[str, str],
        *,
        writes: bool,
    ) -> HttpResponse:
        headers = {"User-Agent": _AGENT, "Accept": "application/json", **authentication}
        url, seconds = f"{self._base}{path}", call_seconds(*self._timeouts, writes=writes)
        query = {key: value for key, value in (params or {}).items() if value is not None}
        try:
            # ``verify`` is an argument of every request, because REQUESTS_CA_BUNDLE would override a setting of the session.
            with self._borrow_session() as session, CallDeadline(f"{operation}: {self._base}", seconds):
                response = session.request(
                    method, url, params=query, json=body, data=form, headers=headers, timeout=self._timeouts, allow_redirects=False,
                    auth=_AsGiven(urlsplit(url).path or "/", self._sign), verify=self._tls.requests_verify,
                )  # fmt: skip
            return HttpResponse(operation, response.status_code, response.text, _retry_after(response))
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
            for scheme in ("http://", "https://"):
                session.mount(scheme, WatchedAdapter())
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
            connect, read = self._timeouts
            is_connect = isinstance(error, requests.exceptions.ConnectTimeout)
            limit = f"connect timeout={connect:g} s" if is_connect else f"read timeout={read:g} s"
            return ServiceUnavailable(f"{operation}: {self._base} did not respond in time ({limit})")
        if isinstance(error, requests.exceptions.ConnectionError | requests.exceptions.ChunkedEncodingError):
            return ServiceUnavailable(
                f"{operation}: {self._base} cannot be reached ({_innermost_cause(error)})",
                hint="check the address and the network",
            )
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
    """Return the operating system's text of an error that requests and urllib3 wrap several times, else the innermost text."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        error, cause = cause, next((part for part in _wrapped(cause) if isinstance(part, BaseException)), None)
    return str(error)


def _wrapped(error: BaseException) -> Iterator[object]:
    """Yield what may be the cause of an error: urllib3 has it as ``reason`` or as an argument."""
    yield getattr(error, "reason", None)
    yield from error.args
    yield error.__cause__


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
