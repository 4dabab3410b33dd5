"""A catalog with any number of generated tables, the same in every run. For benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from federator.connector import Catalog, NamespaceNotFound, Shard, TableNotFound
from federator.connector.crawl import CoverageBuilder
from federator.model import ROOT, Coverage, NamespaceRecord, Path, Record, TableRecord


@dataclass
class SyntheticCatalog(Catalog):
    """``tables`` distributed over ``databases`` in turn. ``changed`` tables, evenly spread, have another property value.

    Each table has ``parameters`` further properties, and a schema of ``columns`` columns (0: no schema).
    """

    source: str
    tables: int
    databases: int
    changed: int = 0
    parameters: int = 0
    columns: int = 0
    _parameters: dict[str, str] = field(init=False)
    _schema: str | None = field(init=False)

    def __post_init__(self) -> None:
        self._parameters = {f"parameter.{number}": f"the value of setting {number}" for number in range(self.parameters)}
        columns = [{"name": f"column_{number}", "type": "bigint" if number % 2 else "string"} for number in range(self.columns)]
        self._schema = json.dumps(columns) if columns else None

    def list_namespaces(self, parent: Path) -> list[str]:
        self._database(parent, root=True)
        return [self._name(number) for number in range(self.databases)] if parent == ROOT else []

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        self._database(path, root=True)
        return self._namespace(path)

    def list_tables(self, namespace: Path) -> list[str]:
        if namespace == ROOT:
            return []
        return [_table_name(index) for index in range(self._database(namespace), self.tables, self.databases)]

    def describe_table(self, path: Path) -> TableRecord:
        database = self._database(path[:-1])
        digits = path[-1].removeprefix("table_")
        index = int(digits) if digits.isdecimal() else -1
        if _table_name(index) != path[-1] or index >= self.tables or index % self.databases != database:
            raise TableNotFound(f"{self.source}: there is no table {path[-1]!r}")
        return self._table(path[:-1], index)

    def plan_shards(self) -> Sequence[Shard]:
        return [Shard((ROOT,)), *(Shard(((self._name(number),),)) for number in range(self.databases))]

    def read_shard(self, shard: Shard) -> Iterator[Record | Coverage]:
        for namespace in shard.namespaces:
            yield from CoverageBuilder(self.source, namespace).read(self._children(namespace))

    def _children(self, namespace: Path) -> Iterator[Record]:
        if namespace == ROOT:
            yield from (self._namespace((name,)) for name in self.list_namespaces(ROOT))
        else:
            for index in range(self._database(namespace), self.tables, self.databases):
                yield self._table(namespace, index)

    def _table(self, namespace: Path, index: int) -> TableRecord:
        # Spread the changes evenly, so that every database has some.
        stride = max(self.tables // self.changed, 1) if self.changed else 0
        is_changed = bool(stride) and index % stride == 0 and index // stride < self.changed
        properties = {"team": f"team-{index % 17}", "revision": "2" if is_changed else "1", **self._parameters}
        name = _table_name(index)
        location = f"s3://synthetic/{namespace[0]}/{name}.lance"
        return TableRecord(self.source, (*namespace, name), location, properties, schema=self._schema, native_id=str(index))

    def _namespace(self, path: Path) -> NamespaceRecord:
        return NamespaceRecord(self.source, path, location="/".join(("s3://synthetic", *path)))

    def _name(self, number: int) -> str:
        return f"db_{number:04d}"

    def _database(self, namespace: Path, *, root: bool = False) -> int:
        if namespace == ROOT and root:
            return 0
        digits = namespace[0].removeprefix("db_") if len(namespace) == 1 else ""
        number = int(digits) if digits.isdecimal() else -1
        if not 0 <= number < self.databases or namespace != (self._name(number),):
            raise NamespaceNotFound(f"{self.source}: there is no database {'.'.join(namespace)!r}")
        return number


def _table_name(index: int) -> str:
    return f"table_{index:07d}"
