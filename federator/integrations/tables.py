"""Tables as exports to other catalogs read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from federator.client import Client
from federator.client.models import Table

# The families of Arrow's and Spark's types, by the start of their text. The first match counts.
_FAMILIES = {
    "bool": "bool", "interval": "other", "(tiny|small|big|u)?int": "int", "(half)?float|double": "float", "decimal": "decimal",
    "(large_)?string|(large_)?utf8|(var)?char": "string", "(large_|fixed_size_)?binary": "binary", "date": "date",
    "timestamp": "timestamp", "time": "time", "(large_|fixed_size_)?list|array": "list", "map": "map", "struct": "struct",
}  # fmt: skip
_ITEM = re.compile(r"[a-z_]+<(?:[^:<>]+: )?(.*)>(?:\[\d+\])?")


def iter_tables(client: Client, path: str = "") -> Iterator[Table]:
    """Yield every visible table, depth first."""
    for node in client.list_children(path):
        if node.kind == "table":
            yield client.get_table(node.id)
        else:
            yield from iter_tables(client, node.id)


def list_columns(table: Table) -> list[tuple[str, str, bool]]:
    """Return name, type and nullability of the columns that are stored, else of those that the catalog declares."""
    stored = table.dataset.stored_schema if table.dataset else None
    return [
        (str(column["name"]), str(column.get("type", "")), bool(column.get("nullable", True)))
        for column in stored or table.columns or []
    ]


def list_origins(table: Table) -> list[str]:
    """Return the object ids that mirrors declared this table from."""
    return [link.origin for link in table.mirrored if link.target == table.id]


def type_family(text: str) -> str:
    """Return the family of a type: bool, int, float, decimal, string, binary, date, time, timestamp, list, map, struct or other."""
    return next((family for start, family in _FAMILIES.items() if re.match(start, text.lower())), "other")


def item_type(text: str) -> str:
    """Return the type of the items of a list: ``float`` for ``fixed_size_list<item: float>[8]`` and ``array<float>``."""
    match = _ITEM.fullmatch(text)
    return match[1].removesuffix(" not null") if match else ""


def to_millis(time: datetime) -> int:
    """Return milliseconds since the epoch."""
    return int(time.timestamp() * 1000)
