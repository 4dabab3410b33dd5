"""Scopes: the path prefixes that a principal may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from federator.model.identifiers import ROOT, Path, parse_path_key, path_key
from federator.model.text import is_storable

#: the text of the scope that covers everything; no source can have this name
ALL = "*"


@dataclass(frozen=True, slots=True)
class Scopes:
    """Path prefixes that start with a source, for example ``("lake_hive", "sales")``. Without prefixes, nothing is visible.

    For a principal, an object outside its scopes does not exist, except the namespaces above a scope.
    """

    prefixes: tuple[Path, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Scopes:
        """Return the scopes of texts such as ``lake_hive$sales``; ``*`` covers everything. Raise ValueError with an invalid text."""
        return cls(tuple(sorted({_parse_prefix(text) for text in texts})))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that ``parse`` accepts, sorted."""
        return tuple(path_key(prefix) or ALL for prefix in sorted(set(self.prefixes)))

    def covers(self, path: Path) -> bool:
        """Return whether ``path``, which starts with a source, is inside a scope."""
        return any(path[: len(prefix)] == prefix for prefix in self.prefixes)

    def is_visible(self, path: Path) -> bool:
        """Return whether ``path`` is inside a scope, or a namespace above one."""
        return self.covers(path) or any(prefix[: len(path)] == path for prefix in self.prefixes)

    @property
    def covers_all(self) -> bool:
        return ROOT in self.prefixes


def _parse_prefix(text: str) -> Path:
    if text == ALL:
        return ROOT
    path = parse_path_key(text)
    if not (path and all(path) and is_storable(text)):
        raise ValueError(
            f"{text!r} is not a valid scope: use source, source$namespace or source$namespace$table, or {ALL} for everything"
        )
    return path


EVERYTHING = Scopes((ROOT,))
