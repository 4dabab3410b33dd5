"""Indexes on both databases, receivers, and settings with channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from federator.index import Index, migrate, notices, open_index
from federator.model.notices import Event, Notice
from federator.settings import Settings, parse
from tests.notify.receiver import Receiver, receiving

MEMORY = "federator.testing:CONNECTOR"


@pytest.fixture(scope="session")
def notify_template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A migrated, empty SQLite index."""
    directory = tmp_path_factory.mktemp("template")
    index = open_index("sqlite:///federator.db", base=directory)
    migrate.upgrade(index)
    index.close()
    return (directory / "federator.db").read_bytes()


@pytest.fixture
def lite(notify_template: bytes, tmp_path: Path) -> Iterator[Index]:
    (tmp_path / "federator.db").write_bytes(notify_template)
    index = open_index("sqlite:///federator.db", base=tmp_path)
    yield index
    index.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def index(request: pytest.FixtureRequest) -> Index:
    made: Index = request.getfixturevalue("lite") if request.param == "sqlite" else request.getfixturevalue("postgres_index")()
    return made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as kept:
        yield kept


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[..., Settings]:
    """Settings with the channels that are given."""

    def make(**channels: Any) -> Settings:
        raw = {"instance": {"id": "test"}, "notify": channels, "sources": {"lake": {"impl": MEMORY}}}
        return parse(raw, tmp_path / "federator.toml")

    return make


@pytest.fixture
def note() -> Callable[..., None]:
    """Writes notices, as a transaction of the business would."""

    def add(index: Index, *made: Notice) -> None:
        with index.write() as connection:
            notices.add(connection, made)

    return add


def failed(source: str, message: str = "does not answer", **more: Any) -> Notice:
    return Notice(Event.SOURCE_FAILED, source, message, source=source, **more)
