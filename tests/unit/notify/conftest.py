"""Indexes on both databases, receivers, and settings with channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from federator.model.notices import Notice, NoticeEvent
from federator.settings import Settings, parse_settings
from federator.store import Index, notices
from tests.unit.notify.receiver import Receiver, receiving

MEMORY = "federator.testing:CONNECTOR"


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as kept:
        yield kept


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[..., Settings]:
    """Settings with the channels that are given."""

    def make(**channels: Any) -> Settings:
        raw = {"instance": {"id": "test"}, "notify": channels, "sources": {"lake": {"impl": MEMORY}}}
        return parse_settings(raw, tmp_path / "federator.toml")

    return make


@pytest.fixture
def note() -> Callable[..., None]:
    """Writes notices, as a transaction of the business would."""

    def add(index: Index, *added: Notice) -> None:
        with index.write() as connection:
            notices.add_notices(connection, added)

    return add


def failed(source: str, message: str = "does not answer", **more: Any) -> Notice:
    return Notice(NoticeEvent.SOURCE_FAILED, source, message, source=source, **more)
