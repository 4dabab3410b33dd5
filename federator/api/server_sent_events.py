"""Server-sent events whose ids are digests of their content: a client that reconnects misses nothing and receives no state twice.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import hashlib
import time
from typing import Annotated

from fastapi import Header

LastEventId = Annotated[str | None, Header(max_length=100, description="id of the last event that the client received")]
#: the first line of a stream: a client that loses it connects again after this time
RETRY = "retry: 2000\n\n"
KEEP_ALIVE_SECONDS = 15.0


def event_id(content: bytes) -> str:
    """Return the id of an event with this content: a digest of 16 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:16]


class SentEvents:
    """What one stream has sent. ``keep_alive`` is the text that it sends after ``KEEP_ALIVE_SECONDS`` without an event."""

    def __init__(self, last_id: str | None, *, keep_alive: str) -> None:
        self._last_id = last_id
        self._keep_alive = keep_alive
        self._sent_at = time.monotonic()

    def format_next(self, kind: str, content: bytes) -> str | None:
        """Return the text to send now. None: nothing, because the content is still that of the last event."""
        if (newest := event_id(content)) != self._last_id:
            text = f"id: {newest}\nevent: {kind}\ndata: {content.decode()}\n\n"
        elif time.monotonic() - self._sent_at >= KEEP_ALIVE_SECONDS:
            text = self._keep_alive
        else:
            return None
        self._last_id, self._sent_at = newest, time.monotonic()
        return text
