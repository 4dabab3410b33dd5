"""A configuration file for a worker and its jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from federator.settings import Settings, load_settings
from federator.store import Index
from federator.testing import MemoryStore
from tests.fixtures.index import new_index

CONFIG = """
[instance]
id = "test"
[serve]
port = 0
[verify]
enabled = false
[sources.lake]
impl = "federator.testing:CONNECTOR"
file = "{directory}/lake.json"
{lake}
[sources.copy]
impl = "federator.testing:CONNECTOR"
file = "{directory}/copy.json"
[mirrors.m]
from = "lake"
to = "copy"
{mirror}
"""


@pytest.fixture
def configure(tmp_path: Path) -> Callable[..., Settings]:
    """Writes the configuration, and gives ``lake`` two tables."""
    store = MemoryStore(str(tmp_path / "lake.json"))
    store.add_table(("sales", "orders"))
    store.add_table(("sales", "a/b%$😀"))
    MemoryStore(str(tmp_path / "copy.json")).add_namespace(("sales",))

    def write(lake: str = "", mirror: str = "") -> Settings:
        file = tmp_path / "federator.toml"
        file.write_text(CONFIG.format(directory=tmp_path, lake=lake, mirror=mirror), encoding="utf-8")
        return load_settings(file)

    return write


@pytest.fixture
def index(configure: Callable[..., Settings]) -> Index:
    return new_index(configure().base)
