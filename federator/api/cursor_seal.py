"""Sealed positions: a position with a secret that responses mask is unreadable in its cursor.

Listings by location continue after a raw location, which may have a password or a signature. Such a position is encrypted. All other
positions stay readable. The encryption is deterministic (SIV: the tag of the text is the nonce), because ETags cover cursors. It needs
no other package: HMAC-SHA-256 makes the tag, and SHAKE-256 over key and tag makes the key stream.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import cached_property

from federator.connector import InvalidInput
from federator.runtime.base64url import decode_base64url, encode_base64url
from federator.runtime.redaction import mask_url_secrets
from federator.store import Index
from federator.store.key_values import read_key

# No position begins with this text: positions are URIs, JSON or names from responses.
_PREFIX = "\x01sealed:"
_KEY_NAME = "cursor_key"
_TAG_BYTES = 16


class CursorSeal:
    """Seals positions for one index. All processes of a deployment share its key, which protects cursors only."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def seal(self, position: str) -> str:
        """Return the position, sealed if it contains a secret of a URL."""
        return position if mask_url_secrets(position) == position else self._encrypt(position)

    def open(self, position: str) -> str:
        """Return what ``seal`` was called with. Raise InvalidInput if a sealed position was changed."""
        return self._decrypt(position.removeprefix(_PREFIX)) if position.startswith(_PREFIX) else position

    def _encrypt(self, position: str) -> str:
        text = position.encode()
        tag = self._tag(text)
        return _PREFIX + encode_base64url(tag + self._apply_key_stream(tag, text))

    def _decrypt(self, sealed: str) -> str:
        try:
            content = decode_base64url(sealed)
        except ValueError:
            content = b""
        tag, encrypted = content[:_TAG_BYTES], content[_TAG_BYTES:]
        text = self._apply_key_stream(tag, encrypted)
        if not hmac.compare_digest(tag, self._tag(text)):
            raise InvalidInput("the cursor is malformed", hint="omit the cursor to start again")
        return text.decode()

    def _tag(self, text: bytes) -> bytes:
        return hmac.digest(self._key, b"tag" + text, "sha256")[:_TAG_BYTES]

    def _apply_key_stream(self, tag: bytes, text: bytes) -> bytes:
        stream = hashlib.shake_256(self._key + b"stream" + tag).digest(len(text))
        return bytes(a ^ b for a, b in zip(text, stream, strict=True))

    @cached_property
    def _key(self) -> bytes:
        return read_key(self._index, _KEY_NAME)
