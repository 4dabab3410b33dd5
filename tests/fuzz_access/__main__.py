"""``make fuzz-access``: every route and every tool of MCP, as every role in every scope.

Responses are compared with those of services that hold only what is visible.

Prints one table. Exit 1 if a response differs, or if its time does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from rich.console import Console
from rich.table import Table
from sqlalchemy import make_url

from tests.adversary.table import Cell
from tests.fixtures.postgres import postgres_server
from tests.fuzz_access import timing
from tests.fuzz_access.comparing import SCOPES, compare_scope, opened

DATABASES = ("sqlite", "postgresql")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_access", description=__doc__)
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    parser.add_argument("--scopes", nargs="+", choices=list(SCOPES), default=list(SCOPES))
    parser.add_argument("--share", type=float, default=1.0, help="part of the fixed requests that is sent")
    parser.add_argument("--random", type=int, default=2_000, help="random reads of each role in each scope")
    parser.add_argument("--only", default="", help="a text in the URLs of the fixed requests")
    parser.add_argument("--pairs", type=int, default=1_000, help="pairs of each timing test; 0: none")
    parser.add_argument("--hidden", type=int, default=timing.HIDDEN, help="hidden tables of the timing tests")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args(words)
    out = Console(width=None if sys.stdout.isatty() else 160)
    cells: list[Cell] = []
    differences: list[str] = []
    asked = 0
    for database in chosen.databases:
        with tempfile.TemporaryDirectory(prefix="federator-fuzz-") as directory, _urls(database, Path(directory)) as new_url:
            base = Path(directory)
            with opened(new_url("full"), base / "full") as full:
                for number, name in enumerate(chosen.scopes):
                    with opened(new_url(f"part{number}"), base / f"part{number}", SCOPES[name]) as part:
                        results = compare_scope(
                            full, part, name, share=chosen.share, random_reads=chosen.random, seed=chosen.seed, only=chosen.only
                        )
                    for difference in (each for result in results.values() for each in result.differences):
                        print(f"{database}: {difference}", file=sys.stderr, flush=True)
                    for role, result in results.items():
                        asked += result.requests
                        differences += result.differences
                        observed = f"{result.requests} requests, {len(result.differences)} differ"
                        cells.append(Cell(database, f"{role} of {name}", observed, "0 differ", not result.differences))
            if chosen.pairs:
                found = timing.run(
                    new_url("timing"), base / "timing", pairs=chosen.pairs, hidden=chosen.hidden, seed=chosen.seed
                )
                cells += [Cell(database, f"time: {cell.name}", cell.observed, cell.expected, cell.ok) for cell in found]
    table = Table(
        "database", "cell", "observed", "expected", "", title=f"fuzz-access, seed {chosen.seed}, {asked} requests, each twice"
    )
    for cell in cells:
        table.add_row(cell.part, cell.name, cell.observed, cell.expected, "ok" if cell.ok else "UNEXPECTED")
    out.print(table)
    for difference in differences[:20]:
        out.print(difference, markup=False, soft_wrap=True)
    return 0 if cells and all(cell.ok for cell in cells) else 1


@contextmanager
def _urls(database: str, directory: Path) -> Iterator[Callable[[str], str]]:
    """A function that returns the URL of a new, empty database."""
    with ExitStack() as stack:
        if database == "sqlite":
            yield lambda name: f"sqlite:///{directory}/{name}.db"
            return
        # As root, the server is started as another user.
        directory.chmod(0o755)
        server = make_url(stack.enter_context(postgres_server(directory / "server")))

        def create(name: str) -> str:
            target = server.translate_connect_args(username="user", database="dbname")
            with psycopg.connect(**target, autocommit=True, connect_timeout=30) as connection:
                connection.execute(f'CREATE DATABASE "fuzz_{name}"')  # type: ignore[call-overload]  # names are ours
            return server.set(database=f"fuzz_{name}").render_as_string(hide_password=False)

        yield create


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
