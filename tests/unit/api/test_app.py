"""The app as a whole."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

from fastapi import FastAPI

from federator.api.app import create_app
from federator.settings import Settings
from federator.store import Index
from tests.unit.api.conftest import Api


def test_apps_that_nobody_uses_any_more_are_freed(index: Index, settings_of: Callable[..., Settings]) -> None:
    def use() -> weakref.ref[FastAPI]:
        api = Api(create_app(settings_of()))
        api.json("/api/v1/sources")
        return weakref.ref(api.app)

    apps = [use() for _ in range(3)]
    gc.collect()
    # What handled the last request may be kept until the next one.
    assert [app() for app in apps[:-1]] == [None, None]
