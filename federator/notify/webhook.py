"""Delivery by webhook: one signed POST without redirects. No error contains the URL or a secret."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import TYPE_CHECKING

from federator.connector import ConfigError
from federator.notify.errors import PermanentDeliveryError, TemporaryDeliveryError

if TYPE_CHECKING:
    import requests

CONNECT_SECONDS, READ_SECONDS = 5.0, 15.0
SIGNATURE, TIMESTAMP, ID = "Federator-Signature", "Federator-Timestamp", "Federator-Notification"
# Statuses that allow a retry, besides all 5xx.
_RETRYABLE_STATUSES = frozenset({408, 425, 429})
_MAX_RESPONSE_CHARACTERS = 200


def sign_body(secret: str, body: bytes, timestamp: int) -> str:
    """Return ``v1=`` and the hexadecimal HMAC-SHA256 of ``<timestamp>.<body>``."""
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def post_notification(
    url: str, body: bytes, *, notification_id: str, secret: str | None = None, token: str | None = None, ca: str | None = None
) -> None:
    """Post a notification's body. Raise TemporaryDeliveryError or PermanentDeliveryError."""
    requests = _requests()
    timestamp = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "lance-federator",
        ID: notification_id,
        TIMESTAMP: str(timestamp),
    }
    if secret is not None:
        headers[SIGNATURE] = sign_body(secret, body, timestamp)
    with requests.Session() as session:
        # Set explicitly, so that requests neither reads a password from .netrc nor sends the token to another host.
        session.auth = _bearer_auth(token)
        try:
            request = session.prepare_request(requests.Request("POST", url, data=body, headers=headers))
            environment = session.merge_environment_settings(url, {}, True, ca or True, None)
            # Not by the session: it reads the whole body of a redirect, and parses its target, even if it does not follow it.
            response = session.get_adapter(url).send(request, timeout=(CONNECT_SECONDS, READ_SECONDS), **environment)
            content = _read_start(response) if response.status_code >= 300 else b""
        except requests.exceptions.SSLError:
            raise TemporaryDeliveryError("the server's certificate is not accepted") from None
        except (requests.RequestException, OSError) as error:
            # The error's text contains the URL, so only its type is shown.
            raise TemporaryDeliveryError(f"no response ({type(error).__name__})") from None
    _raise_for_status(response, content)


def _read_start(response: requests.Response) -> bytes:
    """Return the first bytes of a body, or none if it cannot be read: then the status alone says what happened."""
    from urllib3.exceptions import HTTPError

    try:
        return bytes(response.raw.read(_MAX_RESPONSE_CHARACTERS, decode_content=True))
    except (HTTPError, OSError):
        return b""


def _raise_for_status(response: requests.Response, content: bytes) -> None:
    status = response.status_code
    if status < 300:
        return
    if status < 400:
        raise PermanentDeliveryError(f"the server returned {status}: redirects are not followed")
    text = " ".join(content.decode("utf-8", "replace").split())
    message = f"the server returned {status}{f': {text}' if text else ''}"
    if status >= 500 or status in _RETRYABLE_STATUSES:
        raise TemporaryDeliveryError(message, retry_after=parse_retry_after(response.headers))
    raise PermanentDeliveryError(message)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date (RFC 9110). None if it is missing or invalid."""
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        retry_at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, ((retry_at if retry_at.tzinfo else retry_at.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())


def _bearer_auth(token: str | None) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    if token is not None and not (token.isascii() and token.isprintable()):
        raise ConfigError("the token contains characters that cannot be in a header")

    def sign_in(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return request

    return sign_in


def _requests() -> ModuleType:
    try:
        import requests
    except ModuleNotFoundError:
        raise ConfigError("webhooks need requests", hint="pip install 'lance-federator[notify]'") from None
    return requests
