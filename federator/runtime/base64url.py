"""Base64 for URLs and cookies, without padding (RFC 4648, section 5)."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode


def encode_base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes:
    """Return the bytes of a text with or without padding. Raise ValueError for other characters or a wrong length."""
    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
