"""Which part of the tree someone may see."""

from __future__ import annotations

from dataclasses import dataclass

from federator.model.identifiers import ROOT, Path


@dataclass(frozen=True, slots=True)
class Scopes:
    """Path prefixes from the tree's root, ``("lake_hive", "sales")`` for one; none of them: nothing is seen.

    What a scope does not cover does not exist for who has it, but for the namespaces on the way to what it does.
    """

    prefixes: tuple[Path, ...] = ()

    def covers(self, path: Path) -> bool:
        """Whether ``path`` is inside, from the tree's root."""
        return any(path[: len(prefix)] == prefix for prefix in self.prefixes)

    def shows(self, path: Path) -> bool:
        """Whether ``path`` is inside, or a namespace on the way there."""
        return self.covers(path) or any(prefix[: len(path)] == path for prefix in self.prefixes)

    @property
    def everything(self) -> bool:
        return ROOT in self.prefixes


EVERYTHING = Scopes((ROOT,))
