"""Storage options with which the federator opens a table: which schemes and endpoints, and with which credentials.

A table is opened anonymously (with unsigned requests) if the source has no credentials, or if they must not be sent to the table's
endpoint or account. Without explicit options, the libraries of the stores would look for credentials of this machine: in its
environment, its files and the metadata service of its cloud.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from federator.connector.errors import PermissionDenied
from federator.connector.options import ConnectorSettings, is_endpoint_key
from federator.connector.storage_options import TUNING, is_plain_option, lance_scheme, option_name, plain_options
from federator.model import is_ambiguous, local_path, to_lance_uri

_ENDPOINTS = ("endpoint_url_s3", "endpoint", "endpoint_url", "base_url")
# A host of S3 itself, also with a bucket's name before it. Other hosts of AWS may be anybody's servers.
_S3_HOST = re.compile(
    r"(?:.+\.)?s3(?:-fips|-accelerate)?(?:\.dualstack)?(?:[.-](?P<region>[a-z]{2}(?:-[a-z]+)+-\d+))?(?:\.vpce)?\.amazonaws\.com(?:\.cn)?"
)
# The beginnings of the regions of AWS whose buckets have names of their own.
_SEPARATE_CLOUDS = ("cn-", "us-gov-", "us-iso")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
# The names of options, by store. With all options of one set, Lance does not look for other credentials.
_CREDENTIAL_SETS: Mapping[str, tuple[frozenset[str], ...]] = {
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
# The other schemes of a store.
_STORE_BY_SCHEME = {"s3+ddb": "s3", "abfss": "az"}
# Options for unsigned requests. Without any keys, Lance asks the metadata service of AWS even then; these placeholders are not sent.
_ANONYMOUS = {
    "s3": {"skip_signature": "true", "access_key_id": "anonymous", "secret_access_key": "anonymous"},
    "gs": {"skip_signature": "true"},
    "az": {"skip_signature": "true"},
}


def opening_options(
    settings: ConnectorSettings, location: str | None, properties: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the storage options for opening a location. None as the location counts as a path.

    ``properties`` are those of its table, which may name an endpoint. Raise PermissionDenied if the source does not allow the scheme
    of the location, or if Lance could open another location.
    """
    location = location or ""
    require_allowed_scheme(settings, location)
    if is_ambiguous(location):
        raise PermissionDenied(
            "the location is not opened: Lance reads its user, port, query, percent-encoding, or empty or relative levels otherwise",
            hint="declare the table at the location that is meant",
        )
    store = _store_of(location)
    options = dict(settings.storage)
    table_endpoints = {key: text for key, text in (properties or {}).items() if is_endpoint_key(key)}
    allowed = {text.rstrip("/") for text in (*settings.endpoints, *_list_source_endpoints(settings))}
    if any(option_name(key) not in _ENDPOINTS or text.rstrip("/") not in allowed for key, text in table_endpoints.items()):
        # A property of a table must not redirect the source's credentials to another server.
        return _make_anonymous(plain_options(options, settings.plain, location), store)
    if table_endpoints:
        options = {key: text for key, text in options.items() if option_name(key) not in _ENDPOINTS}
        options["endpoint"] = next(iter(table_endpoints.values()))
    if store == "az" and _is_foreign_account(settings, location):
        return _make_anonymous(plain_options(options, settings.plain, location), store)
    names = {option_name(key) for key, text in options.items() if text}
    return options if _has_credentials(names, store) or settings.ambient_credentials else _make_anonymous(options, store)


