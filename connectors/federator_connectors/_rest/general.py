"""The routes ``POST /<operationId>`` of the general Lance namespace spec, with the bodies of its early OpenAPI document.

Identifiers are a ``name`` and the list of names above it, paging is camelCase, errors are RFC 7807 problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from federator.connector import (
    CatalogError,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.connector.shapes import Shape
from federator.model import ROOT, Path
from federator_connectors._http.answer import Answer
from federator_connectors._http.client import HttpClient
from federator_connectors._rest import responses
from federator_connectors._rest.errors import general_error
from federator_connectors._rest.pages import all_names
from federator_connectors._rest.protocol import Protocol, Told, shown


class GeneralProtocol(Protocol):
    """Twelve of the spec's operations; ListOperations and the two Exists are answered by the others as well, CreateTable wants a
    schema that a declaration does not have."""

    def __init__(self, client: HttpClient, *, page_size: int | None, drop_keeps_data: bool) -> None:
        self._client = client
        self._page_size = page_size
        self._drop_keeps_data = drop_keeps_data

    def namespaces(self, parent: Path) -> list[str]:
        about = f"listing the namespaces in {shown(parent)}"
        return self._names("ListNamespaces", {"parent": list(parent)}, "namespaces", about)

    def tables(self, namespace: Path) -> list[str]:
        about = f"listing the tables in {shown(namespace)}"
        return self._names("ListTables", {"namespace": list(namespace)}, "tables", about)

    def namespace(self, path: Path) -> dict[str, str]:
        if path == ROOT:
            # It has no name to ask for, and always exists.
            return {}
        answer = self._read("GetNamespace", _namespace(path), f"reading the namespace {shown(path)}", NamespaceNotFound)
        return self._own(answer, path, responses.GENERAL_NAMESPACE).get("properties") or {}

    def table(self, path: Path) -> Told:
        answer = self._read("GetTable", _table(path), f"reading the table {shown(path)}", TableNotFound)
        table = self._own(answer, path, responses.GENERAL_TABLE)
        managed_by = table.get("managedBy") or "storage"
        if managed_by not in ("storage", "implementation"):
            raise Internal(f"{answer.about}: managedBy is neither storage nor implementation: {answer.excerpt}")
        return Told(table.get("location") or None, table.get("properties") or {}, managed=managed_by == "implementation")

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        body = {**_namespace(path), "mode": "CREATE", "options": dict(properties)}
        about = f"creating the namespace {shown(path)}"
        try:
            self._post("CreateNamespace", body, about, missing=NamespaceNotFound, taken=NamespaceAlreadyExists)
        except InvalidInput:
            # 400 stands for a bad request as well as for a name that is taken.
            self._raise_if_taken(path, about)
            raise

    def drop_namespace(self, path: Path) -> None:
        about = f"dropping the namespace {shown(path)}"
        self._post("DropNamespace", _namespace(path), about, missing=NamespaceNotFound, taken=NamespaceNotEmpty)

    def alter_namespace(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:
        body = {**_namespace(path), "updates": dict(updates), "removals": removals}
        self._post("AlterNamespace", body, f"altering the namespace {shown(path)}", missing=NamespaceNotFound)

    def declare(self, path: Path, location: str | None, properties: Mapping[str, str]) -> None:
        if not location:
            raise Unsupported(f"the table {shown(path)} needs a location here", hint="give one, or set rest.root")
        about = f"registering the table {shown(path)}"
        body = {**_table(path), "location": location, "properties": dict(properties)}
        try:
            self._post("RegisterTable", body, about, missing=NamespaceNotFound, taken=TableAlreadyExists)
        except InvalidInput:
            if self._exists(path):
                raise TableAlreadyExists(f"{about}: it exists") from None
            raise

    def alter(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:
        body = {**_table(path), "updates": dict(updates), "removals": removals}
        self._post("AlterTable", body, f"altering the table {shown(path)}", missing=TableNotFound)

    def deregister(self, path: Path) -> None:
        if not self._drop_keeps_data:
            raise Unsupported(
                f"the table {shown(path)}: the general protocol only has DropTable, which may delete data",
                hint="set rest.drop_keeps_data = true if this server's does not",
            )
        self._post("DropTable", _table(path), f"dropping the declaration of {shown(path)}", missing=TableNotFound)

    def close(self) -> None:
        self._client.close()

    def _raise_if_taken(self, path: Path, about: str) -> None:
        try:
            self.namespace(path)
        except NamespaceNotFound:
            return
        raise NamespaceAlreadyExists(f"{about}: it exists")

    def _exists(self, path: Path) -> bool:
        """TableExists is also true of a directory that is no Lance table, where GetTable is an error."""
        answer = self._read("TableExists", _table(path), f"looking for the table {shown(path)}", TableNotFound)
        return answer.fitting(responses.EXISTS)["exists"] is True

    def _names(self, operation: str, body: dict[str, Any], items: str, about: str) -> list[str]:
        def ask(token: str | None) -> Answer:
            paging = {"pageToken": token, "pageSize": self._page_size}
            asked = {**body, **{key: value for key, value in paging.items() if value is not None}}
            return self._read(operation, asked, about, NamespaceNotFound)

        return all_names(ask, items, "nextPageToken")

    @staticmethod
    def _own(answer: Answer, path: Path, shape: Shape) -> dict[str, Any]:
        """An object's fields. Raise Internal for a response that lacks some, or that is of another object."""
        fields = answer.fitting(shape)
        if fields["name"] != path[-1]:
            raise Internal(f"{answer.about}: the server's response is of {fields['name']!r}")
        return fields

    def _read(self, operation: str, body: Any, about: str, missing: type[CatalogError]) -> Answer:
        return self._post(operation, body, about, missing=missing, reads=True)

    def _post(
        self, operation: str, body: Any, about: str, *, missing: type[CatalogError] = Internal,
        taken: type[CatalogError] = Internal, reads: bool = False,
    ) -> Answer:  # fmt: skip
        error_of = general_error(missing=missing, taken=taken)
        return self._client.send("POST", f"/{operation}", body=body, about=about, repeatable=reads, error_of=error_of)


def _namespace(path: Path) -> dict[str, Any]:
    return {"name": path[-1], "parent": list(path[:-1])}


def _table(path: Path) -> dict[str, Any]:
    return {"name": path[-1], "namespace": list(path[:-1])}
