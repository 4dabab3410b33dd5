"""Cookies of the service, for sessions of browsers and for a sign-in that is in progress."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response

from federator.api.problems import RequestRejected
from federator.settings.oidc import SignInSettings


class Cookie:
    """A cookie of the service: HttpOnly, SameSite=Lax, for this host only. With HTTPS it is Secure and has the prefix ``__Host-``,
    so that neither another host nor a page without HTTPS can set it."""

    def __init__(self, name: str, sign_in: SignInSettings) -> None:
        self._secure = sign_in.is_secure
        self.name = f"{'__Host-' if self._secure else ''}federator-{name}"

    def read(self, headers: Headers) -> str | None:
        """Return the cookie's value; None if it is absent or empty. Raise RequestRejected (400) if there are several, since one of them
        may be from somebody else."""
        pairs = (pair.strip().partition("=") for header in headers.getlist("cookie") for pair in header.split(";"))
        values = [value for name, _, value in pairs if name == self.name]
        if len(values) > 1:
            raise RequestRejected(
                400, "Invalid input", f"there are several cookies {self.name}: delete the cookies of this page"
            )
        return values[0] if values and values[0] else None

    def set(self, response: Response, value: str, max_age: float) -> None:
        response.set_cookie(
            self.name, value, max_age=int(max_age), path="/", secure=self._secure, httponly=True, samesite="lax"
        )

    def delete(self, response: Response) -> None:
        response.delete_cookie(self.name, path="/", secure=self._secure, httponly=True, samesite="lax")
