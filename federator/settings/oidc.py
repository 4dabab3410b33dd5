"""Settings of the identity provider: its JWTs, and the sign-in of people."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from federator.model.scopes import Scopes
from federator.planning.key_types import Duration
from federator.settings.field_types import PositiveDuration, RoleName, Secret, SigningAlgorithm, WebUrl
from federator.settings.section import Section

#: path of the redirect URI: the provider sends a browser there with the authorization code
CALLBACK_PATH = "/auth/callback"


class SignInSettings(Section):
    """Sign-in of people with a browser (OIDC authorization code flow with PKCE)."""

    client_id: str = Field(min_length=1)
    """Id of the service at the provider; the claim `aud` of id tokens."""
    client_secret: Secret | None = None
    """Secret of a confidential client. PKCE is used with and without it."""
    redirect_uri: WebUrl
    """Public URL of the service with the path `/auth/callback`, exactly as registered at the provider."""
    request_scopes: tuple[str, ...] = ("openid", "profile", "email")
    """OAuth scopes that are requested. `openid` is required."""
    session_lifetime: PositiveDuration = 28_800.0
    """Time after which a person must sign in again."""
    idle_timeout: PositiveDuration = 3600.0
    """A session without a request for this time ends."""
    max_sessions: int = Field(default=10, ge=1)
    """Number of sessions of one person. A further sign-in ends the oldest one."""

    @field_validator("redirect_uri")
    @classmethod
    def _check_redirect_uri(cls, text: str) -> str:
        parts = urlsplit(text)
        if text != f"{parts.scheme}://{parts.netloc}{CALLBACK_PATH}":
            raise ValueError(f"must be https://host{CALLBACK_PATH}")
        return text

    @field_validator("request_scopes")
    @classmethod
    def _check_request_scopes(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes or any(not scope or not scope.isprintable() or " " in scope for scope in scopes):
            raise ValueError('must be OAuth scopes, with "openid"')
        return scopes

    @property
    def origin(self) -> str:
        """The origin of the service's own pages."""
        return self.redirect_uri.removesuffix(CALLBACK_PATH)

    @property
    def is_secure(self) -> bool:
        """Whether the pages are served by HTTPS. Without it, they are on loopback."""
        return self.redirect_uri.startswith("https:")


class OidcSettings(Section):
    """An identity provider whose JWTs are accepted. A claim inside another is written `realm_access.roles`."""

    issuer: WebUrl
    """URL of the provider, as in the claim `iss`."""
    audience: str = Field(min_length=1)
    """Required value of the claim `aud`."""
    jwks_url: WebUrl | None = None
    """URL of the provider's keys. Default: the URL in the issuer's discovery document."""
    algorithms: tuple[SigningAlgorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    """Accepted signature algorithms."""
    role_claim: str = "roles"
    """Claim with the values that `roles` maps."""
    roles: dict[str, RoleName] = Field(default_factory=dict)
    """Role of each value of `role_claim`. The strongest role counts."""
    scopes_claim: str = "federator_scopes"
    """Claim with the principal's scopes."""
    scopes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Further scopes of each value of `role_claim`. The scopes of all values are united."""
    name_claim: str = "sub"
    """Claim with the principal's name."""
    leeway: Duration = 30.0
    """Tolerated difference between the clocks."""
    timeout: PositiveDuration = 5.0
    """Maximum time of a request to the provider."""
    sign_in: SignInSettings | None = None
    """Sign-in of people with a browser."""

    @field_validator("scopes")
    @classmethod
    def _check_scopes(cls, scopes: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for texts in scopes.values():
            Scopes.parse(texts)
        return scopes
