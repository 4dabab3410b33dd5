"""Which part of the tree someone may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from federator.model.identifiers import ROOT, Path, parse_key, path_key

#: the text form of the scope that covers everything; no source can have this name
ALL = "*"


@dataclass(frozen=True, slots=True)
class Scopes:
    """Path prefixes from the tree's root, ``("lake_hive", "sales")`` for one; none of them: nothing is seen.

    What a scope does not cover does not exist for who has it, but for the namespaces on the way to what it does.
    """

    prefixes: tuple[Path, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Scopes:
        """Scopes of text forms, ``lake_hive$sales``; ``*`` is everything. Raises ValueError that says which is none."""
        return cls(tuple(sorted({_prefix(text) for text in texts})))

    @property
    def texts(self) -> tuple[str, ...]:
        """The text forms, in order: what ``parse`` takes."""
        return tuple(path_key(prefix) or ALL for prefix in sorted(set(self.prefixes)))

    def covers(self, path: Path) -> bool:
        """Whether ``path`` is inside, from the tree's root."""
        return any(path[: len(prefix)] == prefix for prefix in self.prefixes)

    def shows(self, path: Path) -> bool:
        """Whether ``path`` is inside, or a namespace on the way there."""
        return self.covers(path) or any(prefix[: len(path)] == path for prefix in self.prefixes)

    @property
    def everything(self) -> bool:
        return ROOT in self.prefixes


def _prefix(text: str) -> Path:
    if text == ALL:
        return ROOT
    path = parse_key(text)
    storable = "\0" not in text and text.encode("utf-8", "replace").decode() == text
    if not (path and all(path) and storable):
        raise ValueError(f"{text!r} is no scope: source, source$namespace or source$namespace$table, or {ALL} for everything")
    return path


EVERYTHING = Scopes((ROOT,))
