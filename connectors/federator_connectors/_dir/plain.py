"""The tables that a directory itself shows: one per subdirectory.

``x.lance/`` is the table ``x``, else ``x/`` is; names that start with ``_`` or ``.`` are no tables. ``.lance-reserved`` inside marks
a table that was declared, ``.lance-deregistered`` hides one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from federator.connector import InvalidInput, NameRules, TableAlreadyExists
from federator.model import ROOT, CoverageState, Evidence, path_key
from federator_connectors._dir.manifest import NAME, Snapshot
from federator_connectors._dir.storage import Directory

SUFFIX = ".lance"
_RESERVED = ".lance-reserved"
_DEREGISTERED = ".lance-deregistered"
_NO_TABLE = ("_", ".")
#: what a directory's name may take, in bytes, on the usual file systems
_NAME_BYTES = 255
#: how many directories or tables one Coverage names
_SHOWN = 10

NAMES = NameRules(pattern=r"[^/_.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*", max_length=_NAME_BYTES - len(SUFFIX))


@dataclass(frozen=True)
class Listing:
    """Tables by name with their directories, the manifest, and what was found beside them and should be known."""

    tables: dict[str, str]
    known: Snapshot
    #: directories that a ``.lance`` one of the same name hides
    shadowed: list[str]
    #: how many directories have a name that is no text
    unnamed: int

    def detail(self) -> Evidence:
        """Complete, with a word on what is not shown and might have been meant to be."""
        rows = self.known.tables_in(ROOT)
        overruled = sorted(name for name, row in rows.items() if self.tables.get(name, row.location) != row.location)
        notes = [
            (f"hidden by a {SUFFIX} directory of the same name", [f"{name}/" for name in self.shadowed]),
            ("in the manifest, in a namespace that is not", [path_key(path) for path in self.known.orphans]),
            ("in the manifest at another place than the directory of that name", overruled),
        ]
        said = [f"{what}: {_some(names)}" for what, names in notes if names]
        if self.unnamed:
            said.append(f"directories whose names are not UTF-8: {self.unnamed}")
        return Evidence(CoverageState.COMPLETE, "; ".join(said))


class Plain:
    """The subdirectories of one directory as tables. Raises CatalogError only."""

    def __init__(self, source: str, directory: Directory) -> None:
        self._source = source
        self._directory = directory

    def listing(self, manifest: Callable[[], Snapshot]) -> Listing:
        """What is there. ``manifest`` is asked only where there is one: some subdirectories are its own."""
        subdirectories, unnamed = self._directory.subdirectories()
        known = manifest() if NAME in subdirectories else Snapshot()
        names = [name for name in subdirectories if not name.startswith(_NO_TABLE) and not _owned(known, name)]
        chosen: dict[str, str] = {}
        # Suffixed ones last, since they win.
        for directory in sorted(names, key=lambda name: (name.endswith(SUFFIX), name)):
            chosen[directory.removesuffix(SUFFIX)] = directory
        shadowed = sorted(set(names).difference(chosen.values()))
        hidden = self._directory.holding(list(chosen.values()), _DEREGISTERED)
        tables = {name: directory for name, directory in chosen.items() if directory not in hidden}
        return Listing(tables, known, shadowed, unnamed)

    def find(self, name: str, known: Snapshot) -> str | None:
        """The directory of a table that is there."""
        directory = self.claimed(name, known)
        if directory is None or self._directory.holding([directory], _DEREGISTERED):
            return None
        return directory

    def claimed(self, name: str, known: Snapshot) -> str | None:
        """The directory that the name stands for, hidden or not."""
        if not name or name.startswith(_NO_TABLE) or "/" in name or "\0" in name:
            return None
        # "x.lance/" is the table "x" and never the table "x.lance".
        candidates = [name + SUFFIX] + ([] if name.endswith(SUFFIX) or _owned(known, name) else [name])
        possible = [candidate for candidate in candidates if _bytes(candidate) <= _NAME_BYTES]
        return next(iter(self._directory.among(possible)), None)

    def make(self, name: str, directory: str | None) -> str:
        """Makes the table's directory, or shows ``directory``, which was hidden. Raises TableAlreadyExists."""
        here = directory or name + SUFFIX
        if directory is None:
            if not self._directory.make(here):
                raise TableAlreadyExists(f"{self._source}: the table {name!r} exists")
            self._directory.mark(f"{here}/{_RESERVED}")
        elif self._directory.holding([here], _DEREGISTERED):
            self._directory.unmark(f"{here}/{_DEREGISTERED}")
        else:
            raise TableAlreadyExists(f"{self._source}: the table {name!r} exists")
        return here

    def hide(self, directory: str) -> None:
        """Deregisters; the data stays."""
        self._directory.mark(f"{directory}/{_DEREGISTERED}")

    def check_new(self, name: str) -> None:
        """Raises InvalidInput for a name that cannot be a directory of its own."""
        if not NAMES.allows(name):
            raise InvalidInput(
                f"{self._source}: {name!r} cannot be a directory of its own",
                hint="no /, no control characters, no leading _ or .",
            )
        if _bytes(name + SUFFIX) > _NAME_BYTES:
            raise InvalidInput(f"{self._source}: {name!r} is longer than a directory's name may be")


def _owned(known: Snapshot, directory: str) -> bool:
    return bool(known.namespaces or known.tables) and not directory.endswith(SUFFIX) and known.holds(directory)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _bytes(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))
