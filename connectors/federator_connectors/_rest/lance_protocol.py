"""The official Lance REST namespace protocol, as in the package ``lance-namespace-urllib3-client`` 0.13.

That package is not the client here: it accepts a table without a location, and its transport has no limits and no circuit breaker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from federator.connector import CatalogError, InvalidInput, Unsupported
from federator.model import Path, canonical_location
from federator_connectors._http.client import HttpClient
from federator_connectors._http.response import HttpResponse
from federator_connectors._rest import responses
from federator_connectors._rest.protocol import RestProtocol, TableDescription, format_path, list_all_names, location_in

_DEFAULT_DELIMITER = "$"


class LanceProtocol(RestProtocol):
    """Client of ``/v1/namespace/{id}/...`` and ``/v1/table/{id}/...``.

    An id is the names joined with the delimiter. The id of the root is the delimiter itself.
    """

    def __init__(self, client: HttpClient, *, delimiter: str, page_size: int | None, root: str | None) -> None:
        self._client = client
        self._delimiter = delimiter
        self._page_size = page_size
        self._root = root

    def list_namespaces(self, parent: Path) -> list[str]:
        return self._list_names(
            f"/namespace/{self._id(parent)}/list", "namespaces", f"listing the namespaces in {format_path(parent)}"
        )

    def list_tables(self, namespace: Path) -> list[str]:
        names = self._list_names(
            f"/namespace/{self._id(namespace)}/table/list", "tables", f"listing the tables in {format_path(namespace)}"
        )
        # Gravitino lists whole ids. A name that contains the delimiter could not be addressed, so it is never meant literally.
        parent_id = "".join(f"{name}{self._delimiter}" for name in namespace)
        return list(dict.fromkeys(name.removeprefix(parent_id) for name in names))

    def get_namespace(self, path: Path) -> dict[str, str]:
        about = f"reading the namespace {format_path(path)}"
        response = self._post(f"/namespace/{self._id(path)}/describe", {}, about, reads=True)
        return response.require_shape(responses.NAMESPACE).get("properties") or {}

    def get_table(self, path: Path) -> TableDescription:
        request = {"load_detailed_metadata": False, "vend_credentials": False}
        response = self._post(
            f"/table/{self._id(path)}/describe", request, f"reading the table {format_path(path)}", reads=True
        )
        table = response.require_shape(responses.TABLE)
        # Versions that the server manages are in its own manifest store, past which the table must not be opened.
        return TableDescription(
            table["location"], table.get("properties") or {}, is_managed=table.get("managed_versioning") is True
        )

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        body = {"mode": "Create", "properties": dict(properties)}
        self._post(f"/namespace/{self._id(path)}/create", body, f"creating the namespace {format_path(path)}")

    def drop_namespace(self, path: Path) -> None:
        body = {"mode": "Fail", "behavior": "Restrict"}
        self._post(f"/namespace/{self._id(path)}/drop", body, f"dropping the namespace {format_path(path)}")

    def declare_table(self, path: Path, location: str | None, properties: Mapping[str, str]) -> str | None:
        about, body = f"declaring the table {format_path(path)}", {"properties": dict(properties)}
        first_error: CatalogError | None = None
        for candidate in self._location_candidates(location):
            try:
                # RegisterTable is tried first, because DeclareTable may write to the location.
                return location_in(self._post(f"/table/{self._id(path)}/register", {**body, "location": candidate}, about))
            except (InvalidInput, Unsupported) as error:
                first_error = first_error or error
        try:
            request = {**body, **({"location": location} if location else {})}
            return location_in(self._post(f"/table/{self._id(path)}/declare", request, about))
        except (InvalidInput, Unsupported) as error:
            raise first_error or error from None

    def deregister_table(self, path: Path) -> None:
        self._post(f"/table/{self._id(path)}/deregister", {}, f"deregistering the table {format_path(path)}")

    def rename_table(self, path: Path, new_path: Path) -> None:
        body = {"new_table_name": new_path[-1], "new_namespace_id": list(new_path[:-1])}
        self._post(f"/table/{self._id(path)}/rename", body, f"renaming the table {format_path(path)}")

    def close(self) -> None:
        self._client.close()

    def _location_candidates(self, location: str | None) -> list[str]:
        """Return the location, and its path relative to the server's root, the only form that the reference server accepts."""
        if not location:
            return []
        canonical, root = canonical_location(location), canonical_location(self._root) if self._root else None
        if root is None or not canonical.startswith(f"{root}/"):
            return [location]
        # The reference server expects plain names, not percent-encoded ones.
        return [location, unquote(canonical.removeprefix(f"{root}/"))]

    def _list_names(self, path: str, items: str, about: str) -> list[str]:
        def read_page(token: str | None) -> HttpResponse:
            params = {"page_token": token, "limit": self._page_size, **self._delimiter_parameter()}
            return self._client.get(f"/v1{path}", params, about=about)

        return list_all_names(read_page, items, "page_token")

    def _post(self, path: str, body: Any, about: str, *, reads: bool = False) -> HttpResponse:
        return self._client.send(
            "POST", f"/v1{path}", body=body, params=self._delimiter_parameter(), about=about, repeatable=reads
        )

    def _delimiter_parameter(self) -> dict[str, str]:
        return {} if self._delimiter == _DEFAULT_DELIMITER else {"delimiter": self._delimiter}

    def _id(self, path: Path) -> str:
        hint = f"set rest.delimiter to a text that no name contains; it is {self._delimiter!r}"
        for name in path:
            if self._delimiter in name or name in ("", ".", ".."):
                raise InvalidInput(f"{format_path(path)}: the name {name!r} cannot be addressed", hint=hint)
        joined = self._delimiter.join(path)
        if path and tuple(joined.split(self._delimiter)) != path:
            raise InvalidInput(f"{format_path(path)}: the server would read its id {joined!r} as other names", hint=hint)
        try:
            return quote(joined or self._delimiter, safe="")
        except UnicodeEncodeError:
            raise InvalidInput(f"{format_path(path)!r}: a name is not valid text") from None
