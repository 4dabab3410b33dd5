"""The secrets that this process has resolved, so that none of them leaves it by accident.

The rule is that no text of ours holds one. This is the last line of defence where text leaves: logs, notifications, traces.
"""

from __future__ import annotations

import re
import threading
from typing import Any
from urllib.parse import quote

MASKED = "(masked)"
#: shorter ones would take common words with them
SHORTEST = 4
#: in what a catalog said, only what no word or name of ours can be is taken out
_LONG = 12
_WORDS = (
    "secret", "password", "token", "credential", "access_key", "account_key", "api_key", "private", "sas", "service_account",
    "authorization", "cookie",
)  # fmt: skip
# A password in a URL; what follows a name that says that it is secret; an authorization of any scheme.
_SHAPES = (
    re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^/\s:@\"']*:)[^/\s@\"']+(?=@)", re.IGNORECASE),
    re.compile(r"(?P<before>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE),
    re.compile(
        r"(?P<before>\b(?:password|passwd|secret[_-]?access[_-]?key|secret|access[_-]?token|api[_-]?key|client[_-]?secret)\s*=\s*)"
        r"[^\s&,;\"'(]+",
        re.IGNORECASE,
    ),
)
_lock = threading.Lock()
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None
_long: re.Pattern[str] | None = None


def is_secret_key(key: str) -> bool:
    """Whether a property's name says that its value is a secret, as storage options and table parameters name them."""
    lowered = key.lower().replace("-", "_").replace(".", "_")
    return any(word in lowered for word in _WORDS)


def remember(value: str) -> str:
    """Notes a resolved secret, and gives it back. Each line of one that has several counts on its own."""
    global _long, _pattern
    found = {part for line in (value, *value.splitlines()) if len(part := line.strip()) >= SHORTEST}
    found |= {quote(part, safe="") for part in found}
    with _lock:
        if not found <= _known:
            _known.update(found)
            ordered = sorted(_known, key=len, reverse=True)
            _pattern = re.compile("|".join(map(re.escape, ordered)))
            _long = re.compile("|".join(re.escape(part) for part in ordered if len(part) >= _LONG) or r"(?!)")
    return value


def unsaid(text: str) -> str:
    """What a catalog said, without the long ones of the secrets that this process knows: some repeat what they were sent."""
    pattern = _long
    return text if pattern is None else pattern.sub(MASKED, text)


def redacted(text: str) -> str:
    """The text without any secret that this process knows, and without what looks like one."""
    pattern = _pattern
    if pattern is not None:
        text = pattern.sub(MASKED, text)
    for shape in _SHAPES:
        text = shape.sub(rf"\g<before>{MASKED}", text)
    return text


def redacted_data(value: Any) -> Any:
    """JSON-like data with every text redacted, and the texts whose names say that they are secrets masked whole."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {
            key: MASKED if is_secret_key(str(key)) and isinstance(inner, str) else redacted_data(inner)
            for key, inner in value.items()
        }
    return [redacted_data(item) for item in value] if isinstance(value, list | tuple) else value
