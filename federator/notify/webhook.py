"""Sending over HTTP: one POST, signed, no redirect followed, nothing of the URL or the secrets in any error."""

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
from federator.notify.outcome import Refused, Unsent

if TYPE_CHECKING:
    import requests

CONNECT_SECONDS, READ_SECONDS = 5.0, 15.0
SIGNATURE, TIMESTAMP, ID = "Federator-Signature", "Federator-Timestamp", "Federator-Notification"
# An answer that says "later", besides all of 5xx.
_LATER = frozenset({408, 425, 429})
_TOLD = 200


def signed(secret: str, body: bytes, at: int) -> str:
    """``v1=`` and the hexadecimal HMAC-SHA256 of ``<timestamp>.<body>``."""
    return "v1=" + hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def post(
    url: str, body: bytes, *, number: str, secret: str | None = None, token: str | None = None, ca: str | None = None
) -> None:
    """Posts a notification's body. Raises Unsent, to be tried again, and Refused, which is final."""
    requests = _requests()
    at = int(time.time())
    headers = {"Content-Type": "application/json", "User-Agent": "lance-federator", ID: number, TIMESTAMP: str(at)}
    if secret is not None:
        headers[SIGNATURE] = signed(secret, body, at)
    with requests.Session() as session:
        # .netrc is not asked for a password, nor is another host's answer followed.
        session.auth = _as_it_is(token)
        try:
            answer = session.post(
                url, data=body, headers=headers, timeout=(CONNECT_SECONDS, READ_SECONDS), allow_redirects=False, verify=ca or True,
                stream=True,
            )  # fmt: skip
            said = answer.raw.read(_TOLD, decode_content=True) if answer.status_code >= 300 else b""
        except requests.exceptions.SSLError:
            raise Unsent("its certificate is not accepted") from None
        except (requests.RequestException, OSError) as error:
            # Their texts hold the URL.
            raise Unsent(f"no answer ({type(error).__name__})") from None
    _judge(answer, said)


def _judge(answer: requests.Response, said: bytes) -> None:
    status = answer.status_code
    if status < 300:
        return
    if status < 400:
        raise Refused(f"it answered {status}: redirects are not followed")
    text = " ".join(said.decode("utf-8", "replace").split())
    message = f"it answered {status}{f': {text}' if text else ''}"
    if status >= 500 or status in _LATER:
        raise Unsent(message, retry_after=retry_after(answer.headers))
    raise Refused(message)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server wants to be left alone: a number, or a date (RFC 9110); None where it says nothing one can read."""
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())


def _as_it_is(token: str | None) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
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
