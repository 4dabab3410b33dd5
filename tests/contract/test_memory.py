"""The memory catalogs pass the same suite as real ones, so tests with them are meaningful."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import ClassVar

import pytest

from federator.model import Kind, Path, path_key
from federator.testing import CONNECTOR, FEEDING, FOLDING, PLAIN, MemoryStore, get_memory_store
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Location


class _Memory(ConnectorContract):
    levels = 1

    @pytest.fixture(autouse=True)
    def store(self) -> MemoryStore:
        self.name = unique_name("store")
        return get_memory_store(self.name)

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {"store": self.name}

    @pytest.fixture
    def namespace(self, properties: dict[str, str]) -> Path:
        path = tuple(unique_name(f"level{level}") for level in range(self.levels))
        self._store().add_namespace(path)
        return path

    @pytest.fixture
    def location(self) -> Location:
        return lambda name: f"s3://bucket/{name}.lance"

    def make_managed(self, namespace: Path, name: str) -> None:
        self._store().add_table((*namespace, name), kind=Kind.MANAGED_TABLE)

    def make_foreign(self, namespace: Path, name: str) -> None:
        self._store().add_foreign((*namespace, name))

    def deny(self, namespace: Path) -> dict[str, str]:
        return {"faults": f"deny:{path_key(namespace)}"}

    def _store(self) -> MemoryStore:
        return get_memory_store(self.name)


class TestMemory(_Memory):
    connector = CONNECTOR
    levels = 2
    unreachable: ClassVar = {"faults": "fail:*; undescribed:*; refuse:*=17"}


class TestFeeding(_Memory):
    """The same with a feed of changes."""

    connector = FEEDING
    levels = 2
    unreachable: ClassVar = {"faults": "fail:*; undescribed:*; refuse:*=17"}


class TestPlain(_Memory):
    connector = PLAIN


class TestFolding(_Memory):
    connector = FOLDING
    levels = 2


class TestFile(_Memory):
    """The store in a file, as several processes share it."""

    connector = CONNECTOR

    @pytest.fixture(autouse=True)
    def store(self, tmp_path: FilePath) -> MemoryStore:
        self.file = str(tmp_path / "store.json")
        return MemoryStore(self.file)

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return {"file": self.file}

    def _store(self) -> MemoryStore:
        return MemoryStore(self.file)
