"""Sign-in of people: the authorization code flow of OpenID Connect with PKCE (RFC 7636, S256).

The service stores nothing until a sign-in succeeds. A cookie binds a sign-in to its browser: it has a random secret, and ``state``,
``nonce`` and the PKCE verifier are derived from it. Only the browser that started a sign-in can finish it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlencode

from starlette.datastructures import QueryParams

from federator.api.claims import Grant
from federator.api.identity_provider import IdentityProvider, TokenRequestRefused
from federator.api.problems import RequestRejected
from federator.runtime.base64url import decode_base64url, encode_base64url
from federator.settings import OidcSettings
from federator.settings.oidc import SignInSettings

if TYPE_CHECKING:
    from federator.api.oidc import JwtVerifier

#: time that a person has for the sign-in at the provider
SIGN_IN_SECONDS = 600.0
#: the actor of a refused sign-in if no person is known
UNKNOWN_PERSON = "unknown"
# A path of this service: browsers read "//" and "/\" as the begin of another host.
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]{0,999}")
_ERROR_CODE = re.compile(r"[a-z_]{1,64}")


class SignInRefused(RequestRejected):
    """A sign-in that cannot be finished. The message is for the person. ``actor`` and ``reason`` are recorded in the audit log."""

    def __init__(self, message: str, *, status: int = 400, actor: str = UNKNOWN_PERSON, reason: str | None = None) -> None:
        super().__init__(status, "Sign-in refused", message)
        self.actor = actor
        self.reason = reason or message


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """The provider's URL for the browser, and the value of the cookie that binds the sign-in to it."""

    url: str
    cookie: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _PendingSignIn:
    """The content of the cookie."""

    secret: str = field(repr=False)
    started_at: int
    return_to: str

    def to_cookie(self) -> str:
        return f"{self.secret}.{self.started_at}.{encode_base64url(self.return_to.encode())}"

    @classmethod
    def from_cookie(cls, text: str) -> _PendingSignIn | None:
        secret, _, rest = text.partition(".")
        started, _, path = rest.partition(".")
        try:
            return_to = decode_base64url(path).decode()
            return cls(secret, int(started), return_to) if secret else None
        except ValueError:
            return None

    def derive(self, purpose: str) -> str:
        """Return 43 characters that depend on the purpose and on every part of the cookie."""
        message = f"{purpose}\n{self.started_at}\n{self.return_to}".encode()
        return encode_base64url(hmac.digest(self.secret.encode(), message, hashlib.sha256))


class SignIn:
    """Starts and finishes sign-ins at one provider."""

    def __init__(
        self, settings: OidcSettings, sign_in: SignInSettings, verifier: JwtVerifier, *, client_secret: str | None,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._settings, self._sign_in, self._verifier, self._clock = settings, sign_in, verifier, clock
        self._client_secret = client_secret
        self._provider = IdentityProvider(settings)

    def start(self, return_to: str, *, fresh: bool = False) -> StartedSignIn:
        """Start a sign-in that ends at ``return_to``, a path of this service. ``fresh``: the provider must ask for credentials again.

        Raise SignInRefused if it is another address, ServiceUnavailable if the provider does not answer.
        """
        if not _LOCAL_PATH.fullmatch(return_to):
            raise SignInRefused("the address to return to is not a path of this service")
        pending = _PendingSignIn(secrets.token_urlsafe(32), int(self._clock()), return_to)
        challenge = encode_base64url(hashlib.sha256(pending.derive("verifier").encode()).digest())
        parameters = {
            "response_type": "code", "client_id": self._sign_in.client_id, "redirect_uri": self._sign_in.redirect_uri,
            "scope": " ".join(self._sign_in.request_scopes), "state": pending.derive("state"), "nonce": pending.derive("nonce"),
            "code_challenge": challenge, "code_challenge_method": "S256",
        }  # fmt: skip
        if fresh:
            # A provider must then also send auth_time, which is the proof (OpenID Connect Core 1.0, section 3.1.2.1).
            parameters |= {"prompt": "login", "max_age": "0"}
        endpoint = self._provider.get_document().authorization_endpoint
        return StartedSignIn(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}", pending.to_cookie())

    def finish(self, parameters: QueryParams, cookie: str | None) -> tuple[Grant, str]:
        """Return what the id token says of the person (a ``Grant``), and the path to return to.

        Raise SignInRefused if the response of the provider does not belong to the browser's sign-in, or if the provider refuses.
        Raise RequestRejected if the id token is not valid, ServiceUnavailable if the provider does not answer.
        """
        pending = self._find_pending(parameters, cookie)
        document = self._provider.get_document()
        issuer = parameters.get("iss")
        if issuer != self._settings.issuer and (issuer is not None or document.sends_issuer):
            raise SignInRefused("the response is from another identity provider")
        if "error" in parameters:
            error = parameters["error"]
            raise SignInRefused(f"the identity provider refused: {error if _ERROR_CODE.fullmatch(error) else 'unknown error'}")
        tokens = self._redeem(parameters.get("code") or "", pending.derive("verifier"))
        id_token, access_token = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(id_token, str):
            raise SignInRefused("the identity provider sent no id token")
        grant = self._verifier.verify_id_token(
            id_token, client_id=self._sign_in.client_id, nonce=pending.derive("nonce"),
            access_token=access_token if isinstance(access_token, str) else None,
        )  # fmt: skip
        return grant, pending.return_to

    def _find_pending(self, parameters: QueryParams, cookie: str | None) -> _PendingSignIn:
        """Return the sign-in to which the response belongs. Raise SignInRefused if this browser has not started it."""
        pending = _PendingSignIn.from_cookie(cookie) if cookie is not None else None
        if pending is None:
            raise SignInRefused("this browser has not started a sign-in, or it is finished already")
        if len(parameters.multi_items()) != len(parameters):
            raise SignInRefused("the response of the identity provider has a parameter twice")
        if not hmac.compare_digest(parameters.get("state", "").encode(), pending.derive("state").encode()):
            raise SignInRefused("the response of the identity provider belongs to another sign-in")
        if not 0 <= self._clock() - pending.started_at < SIGN_IN_SECONDS:
            raise SignInRefused("the sign-in took too long")
        if not _LOCAL_PATH.fullmatch(pending.return_to):
            raise SignInRefused("the address to return to is not a path of this service")
        return pending

    def _redeem(self, code: str, code_verifier: str) -> dict[str, object]:
        client_id, secret = self._sign_in.client_id, self._client_secret
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self._sign_in.redirect_uri,
            "code_verifier": code_verifier,
        }  # fmt: skip
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if secret is None:
            form["client_id"] = client_id
        elif self._provider.get_document().accepts_basic:
            # RFC 6749, section 2.3.1: both parts are encoded as in a form.
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": client_id, "client_secret": secret}
        try:
            return self._provider.redeem_code(form, headers)
        except TokenRequestRefused as error:
            raise SignInRefused(f"the identity provider refused the code: {error}") from None
