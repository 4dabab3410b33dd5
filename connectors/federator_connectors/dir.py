"""A directory of Lance tables, without a catalog: the Lance directory namespace, one level, no namespaces inside.

``x.lance/`` is the table ``x``, else ``x/`` is; names that start with ``_`` or ``.`` are no tables. As pylance's own directory
namespace does, ``.lance-reserved`` inside marks a table that was declared and ``.lance-deregistered`` hides one. A directory is
a table whatever it holds: opening it may still fail, which is a matter of verification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from federator.connector import (
    Capabilities,
    Catalog,
    CatalogError,
    ConcurrentModification,
    ConfigError,
    Connector,
    InvalidInput,
    NameRules,
    NamespaceNotFound,
    Settings,
    Shard,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    option,
)
from federator.connector.lazy import lazy_namespace
from federator.model import (
    ROOT,
    Coverage,
    CoverageState,
    Evidence,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    canonical_location,
    failed,
    fold_digest,
)
from federator_connectors._dir_storage import Directory

_SUFFIX = ".lance"
_RESERVED = ".lance-reserved"
_DEREGISTERED = ".lance-deregistered"
_NO_TABLE = ("_", ".")
#: what a directory's name may take, in bytes, on the usual file systems
_NAME_BYTES = 255
#: how many shadowed directories one Coverage names
_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class DirSettings(Settings):
    """``path`` and ``root`` are one setting with two names; without either it is the current working directory."""

    path: str | None = option(
        "path", doc="The directory of the tables: a path, a file: URI or s3://bucket/prefix. Same as root."
    )

    def __post_init__(self) -> None:
        if self.path and self.root and self.path != self.root:
            raise ConfigError(
                f"dir.path = {self.path} and dir.root = {self.root} differ", hint="they are one setting: keep one"
            )

    @property
    def directory(self) -> str:
        return self.path or self.root or "."


class DirCatalog(Catalog):
    """The tables of one directory. Holds no connection; safe for threads."""

    def __init__(self, source: str, settings: DirSettings) -> None:
        self.source = source
        self._directory = Directory(settings.directory, settings.storage)

    def list_namespaces(self, parent: Path) -> list[str]:
        self._check(parent)
        return []

    def describe_namespace(self, path: Path) -> NamespaceRecord:
        self._check(path)
        return NamespaceRecord(self.source, ROOT, location=self._directory.location())

    def list_tables(self, namespace: Path) -> list[str]:
        self._check(namespace)
        return sorted(self._listing().tables)

    def describe_table(self, path: Path) -> TableRecord:
        self._check(path[:-1])
        directory = self._find(path[-1])
        if directory is None:
            raise TableNotFound(f"{self.source}: there is no table {path[-1]!r}")
        return self._record(path[-1], directory)

    def declare_table(self, record: TableRecord) -> TableRecord:
        """Makes ``x.lance/`` with the marker of a declared table, or shows a deregistered table again.

        A directory namespace has no place to note another location: Unsupported.
        """
        self._check(record.path[:-1])
        name = record.path[-1]
        self._check_new(name)
        directory = self._claimed(name)
        here = directory or name + _SUFFIX
        if record.location and canonical_location(record.location) != canonical_location(self._directory.location(here)):
            wanted = self._directory.location(here)
            raise Unsupported(f"{self.source}: a directory cannot point at {record.location}", hint=f"{name!r} is at {wanted}")
        if directory is None:
            if not self._directory.make(here):
                raise TableAlreadyExists(f"{self.source}: the table {name!r} exists")
            self._directory.mark(f"{here}/{_RESERVED}")
        elif self._directory.holding([here], _DEREGISTERED):
            self._directory.unmark(f"{here}/{_DEREGISTERED}")
        else:
            raise TableAlreadyExists(f"{self.source}: the table {name!r} exists")
        return self._record(name, here)

    def deregister_table(self, expected: TableRecord) -> None:
        directory = self._find(expected.path[-1])
        current = self.describe_table(expected.path)
        if current.digest != expected.digest:
            raise ConcurrentModification(f"{self.source}: the table {expected.key!r} is now at {current.location}")
        self._directory.mark(f"{directory}/{_DEREGISTERED}")

    def default_location(self, path: Path) -> str:
        """The place of a new table; a deregistered one of that name keeps the place that it has."""
        return self._directory.location(self._claimed(path[-1]) or path[-1] + _SUFFIX)

    def only_declared(self, record: TableRecord) -> bool:
        """Whether nothing has been written to the table yet. Raises TableNotFound."""
        directory = self._find(record.path[-1])
        if directory is None:
            raise TableNotFound(f"{self.source}: there is no table {record.path[-1]!r}")
        return not self._directory.holding([directory], "_versions")

    def shards(self) -> Sequence[Shard]:
        return [Shard((ROOT,))]

    def read(self, shard: Shard) -> Iterator[Record | Coverage]:
        for namespace in shard.namespaces:
            try:
                self._check(namespace)
                listing = self._listing()
            except CatalogError as error:
                evidence = failed(error.code, error.message)
                yield Coverage(self.source, namespace, evidence, evidence)
                continue
            digests: list[str] = []
            for name, directory in sorted(listing.tables.items()):
                record = self._record(name, directory)
                digests.append(record.digest)
                yield record
            yield Coverage(self.source, namespace, detail=listing.detail(), records=len(digests), digest=fold_digest(digests))

    def ping(self) -> str:
        self._directory.subdirectories()
        return ""

    def _listing(self) -> _Listing:
        subdirectories, unnamed = self._directory.subdirectories()
        names = [name for name in subdirectories if not name.startswith(_NO_TABLE)]
        chosen: dict[str, str] = {}
        # Suffixed ones last, since they win.
        for directory in sorted(names, key=lambda name: (name.endswith(_SUFFIX), name)):
            chosen[directory.removesuffix(_SUFFIX)] = directory
        shadowed = sorted(set(names).difference(chosen.values()))
        hidden = self._directory.holding(list(chosen.values()), _DEREGISTERED)
        tables = {name: directory for name, directory in chosen.items() if directory not in hidden}
        return _Listing(tables, shadowed, unnamed)

    def _claimed(self, name: str) -> str | None:
        """The directory that the name stands for, hidden or not."""
        if not name or name.startswith(_NO_TABLE) or "/" in name or "\0" in name:
            return None
        # "x.lance/" is the table "x" and never the table "x.lance".
        candidates = [name + _SUFFIX] + ([] if name.endswith(_SUFFIX) else [name])
        possible = [candidate for candidate in candidates if _bytes(candidate) <= _NAME_BYTES]
        return next(iter(self._directory.among(possible)), None)

    def _find(self, name: str) -> str | None:
        directory = self._claimed(name)
        if directory is None or self._directory.holding([directory], _DEREGISTERED):
            return None
        return directory

    def _check(self, namespace: Path) -> None:
        if namespace != ROOT:
            raise NamespaceNotFound(f"{self.source}: a directory has no namespaces inside")

    def _check_new(self, name: str) -> None:
        if name.startswith(_NO_TABLE) or not CONNECTOR.capabilities.names.allows(name):
            raise InvalidInput(
                f"{self.source}: {name!r} cannot be a directory of its own",
                hint="no /, no control characters, no leading _ or .",
            )
        if _bytes(name + _SUFFIX) > _NAME_BYTES:
            raise InvalidInput(f"{self.source}: {name!r} is longer than a directory's name may be")

    def _record(self, name: str, directory: str) -> TableRecord:
        return TableRecord(self.source, (name,), self._directory.location(directory))


@dataclass(frozen=True)
class _Listing:
    """Tables by name with their directories, the directories that a ``.lance`` one of the same name hides, and how many
    directories have a name that is no text."""

    tables: dict[str, str]
    shadowed: list[str]
    unnamed: int

    def detail(self) -> Evidence:
        """Complete, with a word on directories that are no tables and might have been meant as such."""
        notes: list[str] = []
        if self.shadowed:
            more = f" and {len(self.shadowed) - _SHOWN} more" if len(self.shadowed) > _SHOWN else ""
            named = ", ".join(f"{name}/" for name in self.shadowed[:_SHOWN])
            notes.append(f"hidden by a {_SUFFIX} directory of the same name: {named}{more}")
        if self.unnamed:
            notes.append(f"directories whose names are not UTF-8: {self.unnamed}")
        return Evidence(CoverageState.COMPLETE, "; ".join(notes))


def _bytes(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))


class DirConnector(Connector[DirSettings]):
    """impl ``dir``."""

    impl = "dir"
    settings_type = DirSettings
    capabilities = Capabilities(
        min_depth=0,
        max_depth=0,
        names=NameRules(pattern=r"[^/_.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*", max_length=_NAME_BYTES - len(_SUFFIX)),
        can_alter=False,
        keeps_properties=False,
        makes_location=True,
    )

    def open(self, source: str, settings: DirSettings) -> DirCatalog:
        return DirCatalog(source, settings)

    def concurrency(self, properties: Mapping[str, str]) -> int:  # noqa: ARG002
        return 1


CONNECTOR = DirConnector()
__getattr__ = lazy_namespace(__name__, CONNECTOR, "DirNamespace")
