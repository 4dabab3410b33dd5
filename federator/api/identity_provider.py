"""Requests to the identity provider: its discovery document and its token endpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from federator import logs
from federator.connector import ServiceUnavailable
from federator.settings import OidcSettings
from federator.settings.field_types import check_web_url

_DISCOVERY = "/.well-known/openid-configuration"
#: after a failed request the provider is not called for this time: otherwise each API request would wait for its timeout
RETRY_SECONDS = 5.0
_CACHE_SECONDS = 3600.0
_MAX_DOCUMENT_BYTES = 1_000_000
_log = logs.get_logger(__name__)

#: what a request to the provider raises if it fails
PROVIDER_ERRORS = (OSError, HTTPException, ValueError, RecursionError)


class TokenRequestRefused(Exception):
    """The token endpoint refused the code. The text is the provider's error code."""


@dataclass(frozen=True, slots=True)
class ProviderDocument:
    """The part of a discovery document (OpenID Connect Discovery 1.0, section 3) that a sign-in uses."""

    authorization_endpoint: str
    token_endpoint: str
    #: the redirect to the service has a parameter ``iss``
    sends_issuer: bool
    #: the client may be authenticated with HTTP Basic
    accepts_basic: bool


def fetch_document(settings: OidcSettings) -> dict[str, Any]:
    """Return the issuer's discovery document.

    Raise OSError or HTTPException if the provider does not answer, ValueError or RecursionError if it is not the issuer's document.
    """
    url = settings.issuer.rstrip("/") + _DISCOVERY
    document = fetch_json(Request(url), settings.timeout)  # noqa: S310  # the issuer is https, or on loopback
    if document.get("issuer") != settings.issuer:
        raise ValueError(f"the document at {url} is of the issuer {document.get('issuer')!r}, not of {settings.issuer!r}")
    return document


def count_keys(settings: OidcSettings) -> int:
    """Return the number of keys that the provider publishes. Raise ServiceUnavailable with the reason if they cannot be read."""
    url = settings.jwks_url or settings.issuer
    try:
        if settings.jwks_url is None or settings.sign_in is not None:
            document = fetch_document(settings)
            url = settings.jwks_url or check_web_url(str(document.get("jwks_uri")))
        keys = fetch_json(Request(url), settings.timeout).get("keys")  # noqa: S310  # https, or on loopback
        if not isinstance(keys, list):
            raise ValueError("the response has no list of keys")
        return len(keys)
    except PROVIDER_ERRORS as error:
        reason = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
        key = "jwks_url" if url == settings.jwks_url else "issuer, exactly as in its claim iss"
        raise ServiceUnavailable(
            f"{url}: the identity provider cannot be used: {reason}", hint=f"check [serve.oidc] {key}"
        ) from None


class IdentityProvider:
    """The endpoints of a sign-in. The discovery document is cached for an hour. Threads may use it: at worst, two read it at once."""

    def __init__(self, settings: OidcSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._document: tuple[float, ProviderDocument] | None = None
        self._failure: tuple[float, ServiceUnavailable] | None = None

    def get_document(self) -> ProviderDocument:
        """Return the discovery document. Raise ServiceUnavailable if it cannot be read, or names an endpoint without HTTPS."""
        now = self._clock()
        if self._document is not None and now - self._document[0] < _CACHE_SECONDS:
            return self._document[1]
        if self._failure is not None and now - self._failure[0] < RETRY_SECONDS:
            raise self._failure[1]
        try:
            document = _parse_document(fetch_document(self._settings))
        except PROVIDER_ERRORS as error:
            failure = self._unavailable(error)
            self._failure = (now, failure)
            raise failure from None
        self._document = (now, document)
        return document

    def redeem_code(self, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a token request (RFC 6749, section 4.1.3) and return the response.

        Raise TokenRequestRefused if the provider refuses the code, ServiceUnavailable if it does not answer properly.
        """
        endpoint = self.get_document().token_endpoint
        request = Request(endpoint, urlencode(form).encode(), dict(headers))  # noqa: S310  # checked by check_web_url
        try:
            return fetch_json(request, self._settings.timeout)
        except HTTPError as error:
            if error.code in (400, 401, 403):
                raise TokenRequestRefused(_error_code(error)) from None
            raise self._unavailable(error) from None
        except PROVIDER_ERRORS as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: Exception) -> ServiceUnavailable:
        _log.error("identity provider unreachable", issuer=self._settings.issuer, error=repr(error))
        return ServiceUnavailable(
            f"the identity provider {self._settings.issuer} does not answer", hint="see the log for the error"
        )


def _parse_document(document: Mapping[str, Any]) -> ProviderDocument:
    methods = document.get("token_endpoint_auth_methods_supported")
    return ProviderDocument(
        check_web_url(str(document.get("authorization_endpoint"))),
        check_web_url(str(document.get("token_endpoint"))),
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        # OpenID Connect Discovery: client_secret_basic if the document does not list the methods.
        accepts_basic=not isinstance(methods, list) or "client_secret_basic" in methods,
    )


def fetch_json(request: Request, timeout: float) -> dict[str, Any]:
    """Send a request, read the response within ``timeout`` seconds and one megabyte, and return its JSON object.

    Raise PROVIDER_ERRORS.
    """
    deadline = time.monotonic() + timeout
    body = b""
    with build_opener(_NoRedirect).open(request, timeout=timeout) as response:
        while chunk := response.read1(65_536):
            body += chunk
            if len(body) > _MAX_DOCUMENT_BYTES:
                raise ValueError("the response is too large")
            if time.monotonic() > deadline:
                raise TimeoutError("the response took too long")
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the response is not a JSON object")
    return document


def _error_code(error: HTTPError) -> str:
    """Return the ``error`` of a refusal (RFC 6749, section 5.2), or its HTTP status if it has none that can be shown."""
    try:
        code = json.loads(error.read(10_000))["error"]
    except (*PROVIDER_ERRORS, KeyError, TypeError):
        return f"status {error.code}"
    return code if isinstance(code, str) and code.isascii() and code.isprintable() else f"status {error.code}"


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects: only the configured URL, and those that its document names, are trusted."""

    def redirect_request(self, *_: object) -> None:
        return None
