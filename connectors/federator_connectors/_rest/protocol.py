"""What the two protocols have in common for the catalog: one method per operation that it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from federator.connector import Unsupported
from federator.model import Path, path_key


@dataclass(frozen=True, slots=True)
class Told:
    """What a server says of one table. ``managed``: its data belongs to the server."""

    location: str | None
    properties: Mapping[str, str]
    managed: bool = False


class Protocol(ABC):
    """The operations of a server; every method raises CatalogError. Thread-safe."""

    @abstractmethod
    def namespaces(self, parent: Path) -> list[str]:
        """The children's own names, every page."""

    @abstractmethod
    def tables(self, namespace: Path) -> list[str]:
        """The tables' own names, every page. An empty list does not prove that the namespace exists."""

    @abstractmethod
    def namespace(self, path: Path) -> dict[str, str]:
        """Its properties. Raises NamespaceNotFound."""

    @abstractmethod
    def table(self, path: Path) -> Told:
        """Raises TableNotFound."""

    @abstractmethod
    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        """Raises NamespaceAlreadyExists, NamespaceNotFound (of the parent)."""

    @abstractmethod
    def drop_namespace(self, path: Path) -> None:
        """Raises NamespaceNotFound, NamespaceNotEmpty."""

    def alter_namespace(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:  # noqa: ARG002
        """Changes a namespace's properties. Raises NamespaceNotFound, and Unsupported where the protocol cannot."""
        raise Unsupported(f"this protocol cannot alter the namespace {shown(path)}")

    @abstractmethod
    def declare(self, path: Path, location: str | None, properties: Mapping[str, str]) -> None:
        """Raises TableAlreadyExists, NamespaceNotFound, InvalidInput where the location is refused."""

    def alter(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:  # noqa: ARG002
        """Changes a table's properties. Raises Unsupported where the protocol cannot."""
        raise Unsupported(f"this protocol cannot alter the table {shown(path)}")

    @abstractmethod
    def deregister(self, path: Path) -> None:
        """Raises TableNotFound."""

    def rename(self, path: Path, new_path: Path) -> None:  # noqa: ARG002
        """Raises TableNotFound, TableAlreadyExists, and Unsupported where the protocol cannot."""
        raise Unsupported(f"this protocol cannot rename the table {shown(path)}")

    @abstractmethod
    def close(self) -> None:
        """Ends the connections; harmless twice."""


def shown(path: Path) -> str:
    """A path in a message."""
    return path_key(path) or "the root"
