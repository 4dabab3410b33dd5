"""The general protocol: ``POST /<operationId>``, with the bodies of the general spec's early OpenAPI document.

An object id is a ``name`` and the list of its parents' names. Paging fields are in camelCase. Errors are RFC 7807 problems.
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
    PermissionDenied,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.connector.shapes import Shape
from federator.model import ROOT, Path
from federator_connectors._http.client import HttpClient
from federator_connectors._http.response import HttpResponse
from federator_connectors._rest import responses
from federator_connectors._rest.errors import general_error_mapper
from federator_connectors._rest.protocol import RestProtocol, TableDescription, format_path, list_all_names, location_in


class GeneralProtocol(RestProtocol):
    """Client of the operations that the catalog needs.

    ListOperations and NamespaceExists are not needed. CreateTable requires a schema, which a declaration does not have.
    """

    def __init__(self, client: HttpClient, *, page_size: int | None, drop_keeps_data: bool) -> None:
        self._client = client
        self._page_size = page_size
        self._drop_keeps_data = drop_keeps_data

    def list_namespaces(self, parent: Path) -> list[str]:
        about = f"listing the namespaces in {format_path(parent)}"
        return self._list_names("ListNamespaces", {"parent": list(parent)}, "namespaces", about)

    def list_tables(self, namespace: Path) -> list[str]:
        about = f"listing the tables in {format_path(namespace)}"
        return self._list_names("ListTables", {"namespace": list(namespace)}, "tables", about)

    def get_namespace(self, path: Path) -> dict[str, str]:
        if path == ROOT:
            return self._get_root()
        response = self._read(
            "GetNamespace", _namespace_id(path), f"reading the namespace {format_path(path)}", NamespaceNotFound
        )
        return self._require_object(response, path, responses.GENERAL_NAMESPACE).get("properties") or {}

    def _get_root(self) -> dict[str, str]:
        """Return the root's properties; none if the server refuses to describe it. The root always exists.

        The document requires a name, which the root does not have: this service accepts an empty one, other servers may not.
        """
        try:
            response = self._read("GetNamespace", {"name": "", "parent": []}, "reading the root", NamespaceNotFound)
        except (InvalidInput, NamespaceNotFound, PermissionDenied, Unsupported):
            return {}
        return response.require_shape(responses.NAMESPACE).get("properties") or {}

    def get_table(self, path: Path) -> TableDescription:
        response = self._read("GetTable", _table_id(path), f"reading the table {format_path(path)}", TableNotFound)
        table = self._require_object(response, path, responses.GENERAL_TABLE)
        managed_by = table.get("managedBy") or "storage"
        if managed_by not in ("storage", "implementation"):
            raise Internal(f"{response.operation}: managedBy is neither storage nor implementation: {response.excerpt}")
        return TableDescription(
            table.get("location") or None, table.get("properties") or {}, is_managed=managed_by == "implementation"
        )

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        body = {**_namespace_id(path), "mode": "CREATE", "options": dict(properties)}
        about = f"creating the namespace {format_path(path)}"
        try:
            self._post("CreateNamespace", body, about, missing=NamespaceNotFound, existing=NamespaceAlreadyExists)
        except InvalidInput:
            # Status 400 means a bad request or an existing name.
            self._require_absent(path, about)
            raise

    def drop_namespace(self, path: Path) -> None:
        about = f"dropping the namespace {format_path(path)}"
        self._post("DropNamespace", _namespace_id(path), about, missing=NamespaceNotFound, existing=NamespaceNotEmpty)

    def alter_namespace(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:
        body = {**_namespace_id(path), "updates": dict(updates), "removals": removals}
        self._post("AlterNamespace", body, f"altering the namespace {format_path(path)}", missing=NamespaceNotFound)

    def declare_table(self, path: Path, location: str | None, properties: Mapping[str, str]) -> str | None:
        if not location:
            raise Unsupported(f"the table {format_path(path)} needs a location", hint="set a location, or rest.root")
        about = f"registering the table {format_path(path)}"
        body = {**_table_id(path), "location": location, "properties": dict(properties)}
        try:
            response = self._post("RegisterTable", body, about, missing=NamespaceNotFound, existing=TableAlreadyExists)
            return location_in(response)
        except InvalidInput:
            if self._exists(path):
                raise TableAlreadyExists(f"{about}: the table exists") from None
            raise

    def alter_table(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:
        body = {**_table_id(path), "updates": dict(updates), "removals": removals}
        self._post("AlterTable", body, f"altering the table {format_path(path)}", missing=TableNotFound)

    def deregister_table(self, path: Path) -> None:
        if not self._drop_keeps_data:
            raise Unsupported(
                f"the table {format_path(path)}: the general protocol only has DropTable, which may delete data",
                hint="set rest.drop_keeps_data = true if this server's DropTable keeps the data",
            )
        self._post("DropTable", _table_id(path), f"dropping the declaration of {format_path(path)}", missing=TableNotFound)

    def close(self) -> None:
        self._client.close()

    def _require_absent(self, path: Path, about: str) -> None:
        try:
            self.get_namespace(path)
        except NamespaceNotFound:
            return
        raise NamespaceAlreadyExists(f"{about}: the namespace exists")

    def _exists(self, path: Path) -> bool:
        """Return the result of TableExists. It is also true for a directory without a Lance table, for which GetTable fails."""
        response = self._read("TableExists", _table_id(path), f"looking for the table {format_path(path)}", TableNotFound)
        return response.require_shape(responses.EXISTS)["exists"] is True

    def _list_names(self, operation: str, body: dict[str, Any], items: str, about: str) -> list[str]:
        def read_page(token: str | None) -> HttpResponse:
            paging = {"pageToken": token, "pageSize": self._page_size}
            request = {**body, **{key: value for key, value in paging.items() if value is not None}}
            return self._read(operation, request, about, NamespaceNotFound)

        return list_all_names(read_page, items, "nextPageToken")

    @staticmethod
    def _require_object(response: HttpResponse, path: Path, shape: Shape) -> dict[str, Any]:
        """Return an object's fields. Raise Internal for a response that lacks fields, or that is about another object."""
        fields = response.require_shape(shape)
        if fields["name"] != path[-1]:
            raise Internal(f"{response.operation}: the server's response is about {fields['name']!r}")
        return fields

    def _read(self, operation: str, body: Any, about: str, missing: type[CatalogError]) -> HttpResponse:
        return self._post(operation, body, about, missing=missing, reads=True)

    def _post(
        self, operation: str, body: Any, about: str, *, missing: type[CatalogError] = Internal,
        existing: type[CatalogError] = Internal, reads: bool = False,
    ) -> HttpResponse:  # fmt: skip
        error_of = general_error_mapper(missing=missing, existing=existing)
        return self._client.send("POST", f"/{operation}", body=body, about=about, repeatable=reads, error_of=error_of)


def _namespace_id(path: Path) -> dict[str, Any]:
    return {"name": path[-1], "parent": list(path[:-1])}


def _table_id(path: Path) -> dict[str, Any]:
    return {"name": path[-1], "namespace": list(path[:-1])}
