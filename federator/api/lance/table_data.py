"""Shared parts of the table data routes: access, table processes and recorded writes.

The routes are coroutines. They wait for a process without blocking a thread, so a storage that hangs blocks only its processes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from anyio import CancelScope
from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from federator.api.dependencies import IndexDep, PrincipalDep, SettingsDep, ThreadsDep
from federator.api.lance.identifiers import Identifier
from federator.api.lance.lookup import VisibleTable, get_lance_table
from federator.api.lance.table_detail import table_handle
from federator.api.lance.write_access import OPERATION_HEADER, AuthorizedWriter, WriterDep, WriteTarget
from federator.api.principals import Principal
from federator.api.shares import PrincipalThreads
from federator.apply.direct_writes import WriteRequest
from federator.apply.table_locks import TABLE_WAIT_SECONDS
from federator.connector import ConcurrentModification, InvalidInput
from federator.data import DataLimits, PrincipalPool, TableHandle, TableProcessPool, run_inspection
from federator.data.limits import CONFIG_SECTION
from federator.data.process_pool import ProcessEnded, ProcessTimeout, RunOperation
from federator.lance.inspection import REFERS_OUTSIDE, Inspection
from federator.runtime.redaction import mask_readable
from federator.settings import Settings
from federator.stages.shared_permissions import Permissions, restrict_to_declaring
from federator.stages.source_stores import find_access
from federator.store import Index, verifications

#: the app's body limit for routes with Arrow bodies; ``[serve.data] max_bytes`` limits them instead
UNLIMITED = 1 << 62
_LOCK_POLL_SECONDS = 0.05

#: called with an operation's response and the inspection of the location afterwards; raises CatalogError
Confirm = Callable[[Mapping[str, Any], Inspection], None]


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads table data for one principal."""

    index: Index
    settings: Settings
    principal: Principal
    pool: PrincipalPool
    threads: PrincipalThreads

    async def run(self, id: Identifier, body: list[str] | None, operation: str, **arguments: Any) -> Any:  # noqa: A002
        """Run an operation on the table of the route and return its response. Raise TableNotFound if it is not visible."""
        return await self.run_on(await self.resolve_handle(id, body), operation, **arguments)

    async def resolve_handle(self, id: Identifier, body: list[str] | None) -> TableHandle:  # noqa: A002
        """Return the table handle. Raise TableNotFound, InvalidInput, or Unsupported for a source without data operations."""
        find = partial(get_lance_table, self.index, self.settings, self.principal.scopes)
        return await self.threads.run(lambda: table_handle(id.read_existing(body, find)))

    async def run_on(self, handle: TableHandle, operation: str, **arguments: Any) -> Any:
        return await _run_on(self.pool, handle, operation, **arguments)


async def _run_on(pool: PrincipalPool, handle: TableHandle, operation: str, **arguments: Any) -> Any:
    return await asyncio.wrap_future(pool.submit(lambda run_operation: run_operation(operation, handle, **arguments)))


def _table_reader(
    index: IndexDep, settings: SettingsDep, principal: PrincipalDep, pool: PoolDep, threads: ThreadsDep
) -> TableReader:  # fmt: skip
    return TableReader(index, settings, principal, pool, threads)


