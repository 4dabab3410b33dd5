"""Redaction of the secrets that this process has resolved.

No text of the federator should contain a secret. Redaction is the last line of defence where text leaves the process: logs,
notifications and traces.
"""

from __future__ import annotations

import json
import re
import threading
from typing import Any
from urllib.parse import quote

MASKED = "(masked)"
#: redacting shorter values would remove common words
MIN_SECRET_LENGTH = 4
#: in texts with names and locations, only values that cannot be a common word or name are redacted
_MIN_LONG_LENGTH = 12
#: in values of properties, shorter ones would be found in common words
_MIN_VALUE_LENGTH = 6
_WORDS = (
    "secret", "password", "token", "credential", "access_key", "account_key", "api_key", "private", "sas", "service_account",
    "authorization", "cookie",
)  # fmt: skip
#: the userinfo of a URL with its ``@``, also in JSON
USERINFO = re.compile(r"(?<=://)(?:[^/\s\"\\]|\\.)*@")
#: the value of a credential in the query of a URL: a SAS of Azure, or a presigned URL of S3 or Google
_QUERY_SECRET = re.compile(
    r"(?P<before>(?:[?&;]|%3f)(?:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid|googleaccessid)=)"
    r"(?!\(masked\))[^&#;\s\"'\\<>]+",
    re.IGNORECASE,
)
# In these schemes the text before "@" is the container, unless it has a password.
_CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "az", "azure")
# A bearer or basic authorization, and the value after the name of a secret.
_SHAPES = (
    re.compile(r"(?P<before>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE),
    re.compile(
        r"(?P<before>\b(?:password|passwd|secret[_-]?access[_-]?key|secret|access[_-]?token|api[_-]?key|client[_-]?secret)\s*=\s*)"
        r"[^\s&,;\"'(]+",
        re.IGNORECASE,
    ),
)
_lock = threading.Lock()
_known_secrets: set[str] = set()
_pattern: re.Pattern[str] | None = None
_long_pattern: re.Pattern[str] | None = None
#: complete secrets, the longest first: those that are masked anywhere, those that are masked as a value, and their pattern
_readable_secrets: tuple[str, ...] = ()
_value_secrets: tuple[str, ...] = ()
_value_pattern: re.Pattern[str] | None = None


def is_secret_key(key: str) -> bool:
    """Return whether a property's name marks its value as a secret, by the names of storage options and table parameters."""
    lowered = key.lower().replace("-", "_").replace(".", "_")
    return any(word in lowered for word in _WORDS)


def register_secret(value: str) -> str:
    """Register a resolved secret for redaction, and return it. Each line of a multi-line secret is also redacted alone."""
    global _long_pattern, _pattern
    _register_value(value.strip())
    parts = {part for line in (value, *value.splitlines()) if len(part := line.strip()) >= MIN_SECRET_LENGTH}
    parts |= {quote(part, safe="") for part in parts}
    with _lock:
        if not parts <= _known_secrets:
            _known_secrets.update(parts)
            ordered = sorted(_known_secrets, key=len, reverse=True)
            _pattern = re.compile("|".join(map(re.escape, ordered)))
            _long_pattern = re.compile(
                "|".join(re.escape(part) for part in ordered if len(part) >= _MIN_LONG_LENGTH) or r"(?!)"
            )
    return value


def _register_value(value: str) -> None:
    """Register a complete secret for ``mask_readable`` and ``mask_value``, as it is in texts, in URLs and in JSON."""
    global _readable_secrets, _value_pattern, _value_secrets
    forms = {value, quote(value, safe=""), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    with _lock:
        if len(value) >= _MIN_VALUE_LENGTH and not forms <= {*_value_secrets}:
            # Plain search for each secret is faster in long texts than one pattern for all.
            _value_secrets = tuple(sorted({*_value_secrets, *forms}, key=len, reverse=True))
            _readable_secrets = tuple(secret for secret in _value_secrets if len(secret) >= _MIN_LONG_LENGTH)
            values = "|".join(map(re.escape, _value_secrets))
            _value_pattern = re.compile(rf"(?:^|(?<=[=:]))(?:{values})(?=$|[&;,\s\"'@])")


def redact_known_secrets(text: str) -> str:
    """Replace known secrets of 12 or more characters. Use it for server messages, because some servers echo requests."""
    pattern = _long_pattern
    return text if pattern is None else pattern.sub(MASKED, text)


def mask_readable(text: str) -> str:
    """Mask what no reader may see in a text that may have names and locations: secrets of URLs, and known secrets of 12 or more
    characters."""
    text = mask_url_secrets(text)
    for secret in _readable_secrets:
        if secret in text:
            text = text.replace(secret, MASKED)
    return text


def mask_value(text: str) -> str:
    """Mask the value of a property as ``mask_readable`` does. Shorter known secrets are masked, too, if they are the whole value, or
    the value of a ``key=value`` in it."""
    text = mask_readable(text)
    return _value_pattern.sub(MASKED, text) if _value_pattern is not None and has_known_secret(text) else text


def has_known_secret(text: str) -> bool:
    """Return whether a text may contain what ``mask_value`` masks as a known secret."""
    return any(secret in text for secret in _value_secrets)


def mask_url_secrets(text: str) -> str:
    """Replace the userinfo of each URL, and signatures in its query, in a text, a table's location, or a JSON document.

    An Azure container stays.
    """
    if "@" in text and "://" in text:
        text = USERINFO.sub(_masked_userinfo, text)
    return _QUERY_SECRET.sub(rf"\g<before>{MASKED}", text) if "=" in text else text


def _masked_userinfo(match: re.Match[str]) -> str:
    scheme = re.split(r"[^A-Za-z0-9+.-]", match.string[max(0, match.start() - 16) : match.start() - 3])[-1]
    is_container = ":" not in match[0] and scheme.lower() in _CONTAINER_SCHEMES
    return match[0] if is_container or match[0] == f"{MASKED}@" else f"{MASKED}@"


def redact(text: str) -> str:
    """Replace all known secrets, and texts with the form of a secret."""
    pattern = _pattern
    if pattern is not None:
        text = pattern.sub(MASKED, text)
    text = mask_url_secrets(text)
    for shape in _SHAPES:
        text = shape.sub(rf"\g<before>{MASKED}", text)
    return text


def redact_data(value: Any) -> Any:
    """Redact every text in JSON-like data. Texts whose keys name a secret are masked completely."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            key: MASKED if is_secret_key(str(key)) and isinstance(inner, str) else redact_data(inner)
            for key, inner in value.items()
        }
    return [redact_data(item) for item in value] if isinstance(value, list | tuple) else value
