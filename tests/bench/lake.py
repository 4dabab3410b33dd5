"""A lake of 1,000,000 tables in 20,000 namespaces (``N``: another number), and what clients ask of it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from operator import attrgetter
from urllib.parse import quote, urlencode
from zlib import crc32

from federator.model import NamespaceRecord, TableRecord
from federator.store.revisions import incoming_row

#: another number of tables, for a machine or an hour that does not suffice for a million
TABLES = int(os.environ.get("BENCH_TABLES", "1_000_000"))
NAMESPACES = TABLES // 50
_WORDS = (
    "orders", "events", "users", "clicks", "invoices", "items", "sessions", "payments", "returns", "stock", "prices", "visits", "leads",
    "tickets", "routes", "sensors", "images", "vectors", "chunks", "labels",
)  # fmt: skip
# A crawl's rows are joined with the index by hash of the path, sorted, and written by so many tasks.
_FILES = 4
_TEAMS = [f"team-{number}" for number in range(50)]


def namespace(number: int) -> str:
    return f"{_WORDS[number % len(_WORDS)]}_{number:05d}"


def table(number: int) -> TableRecord:
    inside = namespace(number % NAMESPACES)
    name = f"{_WORDS[number * 7 % len(_WORDS)]}_{_WORDS[number * 13 % 17]}_{number:07d}"
    properties = {"team": _TEAMS[number % len(_TEAMS)]}
    columns = f'[{{"name":"{_WORDS[number % 19]}_id","type":"bigint"}},{{"name":"price","type":"double"}}]'
    return TableRecord(
        "lake", (inside, name), f"s3://lake/{inside}/{name}.lance", properties, owner=f"o{number % 200}", schema=columns
    )


def rows() -> Iterator[tuple[object, ...]]:
    """All of it, as ``revisions.add_records`` takes it, and in a crawl's order: ``_FILES`` times through the paths."""
    for number in range(NAMESPACES):
        yield incoming_row(NamespaceRecord("lake", (namespace(number),)))
    paths = sorted(range(NAMESPACES), key=namespace)
    for file in range(_FILES):
        for inside in paths:
            tables = (table(number) for number in range(inside, TABLES, NAMESPACES))
            yield from map(
                incoming_row,
                sorted((table for table in tables if crc32(table.key.encode()) % _FILES == file), key=attrgetter("key")),
            )


def text(chosen: random.Random) -> str:
    """A search: a whole name, the beginning of one, words of which few or many tables have one or both, fields, a glob."""
    name = table(chosen.randrange(TABLES)).path[-1]
    return chosen.choice([
        name, f"{name[:-2]}*", f"{chosen.choice(_WORDS)} {name[-7:]}", f"{chosen.choice(_WORDS)} {chosen.choice(_WORDS)}",
        f"property:team={chosen.choice(_TEAMS)} {chosen.choice(_WORDS)}", f"column:price owner:o{chosen.randrange(200)}",
        chosen.choice(_WORDS), f"{namespace(chosen.randrange(NAMESPACES))}$*", f"*_{name[-7:]}",
    ])  # fmt: skip


def _page(chosen: random.Random) -> str:
    return f"/api/v1/tree?path=lake%24{namespace(chosen.randrange(NAMESPACES))}&limit=50"


def _describe(chosen: random.Random) -> str:
    return "/api/v1/tables/" + quote(f"lake${table(chosen.randrange(TABLES)).key}", safe="")


def _search(chosen: random.Random) -> str:
    return "/api/v1/search?" + urlencode({"q": text(chosen)})


def _faceted(chosen: random.Random) -> str:
    return "/api/v1/search?" + urlencode({"q": text(chosen), "facets": "true"})


#: paths to ask for, by the name of what is measured
ASKS: dict[str, Callable[[random.Random], str]] = {
    "a list page of 50": _page, "describe": _describe, "search": _search, "search with facets": _faceted,
}  # fmt: skip