TableReaderDep = Annotated[TableReader, Depends(_table_reader)]


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Writes table data for one principal. Call ``authorize_target`` first for a new table: it checks the role."""

    write: AuthorizedWriter
    pool: PrincipalPool
    threads: PrincipalThreads

    async def resolve_table(self, id: Identifier, body: list[str] | None = None) -> VisibleTable:  # noqa: A002
        """Return the table to write to. Raise PermissionDenied before any lookup, else the errors of ``TableReader.resolve_handle``."""
        return await self.threads.run(lambda: self._table(self.write.authorize_table(id, body)))

    async def authorize_target(self, id: Identifier) -> WriteTarget:  # noqa: A002
        """Return the write target of a table that may not exist yet. Raise PermissionDenied, InvalidInput."""
        return await self.threads.run(self.write.authorize_table, id)

    async def run_on(self, handle: TableHandle, operation: str, **arguments: Any) -> Any:
        return await _run_on(self.pool, handle, operation, **arguments)

    async def table_at(self, target: WriteTarget) -> VisibleTable:
        """Return the existing table of a write target. Raise TableNotFound, or Unsupported without data operations."""
        return await self.threads.run(self._table, target)

    def _table(self, target: WriteTarget) -> VisibleTable:
        table = get_lance_table(self.write.index, self.write.settings, self.write.principal.scopes, target.path)
        table_handle(table)  # raises for a source without data operations
        return table

    @asynccontextmanager
    async def locked(self, target: WriteTarget) -> AsyncIterator[None]:
        """Hold the lock of a table; waiting does not block a thread. Raise ConcurrentModification like ``TableLocks.hold``."""
        deadline = time.monotonic() + TABLE_WAIT_SECONDS
        while True:
            lock = self.write.writer.locks.hold(target.source.name, target.source_path, wait=0.0)
            try:
                await run_in_threadpool(lock.__enter__)
                break
            except ConcurrentModification:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_LOCK_POLL_SECONDS)
        try:
            yield
        finally:
            # Release the lock also if the request was cancelled.
            with CancelScope(shield=True):
                await run_in_threadpool(lock.__exit__, None, None, None)

    async def execute(
        self, table: VisibleTable, action: str, operation: str, confirm: Confirm | None = None, /, *,
        request_fields: Mapping[str, Any] | None = None, **arguments: Any,
    ) -> tuple[Any, str]:  # fmt: skip
        """Run a write, and store the inspection of the location afterwards.

        The write is journalled and audited as ``action`` with ``request_fields``. ``confirm`` can still fail it. Return the
        operation's response and operation id.
        """
        handle = table_handle(table)
        write_request = WriteRequest(
            self.write.principal.name, table.source.name, action, table.path[1:], (), dict(request_fields or {})
        )

        def run(run_operation: RunOperation) -> tuple[Any, str]:
            inspection: Inspection | None = None

            def write() -> Any:
                nonlocal inspection
                response = _run_write(run_operation, operation, handle, arguments)
                inspection = run_inspection(run_operation, self._limit_to_shared(table, handle))
                if confirm is not None:
                    if inspection.state == REFERS_OUTSIDE:
                        # The sources share no permission to read the files, but this source may: check with its own.
                        confirm(response, run_inspection(run_operation, handle, allow_outside=True))
                    else:
                        confirm(response, inspection)
                return response

            try:
                return self.write.writer.record_data_write(write_request, write)
            finally:
                if inspection is not None:
                    self._save_inspection(table, handle, inspection)

        return await asyncio.wrap_future(self.pool.submit(run))

    def _limit_to_shared(self, table: VisibleTable, handle: TableHandle) -> TableHandle:
        """Return the handle without permissions that another source lacks in which the inspection is shown."""
        own = Permissions(handle.allowed_bases, handle.mounts)
        access = find_access(table.source.spec, handle.storage)
        shared = restrict_to_declaring(self.write.index, self.write.settings, own, access, table.record.canonical or "")
        return replace(handle, allowed_bases=shared.allowed_bases, mounts=shared.mounts)

    def _save_inspection(self, table: VisibleTable, handle: TableHandle, inspection: Inspection) -> None:
        canonical = table.record.canonical
        if canonical is None:
            return
        source, access = table.source.name, find_access(table.source.spec, handle.storage)
        with self.write.index.write() as connection:
            verifications.save_inspection(
                connection, inspection, canonical=canonical, location=table.location, through=source, access=access
            )


def _run_write(run_operation: RunOperation, operation: str, handle: TableHandle, arguments: Mapping[str, Any]) -> Any:
    try:
        return run_operation(operation, handle, **arguments)
    except (ProcessTimeout, ProcessEnded) as error:
        message = f"{error.message}; the write may have succeeded nevertheless"
        raise type(error)(message, hint="check the newest version of the table") from None


def _table_writer(write: WriterDep, pool: PoolDep, threads: ThreadsDep) -> TableWriter:
    return TableWriter(write, pool, threads)


TableWriterDep = Annotated[TableWriter, Depends(_table_writer)]


def result_response(result: Any, op_id: str | None = None) -> Response:
    """Return the result of an operation as JSON, with secrets masked."""
    headers = {} if op_id is None else {OPERATION_HEADER: op_id}
    return Response(mask_readable(json.dumps(result)), media_type="application/json", headers=headers)


def body_fields(body: BaseModel) -> dict[str, Any]:
    """Return the fields of a request that are set, without those that name the table and the principal."""
    return body.model_dump(exclude_none=True, exclude={"identity", "context", "id"})


@asynccontextmanager
async def spool_body(request: Request, pool: PrincipalPool) -> AsyncIterator[str]:
    """The complete request body as a temporary file. Raise InvalidInput if it exceeds ``max_bytes``."""
    with pool.open_file() as file:
        size = 0
        with file.path.open("wb") as sink:
            async for chunk in request.stream():
                size += len(chunk)
                if size > pool.limits.bytes:
                    raise InvalidInput(
                        f"the body exceeds the limit {CONFIG_SECTION} max_bytes = {pool.limits.bytes}",
                        hint="send several smaller requests, or write to the table's location directly",
                    )
                file.count(len(chunk))
                await run_in_threadpool(sink.write, chunk)
        yield str(file.path)


def build_pool(settings: Settings) -> TableProcessPool:
    """Build the process pool of ``[serve.data]``. Processes are started on first use."""
    data = settings.serve.data
    return TableProcessPool(DataLimits.from_settings(data), data.processes)


def _pool(request: Request, principal: PrincipalDep) -> PrincipalPool:
    return PrincipalPool(request.app.state.pool, principal.name)


PoolDep = Annotated[PrincipalPool, Depends(_pool)]
