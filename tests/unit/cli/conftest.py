"""A configuration over catalogs in files, and an index that is filled without Spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from federator.model import NamespaceRecord, Record, TableRecord
from federator.planning.publication import ObservedObject
from federator.store import Index, migrations, open_index, revisions
from federator.store.leases import acquire_lease
from federator.store.observations import publish_observations
from federator.testing import MemoryStore
from tests.fixtures.index import new_index

CONFIG = """
[instance]
id = "test"
[index]
url = "{index}"
[sources.lake]
impl = "federator.testing:CONNECTOR"
file = "{folder}/lake.json"
[sources.copy]
impl = "federator.testing:CONNECTOR"
file = "{folder}/copy.json"
[mirrors.nightly]
from = "lake"
to = "copy"
"""

ODD = ("$x", "a.b c", "[red]x[/red]", "50%", ":smile:", "🦆", "\x1b[31mred", "two\nlines", "l" * 500)


@dataclass
class Shell:
    """A working directory with a configuration, and the ways to run a command in it."""

    folder: Path

    def run(self, *words: str, **environment: str) -> Result:
        """In this process."""
        from federator.cli.app import app

        options = {"FEDERATOR_CONFIG": str(self.folder / "federator.toml"), "NO_COLOR": "1", **environment}
        return CliRunner().invoke(app, list(words), env=options)

    def json(self, *words: str) -> Any:
        result = self.run(*words, "--output", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def start(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """In a process of its own, as a user does."""
        command = [sys.executable, "-c", "from federator.cli import main; main()", *words]
        variables = {**os.environ, "NO_COLOR": "1", **environment}
        return subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False, timeout=240)

    def store(self, name: str) -> MemoryStore:
        return MemoryStore(str(self.folder / f"{name}.json"))

    def index(self, url: str = "sqlite:///federator.db") -> Index:
        """The index with its tables, at the URL that the configuration names."""
        if url.startswith("sqlite") and not (self.folder / "federator.db").exists():
            return new_index(self.folder)
        index = open_index(url, base=self.folder)
        migrations.upgrade_schema(index)
        return index


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "federator.toml").write_text(CONFIG.format(folder=tmp_path, index="sqlite:///federator.db"))
    return Shell(tmp_path)


Fill = Callable[..., None]


@pytest.fixture(scope="session")
def fill() -> Fill:
    """Publishes records as a crawl would, without Spark."""

    def publish(index: Index, source: str, records: list[Record]) -> None:
        revisions.register_source(index, source, "memory", "digest")
        with acquire_lease(index, f"source:{source}") as lease:
            observed = [ObservedObject(record.path, record, 1.0, isinstance(record, TableRecord)) for record in records]
            publish_observations(index, lease, source, "run", observed)
            with index.write() as connection:
                revisions.update_source(connection, source, {"state": "ok", "crawled_at": 1.0})

    return publish


def sample(source: str) -> list[Record]:
    """Namespaces and tables with every name that could go wrong."""
    tables = [
        TableRecord(
            source, ("sales", "orders"), "s3://lake/orders.lance", {"team": "[bold]eu[/bold]"}, doc="All orders", owner="anna"
        ),
        TableRecord(source, ("sales", "items"), "s3://lake/items.lance"),
        *(TableRecord(source, ("odd", name), f"s3://lake/{number}.lance") for number, name in enumerate(ODD)),
    ]
    return [
        NamespaceRecord(source, ("sales",)),
        NamespaceRecord(source, ("odd",)),
        NamespaceRecord(source, ("empty",)),
        *tables,
    ]


#: one of the tables of ``sample``, spelled as another catalog does
COPY: list[Record] = [NamespaceRecord("copy", ("sales",)), TableRecord("copy", ("sales", "orders"), "s3a://lake/orders.lance/")]


@pytest.fixture(scope="session")
def filled_file(fill: Fill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that knows two sources; ``copy`` declares one location that ``lake`` declares too."""
    directory = tmp_path_factory.mktemp("filled")
    index = new_index(directory)
    fill(index, "lake", sample("lake"))
    fill(index, "copy", COPY)
    # Closing moves the write-ahead log into the file that is copied.
    index.close()
    return directory / "federator.db"


@pytest.fixture
def filled(shell: Shell, filled_file: Path) -> Shell:
    """A shell with a copy of ``filled_file``."""
    shutil.copy(filled_file, shell.folder)
    return shell
