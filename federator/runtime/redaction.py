"""Redaction of the secrets that this process has resolved.

No text of the federator should contain a secret. Redaction is the last line of defence where text leaves the process. A text is
redacted by the function for its kind:

- ``redact``, ``redact_data``: logs, notifications and traces, where too much redaction does no harm.
- ``mask_readable``: texts with names and locations, which must stay readable: responses, reports, the output of commands.
- ``mask_value``: the value of one property.
- ``mask_url_secrets``: one location or URL; every other function except ``redact_known_secrets`` includes it.
- ``redact_known_secrets``: a message of a server.
"""

from __future__ import annotations

import json
import re
import threading
from functools import lru_cache
from typing import Any
from urllib.parse import quote

MASKED = "(masked)"
# Shorter parts of secrets are not redacted, because they could be common words.
_MIN_SECRET_LENGTH = 4
# The same for texts with names and locations: a part of this length is hardly a name by chance.
_MIN_LONG_LENGTH = 12
# The same for the values of properties.
_MIN_VALUE_LENGTH = 6
# The characters of a secret that a search sends to PostgreSQL.
_FRAGMENT_LENGTH = 4
# Parts of the names of properties and options whose values are secret.
_SECRET_KEY_PARTS = (
    "secret", "password", "token", "credential", "access_key", "account_key", "api_key", "private", "sas", "service_account",
    "authorization", "cookie",
)  # fmt: skip
#: the userinfo of a URL with its ``@``, also in JSON
USERINFO = re.compile(r"(?<=://)(?:[^/\s\"\\]|\\.)*@")
# The name of a credential in the query of a URL: a SAS of Azure, or a presigned URL of S3 or Google.
_QUERY_KEY = (
    r"(?:[?&;]|%3f)(?:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid|googleaccessid)="
)
_QUERY_SECRET = re.compile(rf"(?P<before>{_QUERY_KEY})(?!\(masked\))[^&#;\s\"'\\<>]+", re.IGNORECASE)
#: in these schemes the text before "@" is the container, unless it has a password.
CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "az", "azure")
#: the parts of a location that are masked, and what follows a credential in its query, as regular expressions of Python and of
#: PostgreSQL. Case does not matter. A second URL with userinfo leaves nothing.
MASKED_PARTS = (
    r"^.*://.*://.*@.*$",
    rf"^(?!(?:{'|'.join(CONTAINER_SCHEMES)})://[^/:@]*@[^/@]*(?:/|$))[^/]*://[^/]*@",
    rf"{_QUERY_KEY}.*",
)
_MASKED_PARTS = tuple(re.compile(part, re.IGNORECASE | re.DOTALL) for part in MASKED_PARTS)
# Texts that have the form of a secret: a bearer or basic authorization, and the value after the name of a secret.
_SECRET_FORMS = (
    re.compile(r"(?P<before>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE),
    re.compile(
        r"(?P<before>\b(?:password|passwd|secret[_-]?access[_-]?key|secret|access[_-]?token|api[_-]?key|client[_-]?secret)\s*=\s*)"
        r"[^\s&,;\"'(]+",
        re.IGNORECASE,
    ),
)
_lock = threading.Lock()
# Parts of secrets, which are their lines, also in the spelling of a URL.
_known_parts: frozenset[str] = frozenset()
# Complete secrets, the longest first, as they are in texts, in URLs and in JSON. Plain search for each of them is faster in long texts
# than one pattern for all.
_complete_secrets: tuple[str, ...] = ()
_long_complete_secrets: tuple[str, ...] = ()


@lru_cache(maxsize=8_192)
def is_secret_key(key: str) -> bool:
    """Return whether the name of a property, storage option or table parameter says that its value is a secret."""
    lowered = key.lower().replace("-", "_").replace(".", "_")
    return any(word in lowered for word in _SECRET_KEY_PARTS)


def register_secret(value: str) -> str:
    """Register a resolved secret for redaction, and return it. Each line of a multi-line secret is also redacted alone."""
    global _complete_secrets, _known_parts, _long_complete_secrets
    complete = value.strip()
    forms = {complete, quote(complete, safe=""), json.dumps(complete)[1:-1], json.dumps(complete, ensure_ascii=False)[1:-1]}
    parts = {part for line in (value, *value.splitlines()) if len(part := line.strip()) >= _MIN_SECRET_LENGTH}
    with _lock:
        _known_parts |= parts | {quote(part, safe="") for part in parts}
        if len(complete) >= _MIN_VALUE_LENGTH and not forms <= {*_complete_secrets}:
            _complete_secrets = tuple(sorted({*_complete_secrets, *forms}, key=len, reverse=True))
            _long_complete_secrets = tuple(secret for secret in _complete_secrets if len(secret) >= _MIN_LONG_LENGTH)
    return value


@lru_cache(maxsize=2)
def _compile_parts(parts: frozenset[str], min_length: int) -> re.Pattern[str]:
    """Return a pattern for each part of this length or more. Secrets come one by one, so it is made when a text is redacted."""
    ordered = sorted((part for part in parts if len(part) >= min_length), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)) or r"(?!)")


