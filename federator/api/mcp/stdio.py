"""Responses for every line of stdin: also for lines that are no messages, and for requests that wait when stdin ends.

The SDK drops both: it logs an unreadable line, and ends the requests in progress with stdin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from pydantic import ValidationError

# Seconds to wait for the last responses after stdin has ended.
_PATIENCE = 60.0
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


class _Responses:
    """The write stream of the SDK, which notes the requests of both sides that have no response yet."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        #: ids of the requests without a response
        self._of_server: set[Any] = set()
        self._of_client: set[Any] = set()
        self._changed = anyio.Event()

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        if isinstance(item.message, JSONRPCRequest):
            self._of_server.add(item.message.id)
        elif isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._of_client.discard(item.message.id)
        self._changed.set()

    def note(self, message: Any) -> None:
        """Note a message of the client."""
        if isinstance(message, JSONRPCRequest):
            self._of_client.add(message.id)
        elif isinstance(message, JSONRPCResponse | JSONRPCError):
            self._of_server.discard(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request has no response. The id is not checked yet: the SDK ignores one that is neither a text nor an integer.
            request = (message.params or {}).get("requestId")
            self._of_client = {each for each in self._of_client if each != request}

    async def refuse(self, error: object) -> None:
        """Respond to a line that is no message, or a request without a valid id. Blank lines are ignored."""
        faults = error.errors() if isinstance(error, ValidationError) else []
        if faults and not str(faults[0]["input"]).strip():
            return
        unreadable = any(fault["type"] == "json_invalid" for fault in faults)
        text = "not a line of JSON" if unreadable else "not a JSON-RPC message"
        data = ErrorData(code=_PARSE_ERROR if unreadable else _INVALID_REQUEST, message=text)
        await self._stream.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=data)))

    async def wait(self) -> None:
        """Wait until each request of the client has its response, or until one waits for the client."""
        with anyio.move_on_after(_PATIENCE):
            while self._of_client and not self._of_server:
                self._changed = anyio.Event()
                await self._changed.wait()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _lacks_id(message: Any) -> bool:
    """Return whether a message is a request that the SDK read as a notification, because its id is neither a text nor an integer."""
    return isinstance(message, JSONRPCNotification) and not message.method.startswith("notifications/")


@asynccontextmanager
async def respond_to_all(
    read: Any, write: Any
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _Responses]]:
    """Yield the streams of ``stdio_server`` with these rules."""
    forward, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    responses = _Responses(write)

    async def relay() -> None:
        async with forward:
            async for item in read:
                if isinstance(item, Exception) or _lacks_id(item.message):
                    await responses.refuse(item)
                else:
                    responses.note(item.message)
                    await forward.send(item)
            await responses.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        yield received, responses
        tasks.cancel_scope.cancel()