def name_store(storage: Mapping[str, str]) -> str:
    """Return the name of the object store that storage options lead to: its endpoint and account, or the cloud of its region.

    Empty for the public store of a location's scheme. Two sources have the same store if the names are equal. No secret is part of it.
    """
    options = {option_name(key): text for key, text in storage.items()}
    endpoint = next((options[name].lower() for name in _ENDPOINTS if options.get(name)), "")
    parts = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
    host = parts.netloc.rpartition("@")[2].removesuffix(_DEFAULT_PORTS.get(parts.scheme, ":"))
    region = options.get("region") or options.get("default_region") or ""
    if public := _S3_HOST.fullmatch(host):
        # AWS has each bucket's name once in all regions of a cloud.
        host, region = "", public["region"] or region
    server = host + parts.path.rstrip("/") if host else ""
    cloud = next((prefix for prefix in _SEPARATE_CLOUDS if not host and region.lower().startswith(prefix)), "")
    emulator = "emulator" if options.get("use_emulator", "").lower() in ("true", "1") else ""
    return " ".join(filter(None, (server, cloud, options.get("account_name"), emulator)))


def digest_access(settings: ConnectorSettings, references: Mapping[str, str], store: str) -> str:
    """Return a digest of all that decides what a source can open in an object store. Two sources open the same if it is equal.

    ``references`` are the storage options as the configuration has them: a secret is part of the digest by its reference, so that the
    digest stays if the secret is renewed, and tells nothing of it.
    """
    options = {
        option_name(key): text if is_plain_option(key, settings.plain) else references[key]
        for key, text in settings.storage.items()
        if option_name(key) not in _ENDPOINTS and option_name(key) not in TUNING
    }
    rules = (settings.ambient_credentials, sorted(settings.schemes), sorted(settings.endpoints))
    return hashlib.sha256(json.dumps([store, options, rules], sort_keys=True).encode()).hexdigest()[:32]


def require_allowed_scheme(settings: ConnectorSettings, location: str) -> None:
    """Raise PermissionDenied if the source does not allow the scheme of a location, or if a ``file`` URI names another host: Lance
    ignores the host, and would open the path on this one."""
    scheme = lance_scheme(location) or "file"
    if scheme not in settings.schemes:
        raise PermissionDenied(
            f"locations with the scheme {scheme} are not opened", hint=f"allowed by schemes: {', '.join(settings.schemes)}"
        )
    if lance_scheme(location) == "file" and local_path(location) is None:
        raise PermissionDenied("a file URI with another host is not opened", hint="write file:///PATH for a path of this host")


def lacks_credentials(settings: ConnectorSettings, root: str | None) -> bool:
    """Return whether tables below a root are opened anonymously, because the source has no credentials for the store."""
    store = _store_of(root or "")
    names = {option_name(key) for key in settings.storage}
    is_explicit = "skip_signature" in names or _has_credentials(names, store)
    return store in _ANONYMOUS and not is_explicit and not settings.ambient_credentials


def _store_of(location: str) -> str:
    """Return the key of a location's store in ``_CREDENTIAL_SETS``, or another scheme; empty for a path."""
    scheme = lance_scheme(location)
    return _STORE_BY_SCHEME.get(scheme, scheme)


def _list_source_endpoints(settings: ConnectorSettings) -> list[str]:
    return [text for key, text in settings.storage.items() if option_name(key) in _ENDPOINTS]


def _has_credentials(names: set[str], store: str) -> bool:
    return any(needed <= names for needed in _CREDENTIAL_SETS.get(store, ()))


def _is_foreign_account(settings: ConnectorSettings, location: str) -> bool:
    """Return whether an Azure location names another account than the source: its SAS token must not be sent there."""
    host = to_lance_uri(location).partition("://")[2].partition("/")[0].rpartition("@")[2]
    source_account = next((text for key, text in settings.storage.items() if option_name(key) == "account_name"), None)
    is_account = ".dfs." in host or ".blob." in host
    return is_account and source_account is not None and host.split(".")[0] != source_account and host not in settings.endpoints


def _make_anonymous(options: Mapping[str, str], store: str) -> dict[str, str]:
    """Return the options with those for unsigned requests, which replace options of the same name."""
    anonymous = _ANONYMOUS.get(store, {})
    return {key: text for key, text in options.items() if option_name(key) not in anonymous} | anonymous
