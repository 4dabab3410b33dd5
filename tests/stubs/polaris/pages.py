"""Pages as Polaris makes them where ``LIST_PAGINATION_ENABLED`` is set: by entity id, the token naming size and last id."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tests.stubs.polaris.answers import Refusal

T = TypeVar("T")

# The format of the real tokens is Smile, whose header this is.
_HEADER = b":)\n"


def page(entries: Sequence[tuple[int, T]], query: Mapping[str, str]) -> tuple[list[T], str | None]:
    """The asked page of (id, value) pairs in the order of their ids, and the next token. Neither size nor token: everything."""
    size = int(query["pageSize"]) if "pageSize" in query else None
    after = 0
    if query.get("pageToken"):
        encoded_size, after = _decoded(query["pageToken"])
        size = encoded_size if size is None else size
    left = [entry for entry in entries if entry[0] > after]
    taken = left if size is None else left[:size]
    token = _encoded(size or 0, taken[-1][0]) if len(taken) < len(left) else None
    return [value for _, value in taken], token


def _encoded(size: int, last: int) -> str:
    return base64.urlsafe_b64encode(_HEADER + json.dumps([size, last]).encode()).decode()


def _decoded(token: str) -> tuple[int, int]:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error as error:
        raise Refusal(400, "IllegalArgumentException", str(error)) from None
    if not raw.startswith(_HEADER):
        raise Refusal(
            500,
            "RuntimeException",
            "com.fasterxml.jackson.core.JsonParseException: Input does not start with Smile format header "
            f"(first byte = 0x{raw[0]:02x}) and parser has REQUIRE_HEADER enabled: can not parse\n"
            f" at [Source: (byte[])[{len(raw)} bytes]; byte offset: #0]",
        )
    size, last = json.loads(raw.removeprefix(_HEADER))
    return size, last
