"""What the two protocols have in common for the catalog: one method per operation that it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from federator.connector import Internal, Unsupported
from federator.model import Path, path_key
from federator_connectors._http.answer import Answer


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


def texts(answer: Answer, key: str) -> dict[str, str]:
    """A field that maps texts to texts; absent and null are empty. Raises Internal for anything else."""
    found = answer.fields.get(key) or {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise Internal(f"{answer.about}: {key!r} does not map texts to texts: {answer.excerpt}")
    return found


def location_of(answer: Answer) -> str | None:
    """The location of an answer. Raises Internal where it is no text."""
    found = answer.fields.get("location")
    if found is not None and not isinstance(found, str):
        raise Internal(f"{answer.about}: the location is no text: {answer.excerpt}")
    return found or None


def shown(path: Path) -> str:
    """A path in a message."""
    return path_key(path) or "the root"
