"""The official Lance REST namespace protocol, as the package ``lance-namespace-urllib3-client`` 0.13 calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from federator.connector import CatalogError, InvalidInput, Unsupported
from federator.model import Path, canonical_location
from federator_connectors._http.answer import Answer
from federator_connectors._http.client import HttpClient
from federator_connectors._rest import responses
from federator_connectors._rest.pages import all_names
from federator_connectors._rest.protocol import Protocol, Told, shown

_DEFAULT_DELIMITER = "$"


class LanceProtocol(Protocol):
    """``/v1/namespace/{id}/...`` and ``/v1/table/{id}/...``; an id is the names joined by the delimiter, the root's the delimiter
    itself."""

    def __init__(self, client: HttpClient, *, delimiter: str, page_size: int | None, root: str | None) -> None:
        self._client = client
        self._delimiter = delimiter
        self._page_size = page_size
        self._root = root

    def namespaces(self, parent: Path) -> list[str]:
        return self._names(f"/namespace/{self._id(parent)}/list", "namespaces", f"listing the namespaces in {shown(parent)}")

    def tables(self, namespace: Path) -> list[str]:
        return self._names(
            f"/namespace/{self._id(namespace)}/table/list", "tables", f"listing the tables in {shown(namespace)}"
        )

    def namespace(self, path: Path) -> dict[str, str]:
        about = f"reading the namespace {shown(path)}"
        answer = self._post(f"/namespace/{self._id(path)}/describe", {}, about, reads=True)
        return answer.fitting(responses.NAMESPACE).get("properties") or {}

    def table(self, path: Path) -> Told:
        asked = {"load_detailed_metadata": False, "vend_credentials": False}
        answer = self._post(f"/table/{self._id(path)}/describe", asked, f"reading the table {shown(path)}", reads=True)
        table = answer.fitting(responses.TABLE)
        return Told(table["location"], table.get("properties") or {})

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> None:
        body = {"mode": "Create", "properties": dict(properties)}
        self._post(f"/namespace/{self._id(path)}/create", body, f"creating the namespace {shown(path)}")

    def drop_namespace(self, path: Path) -> None:
        body = {"mode": "Fail", "behavior": "Restrict"}
        self._post(f"/namespace/{self._id(path)}/drop", body, f"dropping the namespace {shown(path)}")

    def declare(self, path: Path, location: str | None, properties: Mapping[str, str]) -> None:
        about, body = f"declaring the table {shown(path)}", {"properties": dict(properties)}
        refused: CatalogError | None = None
        for place in self._spellings(location):
            try:
                # RegisterTable first: it points at a place, where DeclareTable may write into it.
                self._post(f"/table/{self._id(path)}/register", {**body, "location": place}, about)
                return
            except (InvalidInput, Unsupported) as error:
                refused = refused or error
        try:
            self._post(f"/table/{self._id(path)}/declare", {**body, **({"location": location} if location else {})}, about)
        except (InvalidInput, Unsupported) as error:
            raise refused or error from None

    def deregister(self, path: Path) -> None:
        self._post(f"/table/{self._id(path)}/deregister", {}, f"deregistering the table {shown(path)}")

    def rename(self, path: Path, new_path: Path) -> None:
        body = {"new_table_name": new_path[-1], "new_namespace_id": list(new_path[:-1])}
        self._post(f"/table/{self._id(path)}/rename", body, f"renaming the table {shown(path)}")

    def close(self) -> None:
        self._client.close()

    def _spellings(self, location: str | None) -> list[str]:
        """The location as given, and relative to the server's root, the only form that the reference server takes."""
        if not location:
            return []
        place, root = canonical_location(location), canonical_location(self._root) if self._root else None
        if root is None or not place.startswith(f"{root}/"):
            return [location]
        # It takes a path as its names are, not as a URL spells them.
        return [location, unquote(place.removeprefix(f"{root}/"))]

    def _names(self, path: str, items: str, about: str) -> list[str]:
        def ask(token: str | None) -> Answer:
            params = {"page_token": token, "limit": self._page_size, **self._delimited()}
            return self._client.get(f"/v1{path}", params, about=about)

        return all_names(ask, items, "page_token")

    def _post(self, path: str, body: Any, about: str, *, reads: bool = False) -> Answer:
        return self._client.send("POST", f"/v1{path}", body=body, params=self._delimited(), about=about, repeatable=reads)

    def _delimited(self) -> dict[str, str]:
        return {} if self._delimiter == _DEFAULT_DELIMITER else {"delimiter": self._delimiter}

    def _id(self, path: Path) -> str:
        for name in path:
            if self._delimiter in name or name in ("", ".", ".."):
                raise InvalidInput(
                    f"{shown(path)}: the name {name!r} cannot be addressed",
                    hint=f"set rest.delimiter to what no name holds; it is {self._delimiter!r}",
                )
        try:
            return quote(self._delimiter.join(path) or self._delimiter, safe="")
        except UnicodeEncodeError:
            raise InvalidInput(f"{shown(path)!r}: a name that is no text") from None
