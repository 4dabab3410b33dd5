"""What a caller asked of one connector, checked against its capabilities: identifiers become paths."""

from __future__ import annotations

from collections.abc import Sequence

from federator.connector.capabilities import Capabilities, NameRules
from federator.connector.errors import InvalidInput, Unsupported
from federator.model import ROOT, Path, path_key


class Identifiers:
    """Turns the list identifiers of requests into paths, names in the catalog's own case. Raises InvalidInput."""

    def __init__(self, source: str, capabilities: Capabilities) -> None:
        self._source = source
        self._capabilities = capabilities

    def namespace(self, levels: Sequence[str] | None) -> Path:
        """A namespace to read or drop; nothing and ``[]`` are the root."""
        path = self._path(levels)
        deepest = self._capabilities.max_depth
        if len(path) > deepest:
            raise InvalidInput(f"{self._source}: a namespace has at most {deepest} levels, {path_key(path)!r} has {len(path)}")
        return path

    def new_namespace(self, levels: Sequence[str] | None) -> Path:
        """A namespace to create. Raises Unsupported at a depth where this catalog creates none."""
        path = self.namespace(levels)
        if path == ROOT:
            raise InvalidInput("the root namespace always exists", hint="give the new namespace's name as id")
        if len(path) not in self._capabilities.creates_namespaces_at:
            raise Unsupported(f"{self._source}: this catalog creates no namespaces of {len(path)} levels")
        return self._named(path, self._capabilities.rules(namespace=True))

    def table(self, levels: Sequence[str] | None) -> Path:
        """A table to read or remove."""
        path = self._path(levels)
        least, most = self._capabilities.min_depth + 1, self._capabilities.max_depth + 1
        if not least <= len(path) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise InvalidInput(f"{self._source}: a table's identifier has {count} levels, {path_key(path)!r} has {len(path)}")
        return path

    def new_table(self, levels: Sequence[str] | None) -> Path:
        """A table to declare."""
        return self._named(self.table(levels), self._capabilities.rules(namespace=False))

    def _path(self, levels: Sequence[str] | None) -> Path:
        path = tuple(levels or ())
        if not all(path):
            raise InvalidInput(f"the identifier {list(path)!r} has an empty name")
        if not all(map(_is_text, path)):
            raise InvalidInput(f"the identifier {list(path)!r} has a name that is no Unicode text")
        return tuple(self._capabilities.names.canonical(name) for name in path)

    def _named(self, path: Path, rules: NameRules) -> Path:
        if not rules.allows(path[-1]):
            hint = f"names match {rules.pattern} and have at most {rules.max_length} characters"
            raise InvalidInput(f"{self._source}: {path[-1]!r} is no name that this catalog takes", hint=hint)
        return path


def _is_text(name: str) -> bool:
    """Half of a surrogate pair is a str in Python and text nowhere else."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
