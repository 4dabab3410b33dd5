"""An installation with a configuration of its own, whose commands run in processes of their own."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Table, select

from federator.store import open_index
from federator.store import tables as t


@dataclass(frozen=True)
class Installation:
    """A directory with a configuration, its index, and the variables of its environment."""

    directory: Path
    url: str
    environment: dict[str, str]

    def run(self, *words: str, code: int = 0, **environment: str) -> str:
        """Return what a command prints."""
        return self.execute("-c", "from federator.cli import main; main()", *words, code=code, **environment)

    def execute(self, *words: str, code: int = 0, **environment: str) -> str:
        """Return what this Python prints."""
        command = [sys.executable, *words]
        variables = {**os.environ, "NO_COLOR": "1", **self.environment, **environment}
        done = subprocess.run(
            command, cwd=self.directory, env=variables, capture_output=True, text=True, check=False, timeout=1200
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def rows(self, table: Table, *columns: str) -> set[tuple[Any, ...]]:
        with closing(open_index(self.url)) as index, index.read() as connection:
            return {tuple(row) for row in connection.execute(select(*(table.c[name] for name in columns)))}

    def results(self) -> dict[str, set[tuple[Any, ...]]]:
        """What a sync has found and done: verified datasets, copied objects, and the records of the origin."""
        origins = {row for row in self.rows(t.record, "source", "path", "digest") if row[0] == "lake"}
        datasets, copies = self.rows(t.dataset, "canonical", "state", "rows"), self.rows(t.ledger, "origin_path", "is_table")
        return {"datasets": datasets, "copies": copies, "origins": origins}

    def report(self) -> list[dict[str, str]]:
        (file,) = self.directory.glob(".federator/reports/*/inventory.csv")
        with file.open(newline="", encoding="utf-8") as text:
            return sorted(csv.DictReader(text), key=lambda row: (row["source"], row["path"]))


def configured(
    directory: Path, url: str, sections: Mapping[str, Mapping[str, Any]], environment: dict[str, str]
) -> Installation:
    """Write the sections of a configuration whose index is at ``url``."""
    lines = []
    for section, options in sections.items():
        lines += [f"[{section}]", *(f'"{key}" = {json.dumps(value)}' for key, value in options.items())]
    (directory / "federator.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (directory / "federator.toml").chmod(0o600)
    return Installation(directory, url, environment)
