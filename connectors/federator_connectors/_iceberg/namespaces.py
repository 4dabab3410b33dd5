"""The namespaces of a server with the Iceberg REST API, by path. Iceberg REST catalogs and Polaris have it in common.

Paths are ``(catalog, namespace, ..., name)``. The levels of a namespace are joined with the unit separator, ``%1F``, because names may
contain dots; a server may ask for another separator.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sized
from typing import Any, ClassVar
from urllib.parse import quote

from federator.connector import Internal, InvalidInput
from federator.connector.page_tokens import PageTokens
from federator.connector.shapes import NAME, TEXTS, Shape
from federator.model import Path, path_key
from federator_connectors._http.client import HttpClient
from federator_connectors._http.response import HttpResponse

Native = Mapping[str, Any]

_NAMESPACES = {"namespaces": [[str]]}
_IDENTIFIERS = {"identifiers": [{"namespace": [str], "name": NAME}]}
_SEPARATOR = "\x1f"
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class NamespaceClient(ABC):
    """Client of a server's namespaces. Thread-safe. Every call raises CatalogError.

    ``page_size`` is the requested number of entries per page. None requests no pages, but reads those of a server that pages anyway.
    """

    #: required fields of a namespace's description
    namespace_shape: ClassVar[Shape] = {"namespace": [str], "properties": TEXTS}

    def __init__(self, source: str, http: HttpClient, page_size: int | None = None) -> None:
        self._source = source
        self._http = http
        self._page_size = page_size

    @abstractmethod
    def _base(self, catalog: str) -> str:
        """Return the percent-encoded path of a catalog, to which ``/namespaces`` is added. Raise NamespaceNotFound."""

    def _separator(self, catalog: str) -> str:  # noqa: ARG002 - a server may have one for each catalog
        """Return the text between the levels of a catalog's namespaces."""
        return _SEPARATOR

    def close(self) -> None:
        """Close all connections. A second call has no effect."""
        self._http.close()

    def list_namespaces(self, parent: Path) -> list[str]:
        """Return the names of the children of a catalog or namespace, without duplicates. Raise NamespaceNotFound."""
        about = f"listing the namespaces of {path_key(parent)}"
        levels = list(parent[1:])
        query = {"parent": self._join(*levels, separator=self._separator(parent[0]))} if levels else {}
        names: dict[str, None] = {}
        for response in self._iter_pages(self._namespaces_url(parent[0]), query, about, names):
            listed = response.require_shape(_NAMESPACES)["namespaces"]
            names.update(dict.fromkeys(_last_level(response, path, levels) for path in listed))
        return list(names)

    def get_namespace(self, path: Path) -> Native:
        """Return a namespace's properties. Raise NamespaceNotFound."""
        return self._properties(
            path, self._http.get(self._namespace_url(path), about=f"reading the namespace {path_key(path)}")
        )

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> Native:
        """Create a namespace and return its properties. Raise NamespaceAlreadyExists, and NamespaceNotFound for the parent."""
        self._namespace_url(path)
        body = {"namespace": list(path[1:]), "properties": dict(properties)}
        about = f"creating the namespace {path_key(path)}"
        return self._properties(path, self._http.send("POST", self._namespaces_url(path[0]), body=body, about=about))

    def alter_namespace(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:
        """Set properties, then remove others. Raise NamespaceNotFound, ConcurrentModification."""
        # Two requests, because Polaris makes the updates of a request with both and answers 409 instead of removing anything.
        url, about = f"{self._namespace_url(path)}/properties", f"altering the namespace {path_key(path)}"
        for body in ({"updates": dict(updates), "removals": []}, {"updates": {}, "removals": removals}):
            if body["updates"] or body["removals"]:
                self._http.send("POST", url, body=body, about=about)

    def drop_namespace(self, path: Path) -> None:
        """Drop an empty namespace. Raise NamespaceNotFound, NamespaceNotEmpty."""
        self._http.send("DELETE", self._namespace_url(path), about=f"dropping the namespace {path_key(path)}").require_no_body()

    def _list_identifiers(self, url: str, namespace: Path, about: str) -> list[str]:
        """Return the names of the objects in a namespace that a URL lists, without duplicates. Raise NamespaceNotFound."""
        levels = list(namespace[1:])
        names: dict[str, None] = {}
        for response in self._iter_pages(url, {}, about, names):
            listed = response.require_shape(_IDENTIFIERS)["identifiers"]
            names.update(dict.fromkeys(_last_level(response, [*item["namespace"], item["name"]], levels) for item in listed))
        return list(names)

    def _iter_pages(self, url: str, query: Mapping[str, str], about: str, names: Sized) -> Iterator[HttpResponse]:
        """Yield all pages. ``names`` are the names that the caller has read so far."""
        # With ``pageSize`` the first request has an empty token, as Iceberg's REST API requires. A server may also page unasked.
        token = "" if self._page_size else None
        tokens = PageTokens(f"{self._source}: {about}")
        while True:
            known = len(names)
            response = self._http.get(url, {**query, "pageSize": self._page_size, "pageToken": token}, about=about)
            yield response
            token = tokens.following(response.json_object.get("next-page-token"), added=len(names) - known)
            if token is None:
                return

    def _properties(self, path: Path, response: HttpResponse) -> Native:
        fields = response.require_shape(self.namespace_shape)
        if fields["namespace"] != list(path[1:]):
            raise Internal(f"{response.operation}: the server's response is about {path_key(fields['namespace'])}")
        return fields.get("properties") or {}

    def _namespaces_url(self, catalog: str) -> str:
        return f"{self._base(catalog)}/namespaces"

    def _namespace_url(self, path: Path) -> str:
        return f"{self._namespaces_url(path[0])}/{self._segment(*path[1:], separator=self._separator(path[0]))}"

    def _segment(self, *levels: str, separator: str = _SEPARATOR) -> str:
        """Return levels as one percent-encoded segment of a URL. Raise InvalidInput."""
        self._join(*levels, separator=separator)
        # A separator is encoded also if URLs allow it: servers tell the two apart.
        encoded = "".join(f"%{byte:02X}" for byte in separator.encode())
        return encoded.join(quote(level, safe="") for level in levels)

    def _join(self, *levels: str, separator: str = _SEPARATOR) -> str:
        """Join levels with the separator. Raise InvalidInput for names that a URL cannot contain or that name another object."""
        text = separator.join(levels)
        # A separator would address a deeper object, and dots alone the parent; lone surrogates cannot be encoded.
        invalid = any(separator in level or _SURROGATE.search(level) for level in levels)
        if invalid or text in (".", ".."):
            raise InvalidInput(f"{self._source}: {path_key(levels)!r} contains a name that a URL of this API cannot contain")
        return text


def _last_level(response: HttpResponse, path: Any, levels: list[str]) -> str:
    """Return the last level of a listed path. Raise Internal if the path is not in the listed namespace, ``levels``."""
    if isinstance(path, list) and path[:-1] == levels and path and isinstance(path[-1], str) and path[-1]:
        return path[-1]
    raise Internal(f"{response.operation}: the server lists {path!r}, which is not in this namespace")
