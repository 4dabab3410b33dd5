"""Identifiers of requests: checked against a catalog's capabilities and converted to paths."""

from __future__ import annotations

from collections.abc import Sequence

from federator.connector.capabilities import Capabilities, NameRules
from federator.connector.errors import InvalidInput, Unsupported
from federator.model import ROOT, Path, path_key


class IdentifierParser:
    """Converts the list identifiers of requests to paths, with names in the catalog's case. Its methods raise InvalidInput."""

    def __init__(self, source: str, capabilities: Capabilities) -> None:
        self._source = source
        self._capabilities = capabilities

    def parse_namespace(self, levels: Sequence[str] | None) -> Path:
        """Return the path of a namespace to read or drop. None and ``[]`` are the root."""
        path = self._parse_path(levels)
        max_depth = self._capabilities.max_depth
        if len(path) > max_depth:
            raise InvalidInput(
                f"{self._source}: a namespace has at most {max_depth} levels, {path_key(path)!r} has {len(path)}"
            )
        return path

    def parse_new_namespace(self, levels: Sequence[str] | None) -> Path:
        """Return the path of a namespace to create.

        Raise InvalidInput if it has too few levels, and Unsupported if the catalog cannot create namespaces at its depth.
        """
        path = self.parse_namespace(levels)
        if path == ROOT:
            raise InvalidInput("the root namespace always exists", hint="give the new namespace's name as id")
        self._require_level(path, "created")
        return self._check_name(path, self._capabilities.name_rules(namespace=True))

    def parse_dropped_namespace(self, levels: Sequence[str] | None) -> Path:
        """Return the path of a namespace to drop. Errors as for ``parse_new_namespace``."""
        path = self.parse_namespace(levels)
        if path == ROOT:
            raise InvalidInput("the root namespace cannot be dropped")
        if self._capabilities.creates_namespaces_at:
            self._require_level(path, "dropped")
        return path

    def _require_level(self, path: Path, verb: str) -> None:
        depths = self._capabilities.creates_namespaces_at
        if depths and len(path) < min(depths):
            names = ", ".join(self._capabilities.levels[: min(depths)])
            raise InvalidInput(
                f"{self._source}: only namespaces of {min(depths)} or more levels can be {verb}, {path_key(path)!r} has {len(path)}",
                hint=f"the first levels are {names}",
            )
        if len(path) not in depths:
            raise Unsupported(f"{self._source}: namespaces of {len(path)} levels cannot be {verb} in this catalog")

    def parse_table(self, levels: Sequence[str] | None) -> Path:
        """Return the path of a table to read or remove."""
        path = self._parse_path(levels)
        least, most = self._capabilities.min_depth + 1, self._capabilities.max_depth + 1
        if not least <= len(path) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise InvalidInput(f"{self._source}: a table's identifier has {count} levels, {path_key(path)!r} has {len(path)}")
        return path

    def parse_new_table(self, levels: Sequence[str] | None) -> Path:
        """Return the path of a table to declare."""
        return self._check_name(self.parse_table(levels), self._capabilities.name_rules(namespace=False))

    def _parse_path(self, levels: Sequence[str] | None) -> Path:
        path = tuple(levels or ())
        if not all(path):
            raise InvalidInput(f"the identifier {list(path)!r} has an empty name")
        if not all(map(_is_encodable, path)):
            raise InvalidInput(f"the identifier {list(path)!r} has a name that is not valid Unicode")
        return tuple(self._capabilities.names.canonicalize(name) for name in path)

    def _check_name(self, path: Path, rules: NameRules) -> Path:
        if not rules.allows(path[-1]):
            hint = f"names match {rules.pattern} and have at most {rules.max_length} characters"
            raise InvalidInput(f"{self._source}: {path[-1]!r} is not a valid name in this catalog", hint=hint)
        return path


def _is_encodable(name: str) -> bool:
    # A lone surrogate is valid in a Python str, but it cannot be encoded.
    return not any("\ud800" <= character <= "\udfff" for character in name)
