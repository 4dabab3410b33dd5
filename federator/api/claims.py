"""Claims of the identity provider, mapped to a principal by the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from federator.api.principals import ROLES, Principal, Role
from federator.api.problems import RequestRejected
from federator.model.scopes import Scopes
from federator.settings import OidcSettings
from federator.store.sessions import principal_name

_MAX_NAME_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Grant:
    """The claims about a person or a program: its name, the values of the role claim that the configuration maps, and scopes.

    ``authenticated_at``: the time of the claim ``auth_time`` of an id token, in seconds since the epoch.
    """

    name: str
    values: tuple[str, ...]
    scopes: tuple[str, ...]
    authenticated_at: float | None = None


def read_grant(settings: OidcSettings, claims: Mapping[str, Any]) -> Grant:
    """Return the grant of verified claims. Raise RequestRejected (401) if the name or a scope is not valid."""
    name = _find_claim(claims, settings.name_claim)
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME_LENGTH or not name.isprintable():
        raise reject_token(f"its claim {settings.name_claim!r} is not a valid name")
    known = role_names(settings).keys() | settings.scopes.keys()
    values = tuple(sorted(known.intersection(_iter_values(_find_claim(claims, settings.role_claim)))))
    try:
        scopes = Scopes.parse(_iter_texts(_find_claim(claims, settings.scopes_claim)))
    except ValueError as error:
        raise reject_token(f"its claim {settings.scopes_claim!r}: {error}") from None
    return Grant(name, values, scopes.texts)


def grant_principal(settings: OidcSettings, grant: Grant) -> Principal:
    """Return the principal of a grant: the strongest role and all scopes of its values.

    Raise RequestRejected (403) if no value has a role.
    """
    names = role_names(settings)
    roles = [Role.parse(names[value]) for value in grant.values if value in names]
    if not roles:
        raise RequestRejected(403, "Permission denied", f"the token's claim {settings.role_claim!r} contains no known role")
    mapped = (scope for value in grant.values for scope in settings.scopes.get(value, ()))
    return Principal(principal_name(grant.name), max(roles), Scopes.parse([*grant.scopes, *mapped]))


def read_authentication_time(claims: Mapping[str, Any], *, latest: float) -> float | None:
    """Return the claim ``auth_time``. None if the provider did not send it, or if it is not a time up to ``latest``."""
    seconds = claims.get("auth_time")
    return float(seconds) if isinstance(seconds, int | float) and 0 < seconds <= latest else None


def role_names(settings: OidcSettings) -> Mapping[str, str]:
    """Return the role of each value of the role claim. Without a configured mapping, the values are the names of the roles."""
    return settings.roles or {role: role for role in ROLES}


def reject_token(reason: str) -> RequestRejected:
    return RequestRejected(401, "Unauthenticated", f"the token is not accepted: {reason}")


def _find_claim(claims: Mapping[str, Any], name: str) -> object:
    """Find a claim by its name or, with dots, inside other claims (``realm_access.roles``). None if it is absent.

    A claim whose own name contains the dots is preferred.
    """
    if name in claims:
        return claims[name]
    value: object = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _iter_values(value: object) -> Iterator[str]:
    """Yield the texts of a list, or one text: the name of a group may have spaces, and must not give the roles of its words."""
    yield from (text for text in (value if isinstance(value, list) else (value,)) if isinstance(text, str))


def _iter_texts(value: object) -> Iterator[str]:
    """Yield the texts of a list, or those of one text that spaces separate: only they do (RFC 6749, 3.3). An empty text has none."""
    texts = value.split(" ") if isinstance(value, str) and value else value if isinstance(value, list) else ()
    yield from (text for text in texts if isinstance(text, str))
