"""Classification of storage options: which of them are plain, so that every reader of a table may see them.

All other options are secret. Names are not a criterion, because any option may be a secret (``connection_string``, ``passphrase``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from federator.model import to_lance_uri
from federator.runtime.redaction import USERINFO, mask_url_secrets

_PLAIN_HTTP = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "randomize_addresses", "timeout", "user_agent",
})  # fmt: skip
#: options of a store's HTTP client, plain and secret ones; all others are the store's own, or Lance's
HTTP_OPTIONS = _PLAIN_HTTP | {
    "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_max_frame_size",
    "proxy_ca_certificate", "proxy_excludes", "proxy_url", "read_timeout", "root_certificate",
}  # fmt: skip
_CLIENT = _PLAIN_HTTP | {"client_max_retries", "client_retry_timeout", "download_retry_count", "skip_signature"}
#: options that change how requests are made, and not what they may read. A store may decide by the agent, and a connection without TLS
#: or with any certificate reads what others refuse to read.
TUNING = _CLIENT - {"allow_http", "allow_invalid_certificates", "skip_signature", "user_agent"}
_S3 = frozenset({
    "checksum_algorithm", "conditional_put", "copy_if_not_exists", "default_region", "disable_tagging", "endpoint", "endpoint_url",
    "region", "request_payer", "s3_express", "server_side_encryption", "unsigned_payload", "virtual_hosted_style_request",
})  # fmt: skip
_GCS = frozenset({"base_url", "endpoint"})
_AZURE = frozenset({"account_name", "container_name", "disable_tagging", "endpoint", "use_emulator", "use_fabric_endpoint"})
# By the scheme under which Lance opens a location. A path of the file system has no scheme.
_BY_SCHEME = {"s3": _S3, "s3+ddb": _S3, "gs": _GCS, "az": _AZURE, "abfss": _AZURE}
_PLAIN = _CLIENT.union(*_BY_SCHEME.values())
_PREFIX = re.compile(r"^(?:aws|azure_storage|azure|google)_")


def is_plain_option(key: str, declared: Collection[str] = (), location: str | None = None) -> bool:
    """Return whether an option, named without ``storage.``, is not a secret.

    ``declared`` are further plain options of the source. With a location, only the options of its scheme are plain.
    """
    allowed = _PLAIN if location is None else _CLIENT | _BY_SCHEME.get(lance_scheme(location), frozenset())
    return key in declared or option_name(key) in allowed


def option_name(key: str) -> str:
    """Return the name of an option in lower case, without the prefix of its store: ``AWS_REGION`` is ``region``."""
    return _PREFIX.sub("", key.lower())


def plain_options(options: Mapping[str, str], declared: Collection[str], location: str | None) -> dict[str, str]:
    """Return the plain options for opening a location, without the secrets of URLs."""
    return {
        key: mask_url_secrets(USERINFO.sub("", text))
        for key, text in options.items()
        if is_plain_option(key, declared, location)
    }


def lance_scheme(location: str) -> str:
    """Return the scheme under which Lance opens a location; empty for a path of the file system."""
    scheme, colon, _ = to_lance_uri(location).partition("://")
    return scheme.lower() if colon else ""
