"""Responses that are sent from a file, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from federator.data.spool import SpoolFile

_CHUNK_BYTES = 1 << 18


class SpooledResponse(StreamingResponse):
    """Streams a spooled file, which is unlinked first and read through its open handle, and closes it: also if the client leaves.

    Raise Throttled if the principal has too many bytes of other files.
    """

    def __init__(self, file: SpoolFile, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        size = file.path.stat().st_size
        file.count(size)
        self._file, self._source = file, file.path.open("rb")
        file.path.unlink()
        chunks = iter(partial(self._source.read, _CHUNK_BYTES), b"")
        super().__init__(chunks, media_type=media_type, headers={"Content-Length": str(size), **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._source.close()
            self._file.close()
