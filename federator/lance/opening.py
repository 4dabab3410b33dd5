"""Storage options with which the federator opens a table: which schemes and endpoints, and with which credentials.

A table is opened anonymously if the source has no credentials, or if its credentials must not be sent. The libraries of the stores
would otherwise look for credentials of this machine: in its environment, its files and the metadata service of its cloud.
"""

from __future__ import annotations

from collections.abc import Mapping

from federator.connector.errors import PermissionDenied
from federator.connector.options import ConnectorSettings, is_endpoint_key
from federator.connector.storage_options import lance_scheme, option_name, plain_options
from federator.model import to_lance_uri

_ENDPOINTS = ("endpoint", "endpoint_url", "base_url")
# Each set of options is complete: with it, Lance does not look for other credentials.
_CREDENTIALS: Mapping[str, tuple[frozenset[str], ...]] = {
    "s3": (frozenset({"access_key_id", "secret_access_key"}),),
    "gs": tuple(
        frozenset({name})
        for name in ("service_account", "service_account_path", "service_account_key", "application_credentials", "storage_token")
    ),
    "az": (
        *(frozenset({name}) for name in ("account_key", "access_key", "master_key", "sas_key", "sas_token", "bearer_token", "token")),
        frozenset({"client_id", "client_secret"}),
    ),
}  # fmt: skip
_SAME_STORE = {"s3+ddb": "s3", "abfss": "az"}
# Lance asks the metadata service of AWS even if requests are not signed, unless it has some keys. They are not sent.
_UNSIGNED = {
    "s3": {"skip_signature": "true", "access_key_id": "anonymous", "secret_access_key": "anonymous"},
    "gs": {"skip_signature": "true"},
    "az": {"skip_signature": "true"},
}


def opening_options(
    settings: ConnectorSettings, location: str | None, properties: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the storage options for opening a location. ``properties`` are those of its table.

    Raise PermissionDenied if the source does not allow the scheme of the location.
    """
    location = location or ""
    require_allowed_scheme(settings, location)
    store = _store(location)
    options = dict(settings.storage)
    named = {key: text for key, text in (properties or {}).items() if is_endpoint_key(key)}
    allowed = {text.rstrip("/") for text in (*settings.endpoints, *_own_endpoints(settings))}
    if any(option_name(key) not in _ENDPOINTS or text.rstrip("/") not in allowed for key, text in named.items()):
        # The catalog's data must not send credentials elsewhere.
        return _anonymous(plain_options(options, settings.plain, location), store)
    if named:
        options = {key: text for key, text in options.items() if option_name(key) not in _ENDPOINTS}
        options["endpoint"] = next(iter(named.values()))
    if store == "az" and _is_foreign_account(settings, location):
        return _anonymous(plain_options(options, settings.plain, location), store)
    names = {option_name(key) for key, text in options.items() if text}
    is_complete = any(needed <= names for needed in _CREDENTIALS.get(store, ()))
    return options if is_complete or settings.ambient_credentials else _anonymous(options, store)


def require_allowed_scheme(settings: ConnectorSettings, location: str) -> None:
    """Raise PermissionDenied if the source does not allow the scheme of a location."""
    scheme = lance_scheme(location) or "file"
    if scheme not in settings.schemes:
        raise PermissionDenied(
            f"locations with the scheme {scheme} are not opened", hint=f"allowed by schemes: {', '.join(settings.schemes)}"
        )


def lacks_credentials(settings: ConnectorSettings, root: str | None) -> bool:
    """Return whether tables below a root are opened anonymously, because the source has no credentials for the store."""
    store = _store(root or "")
    names = {option_name(key) for key in settings.storage}
    explicit = "skip_signature" in names or any(needed <= names for needed in _CREDENTIALS.get(store, ()))
    return store in _UNSIGNED and not explicit and not settings.ambient_credentials


def _store(location: str) -> str:
    scheme = lance_scheme(location)
    return _SAME_STORE.get(scheme, scheme)


def _own_endpoints(settings: ConnectorSettings) -> list[str]:
    return [text for key, text in settings.storage.items() if option_name(key) in _ENDPOINTS]


def _is_foreign_account(settings: ConnectorSettings, location: str) -> bool:
    """Return whether an Azure location names another account than the source, so that a SAS token would be sent there."""
    host = to_lance_uri(location).partition("://")[2].partition("/")[0].rpartition("@")[2]
    own = next((text for key, text in settings.storage.items() if option_name(key) == "account_name"), None)
    is_account = ".dfs." in host or ".blob." in host
    return is_account and own is not None and host.split(".")[0] != own and host not in settings.endpoints


def _anonymous(options: Mapping[str, str], store: str) -> dict[str, str]:
    unsigned = _UNSIGNED.get(store, {})
    return {key: text for key, text in options.items() if option_name(key) not in unsigned} | unsigned
