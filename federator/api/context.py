"""What a route needs, from the app's state. Coroutines, since anything else would be called in another thread."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request

from federator.api.access import Caller
from federator.index import Index
from federator.index.run_views import Viewer
from federator.settings import Settings


async def _index(request: Request) -> Index:
    index: Index = request.app.state.index
    return index


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


async def _viewer(request: Request) -> Viewer:
    caller, settings = await _caller(request), await _settings(request)
    origins = {
        name: mirror.origin
        for name, mirror in settings.mirrors.items()
        if caller.scopes.shows((mirror.origin,)) and caller.scopes.shows((mirror.target,))
    }
    return Viewer(caller.name, caller.scopes, settings.mirrors_in(caller.scopes), origins)


IndexOf = Annotated[Index, Depends(_index)]
SettingsOf = Annotated[Settings, Depends(_settings)]
CallerOf = Annotated[Caller, Depends(_caller)]
ViewerOf = Annotated[Viewer, Depends(_viewer)]
Limit = Annotated[int, Query(ge=1, le=1000, description="entries on a page")]
Cursor = Annotated[str | None, Query(max_length=8000, description="`next` of the page before")]
