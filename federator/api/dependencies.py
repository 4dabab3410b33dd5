"""FastAPI dependencies of the routes. They are coroutines, because FastAPI calls plain functions in another thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from inspect import iscoroutinefunction
from typing import Annotated

from fastapi import Depends, Query, Request

from federator.api.cursor_seal import CursorSeal
from federator.api.principals import ANONYMOUS, Principal
from federator.api.shares import IDENTITY_PROVIDER, PrincipalThreads, ThreadShares
from federator.settings import Settings
from federator.store import Index
from federator.views.table_counts import TableCounts
from federator.views.visibility import Visibility


async def _get_index(request: Request) -> Index:
    index: Index = request.app.state.index
    return index


async def _get_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def _get_cursor_seal(request: Request) -> CursorSeal:
    seal: CursorSeal = request.app.state.cursor_seal
    return seal


async def _get_table_counts(request: Request) -> TableCounts:
    counts: TableCounts = request.app.state.table_counts
    return counts


async def _get_principal(request: Request) -> Principal:
    principal: Principal = request.scope["principal"]
    return principal


async def _get_visibility(request: Request) -> Visibility:
    principal, settings = await _get_principal(request), await _get_settings(request)
    origins = {
        name: mirror.origin
        for name, mirror in settings.mirrors.items()
        if principal.scopes.is_visible((mirror.origin,)) and principal.scopes.is_visible((mirror.target,))
    }
    return Visibility(principal.name, principal.scopes, settings.visible_mirrors(principal.scopes), origins)


async def _get_max_size(request: Request) -> int | None:
    size: int | None = request.scope.get(MAX_SIZE_KEY)
    return size


async def _hold_share(request: Request) -> AsyncIterator[None]:
    """Hold the principal's share while the route runs in a thread. Coroutines use threads through ``PrincipalThreads``."""
    principal = await _get_principal(request)
    if principal is ANONYMOUS or iscoroutinefunction(request.scope["endpoint"]):
        yield
        return
    shares: ThreadShares = request.app.state.thread_shares
    async with shares.hold(principal.name):
        yield


async def _hold_provider_share(request: Request) -> AsyncIterator[None]:
    """Hold a thread of the share of the identity provider, which may not respond. All sign-ins have one share: nobody is known yet."""
    shares: ThreadShares = request.app.state.thread_shares
    async with shares.hold(IDENTITY_PROVIDER):
        yield


async def _get_threads(request: Request) -> PrincipalThreads:
    return PrincipalThreads(request.app.state.thread_shares, (await _get_principal(request)).name)


#: key in the scope of a request within the process: the size beyond which its caller refuses a response
MAX_SIZE_KEY = "max_size"
#: a dependency of every route; it ends before the response is sent, so that a slow client holds nothing
HOLD_SHARE = Depends(_hold_share, scope="function")
#: a dependency of the routes that call the identity provider: together, they take a bounded number of threads
HOLD_PROVIDER_SHARE = Depends(_hold_provider_share, scope="function")
MaxSizeDep = Annotated[int | None, Depends(_get_max_size)]
ThreadsDep = Annotated[PrincipalThreads, Depends(_get_threads)]
IndexDep = Annotated[Index, Depends(_get_index)]
SettingsDep = Annotated[Settings, Depends(_get_settings)]
CursorSealDep = Annotated[CursorSeal, Depends(_get_cursor_seal)]
TableCountsDep = Annotated[TableCounts, Depends(_get_table_counts)]
PrincipalDep = Annotated[Principal, Depends(_get_principal)]
VisibilityDep = Annotated[Visibility, Depends(_get_visibility)]
Limit = Annotated[int, Query(ge=1, le=1000, description="maximum number of entries on a page")]
Cursor = Annotated[str | None, Query(max_length=8000, description="`next` of the previous page")]
