"""Common interface of the two REST protocols: one method per operation of the catalog."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from federator.connector import Unsupported
from federator.connector.page_tokens import PageTokens
from federator.model import Path, path_key
from federator.model.locations import is_location
from federator_connectors._http.response import HttpResponse


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A server's description of one table. ``is_managed``: the table's data belongs to the server."""

    location: str | None
    properties: Mapping[str, str]
    is_managed: bool = False


class RestProtocol(ABC):
    """The operations of a server. Every method raises CatalogError. Thread-safe."""

    @abstractmethod
    def list_namespaces(self, parent: Path) -> list[str]:
        """Return the names of the children, from all pages."""

    @abstractmethod
    def list_tables(self, namespace: Path) -> list[str]:
        """Return the names of the tables, from all pages. An empty list does not prove that the namespace exists."""

    @abstractmethod
    def get_namespace(self, path: Path) -> dict[str, str]:
        """Return a namespace's properties. Raise NamespaceNotFound."""

    @abstractmethod
    def get_table(self, path: Path) -> TableDescription:
        """Return a table's description. Raise TableNotFound."""

    @abstractmethod
    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        """Create a namespace. Raise NamespaceAlreadyExists, and NamespaceNotFound for the parent."""

    @abstractmethod
    def drop_namespace(self, path: Path) -> None:
        """Drop an empty namespace. Raise NamespaceNotFound, NamespaceNotEmpty."""

    def alter_namespace(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:  # noqa: ARG002
        """Change a namespace's properties. Raise NamespaceNotFound, and Unsupported if the protocol has no such call."""
        raise Unsupported(f"this protocol cannot alter the namespace {format_path(path)}")

    @abstractmethod
    def declare_table(self, path: Path, location: str | None, properties: Mapping[str, str]) -> str | None:
        """Declare a table. Return the location in the response; None if it has none.

        Raise TableAlreadyExists, NamespaceNotFound, and InvalidInput if the server refuses the location.
        """

    def alter_table(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:  # noqa: ARG002
        """Change a table's properties. Raise Unsupported if the protocol has no such call."""
        raise Unsupported(f"this protocol cannot alter the table {format_path(path)}")

    @abstractmethod
    def deregister_table(self, path: Path) -> None:
        """Remove a table's declaration. Raise TableNotFound."""

    def rename_table(self, path: Path, new_path: Path) -> None:  # noqa: ARG002
        """Rename a table. Raise TableNotFound, TableAlreadyExists, and Unsupported if the protocol has no such call."""
        raise Unsupported(f"this protocol cannot rename the table {format_path(path)}")

    @abstractmethod
    def close(self) -> None:
        """Close the connections. A second call has no effect."""


def format_path(path: Path) -> str:
    """Return a path as text for messages."""
    return path_key(path) or "the root"


def list_all_names(read_page: Callable[[str | None], HttpResponse], names_field: str, token_field: str) -> list[str]:
    """Return the names of all pages, without duplicates. ``read_page`` gets the token of the page, None for the first one.

    ``names_field`` is the field of a response with the list of names. ``token_field`` is the one with the token of the next page,
    which is empty or null on the last page. Raise Internal for a page without
    the list, for names that are not texts, and for a repeated token.
    """
    # Creations between two pages can move a name to a later page, so duplicates are dropped.
    names: dict[str, None] = {}
    tokens: PageTokens | None = None
    next_token: str | None = None
    while True:
        response = read_page(next_token)
        tokens, known = tokens or PageTokens(response.operation), len(names)
        names.update(dict.fromkeys(response.require_shape({names_field: [str]})[names_field]))
        next_token = tokens.following(response.json_object.get(token_field), added=len(names) - known)
        if next_token is None:
            return list(names)


def location_in(response: HttpResponse) -> str | None:
    """Return the location in the response to a declaration. None without an absolute one: some servers send none or a relative one."""
    location = response.lenient_object.get("location")
    return location if isinstance(location, str) and is_location(location) else None