@lru_cache(maxsize=1)
def _compile_values(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for each complete secret that is the whole value of a property, or of a ``key=value`` in it."""
    return re.compile(rf"(?:^|(?<=[=:]))(?:{'|'.join(map(re.escape, secrets))})(?=$|[&;,\s\"'@])")


def redact_known_secrets(text: str) -> str:
    """Replace known secrets of 12 or more characters. Use it for server messages, because some servers echo requests."""
    return _compile_parts(_known_parts, _MIN_LONG_LENGTH).sub(MASKED, text)


def mask_readable(text: str) -> str:
    """Mask secrets in a text with names and locations: those of URLs, and known complete secrets of 12 or more characters."""
    text = mask_url_secrets(text)
    for secret in _long_complete_secrets:
        if secret in text:
            text = text.replace(secret, MASKED)
    return text


def mask_value(text: str) -> str:
    """Mask the value of a property as ``mask_readable`` does, and also shorter known secrets, of 6 or more characters.

    A shorter one is masked only if it is the whole value, or the value of a ``key=value`` in it.
    """
    text = mask_readable(text)
    return _compile_values(_complete_secrets).sub(MASKED, text) if has_known_secret(text) else text


def list_known_secrets() -> tuple[str, ...]:
    """Return the texts that ``has_known_secret`` looks for. Each has 6 or more characters."""
    return _complete_secrets


def has_known_secret(text: str) -> bool:
    """Return whether a text may contain what ``mask_value`` masks as a known secret."""
    return any(secret in text for secret in _complete_secrets)


def plain_location(location: str) -> str:
    """Return a location without all that ``mask_readable`` may mask, and without what follows a known secret."""
    for secret in _long_complete_secrets:
        location = location.partition(secret)[0]
    if "@" in location or "=" in location:
        for part in _MASKED_PARTS:
            location = part.sub("", location)
    return location


def known_secret_pattern() -> str:
    """Return a regular expression of PostgreSQL for what ``plain_location`` leaves out from the first known secret on.

    It has four characters of each secret only, because databases write statements into their logs. Other texts may have them, too.
    """
    return _known_secret_pattern(_long_complete_secrets)


@lru_cache(maxsize=1)
def _known_secret_pattern(known: tuple[str, ...]) -> str:
    fragments = {
        (start, known_secret[start : start + _FRAGMENT_LENGTH]) for known_secret in known for start in [_rarest(known_secret)]
    }
    beginnings = [f".{{{start}}}{re.escape(fragment)}" for start, fragment in sorted(fragments)]
    return f"(?:{'|'.join(beginnings)}).*" if beginnings else "(?!)"


def _rarest(text: str) -> int:
    """Return the position of the fragment with the most kinds of characters, and then the most different ones: a rare text."""
    kinds = (str.islower, str.isupper, str.isdigit)

    def rarity(start: int) -> tuple[int, int]:
        fragment = text[start : start + _FRAGMENT_LENGTH]
        return sum(any(map(kind, fragment)) for kind in kinds), len({*fragment})

    return max(range(len(text) - _FRAGMENT_LENGTH + 1), key=rarity)


def mask_url_secrets(text: str) -> str:
    """Mask the userinfo of each URL in a text or a JSON document, and signatures in its query.

    An Azure container before the ``@`` stays.
    """
    if "@" in text and "://" in text:
        text = USERINFO.sub(_mask_userinfo, text)
    return _QUERY_SECRET.sub(rf"\g<before>{MASKED}", text) if "=" in text else text


def _mask_userinfo(match: re.Match[str]) -> str:
    # The scheme is in the 13 characters before "://", possibly behind other text.
    scheme = re.split(r"[^A-Za-z0-9+.-]", match.string[max(0, match.start() - 16) : match.start() - 3])[-1]
    is_container = ":" not in match[0] and scheme.lower() in CONTAINER_SCHEMES
    return match[0] if is_container or match[0] == f"{MASKED}@" else f"{MASKED}@"


def redact(text: str) -> str:
    """Replace all known secrets, and texts with the form of a secret."""
    text = mask_url_secrets(_compile_parts(_known_parts, _MIN_SECRET_LENGTH).sub(MASKED, text))
    for form in _SECRET_FORMS:
        text = form.sub(rf"\g<before>{MASKED}", text)
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
