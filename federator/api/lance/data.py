"""What every route about a table's data shares: who may, which table, a process to ask, and for writes the journal and the index.

Routes are coroutines and wait for a process without holding a thread that others need: a store that hangs costs its processes only.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any, BinaryIO

from anyio import CancelScope
from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from federator.api.access import Caller
from federator.api.context import CallerOf, IndexOf, SettingsOf
from federator.api.lance.detail import place_of
from federator.api.lance.identifiers import Identifier
from federator.api.lance.pool import PoolOf
from federator.api.lance.resolving import Table, resolve_table
from federator.api.lance.writes import OPERATION_HEADER, Target, Write, Writing
from federator.connector import ConcurrentModification, InvalidInput
from federator.data import DataPool, Place
from federator.data.limits import SECTION
from federator.data.pool import NoAnswer, ProcessEnded
from federator.index import Index, datasets
from federator.model import Path
from federator.settings import Settings
from federator.sync.table_locks import TABLE_WAIT
from federator.sync.writing import Order

#: what a route of Arrow bodies takes at most by the app's own measure: ``[serve.data] max_bytes`` bounds them instead
ANY_SIZE = 1 << 62
_CHUNK = 1 << 18
_LOCK_PAUSE = 0.05

#: called with an operation's answer and the row of verification for what is there afterwards; raises CatalogError
Confirm = Callable[[Mapping[str, Any], Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Reading:
    """One caller's way to look into tables."""

    index: Index
    settings: Settings
    caller: Caller
    pool: DataPool

    async def ask(self, id: Identifier, body: list[str] | None, operation: str, **arguments: Any) -> Any:  # noqa: A002
        """An operation's answer about the table that the route names. Raises TableNotFound for what the caller may not see."""
        return await self.at(await self.place(id, body), operation, **arguments)

    async def place(self, id: Identifier, body: list[str] | None) -> Place:  # noqa: A002
        """Where the table is. Raises TableNotFound, InvalidInput, Unsupported for a source that is not to be opened."""
        path = id.same(body)
        return await run_in_threadpool(lambda: place_of(resolve_table(self.index, self.settings, self.caller.scopes, path)))

    async def at(self, place: Place, operation: str, **arguments: Any) -> Any:
        future = self.pool.submit(lambda ask: ask(operation, place, **arguments))
        return await asyncio.wrap_future(future)


def _reading(index: IndexOf, settings: SettingsOf, caller: CallerOf, pool: PoolOf) -> Reading:
    return Reading(index, settings, caller, pool)


Data = Annotated[Reading, Depends(_reading)]


@dataclass(frozen=True, slots=True)
class Changing:
    """One caller's way to write into tables. ``target`` comes first: it checks the role."""

    write: Write
    pool: DataPool

    async def table(self, id: Identifier, body: list[str] | None = None) -> Table:  # noqa: A002
        """The table to write to. Raises PermissionDenied before anything is looked up, then what ``Reading.place`` does."""
        return await run_in_threadpool(self._table, id.same(body))

    def target(self, id: Identifier) -> Target:  # noqa: A002
        """The path to write to, for what is not there yet. Raises PermissionDenied."""
        return self.write.target(id.path)

    async def table_at(self, target: Target) -> Table:
        return await run_in_threadpool(self._table, target.path)

    def _table(self, path: Path) -> Table:
        target = self.write.target(path)
        table = resolve_table(self.write.index, self.write.settings, self.write.caller.scopes, target.path)
        place_of(table)
        return table

    @asynccontextmanager
    async def locked(self, target: Target) -> AsyncIterator[None]:
        """Hold the lock of a table, and wait for it without a thread. Raise ConcurrentModification as ``TableLocks.hold``."""
        ends_at = time.monotonic() + TABLE_WAIT
        while True:
            lock = self.write.writer.locks.hold(target.source.name, target.inner, wait=0.0)
            try:
                await run_in_threadpool(lock.__enter__)
                break
            except ConcurrentModification:
                if time.monotonic() >= ends_at:
                    raise
            await asyncio.sleep(_LOCK_PAUSE)
        try:
            yield
        finally:
            # Also where the request was given up meanwhile.
            with CancelScope(shield=True):
                await run_in_threadpool(lock.__exit__, None, None, None)

    async def carry_out(
        self, table: Table, action: str, operation: str, confirm: Confirm | None = None, /, *,
        told: Mapping[str, Any] | None = None, **arguments: Any,
    ) -> tuple[Any, str]:  # fmt: skip
        """Writes, journalled and audited as ``action`` with ``told``; what is there afterwards goes into the index.

        ``confirm`` may still fail the write: it gets the operation's answer and what is at the location afterwards. Returns the
        operation's answer and the id under which journal and audit know it.
        """
        place = place_of(table)
        order = Order(self.write.caller.name, table.source.name, action, table.path[1:], (), dict(told or {}))

        def work(ask: Any) -> tuple[Any, str]:
            found: dict[str, Any] = {}

            def act() -> Any:
                made = _heard(ask, operation, place, arguments)
                found.update(ask("look", place))
                if confirm is not None:
                    confirm(made, found)
                return made

            try:
                return self.write.writer.record(order, act)
            finally:
                if found:
                    self._see(table, found)

        return await asyncio.wrap_future(self.pool.submit(work))

    def _see(self, table: Table, found: Mapping[str, Any]) -> None:
        """Writes down what verification would find now."""
        canonical = table.record.canonical
        if canonical is None:
            return
        row = {
            "canonical": canonical, "location": table.location, "checked_at": time.time(), "checked_through": table.source.name,
            **found,
        }  # fmt: skip
        with self.write.index.write() as connection:
            datasets.save(connection, [row])


def _heard(ask: Any, operation: str, place: Place, arguments: Mapping[str, Any]) -> Any:
    try:
        return ask(operation, place, **arguments)
    except (NoAnswer, ProcessEnded) as error:
        message = f"{error.message}; what was asked for may have been done all the same"
        raise type(error)(message, hint="the table's newest version tells") from None


def _changing(write: Writing, pool: PoolOf) -> Changing:
    return Changing(write, pool)


Change = Annotated[Changing, Depends(_changing)]


def told(content: Any, op_id: str | None = None) -> Response:
    """An answer as JSON."""
    headers = {} if op_id is None else {OPERATION_HEADER: op_id}
    return Response(json.dumps(content), media_type="application/json", headers=headers)


@asynccontextmanager
async def spooled(request: Request, pool: DataPool) -> AsyncIterator[str]:
    """The request's body as a file, whole. Raises InvalidInput beyond ``max_bytes``."""
    with pool.file() as path:
        size = 0
        with path.open("wb") as sink:
            async for chunk in request.stream():
                size += len(chunk)
                if size > pool.limits.bytes:
                    raise InvalidInput(
                        f"the body has more bytes than the limit: {SECTION} max_bytes = {pool.limits.bytes}",
                        hint="several smaller requests, or a client that writes to the table's location",
                    )
                await run_in_threadpool(sink.write, chunk)
        yield str(path)


def streamed(path: FilePath, media_type: str) -> Response:
    """A file as an answer; it is removed at once and read as far as the client takes it."""
    size, source = path.stat().st_size, path.open("rb")
    path.unlink()
    return StreamingResponse(_chunks(source), media_type=media_type, headers={"Content-Length": str(size)})


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    with source:
        yield from iter(partial(source.read, _CHUNK), b"")
