"""The calls of Unity's REST API that the connector makes, by path.

Source: the Unity Catalog REST API 2.1 (``catalogs``, ``schemas``, ``tables``), as the Lance Unity spec uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from federator.connector import CatalogError, Internal, NamespaceNotFound, TableNotFound
from federator.model import Path, path_key
from federator_connectors._http.client import HttpClient
from federator_connectors._http.signin import FixedHeaders
from federator_connectors._unity.errors import error_of
from federator_connectors._unity.settings import UnitySettings

Native = Mapping[str, Any]

#: rows that are asked for at once; the open-source server never gives more
PAGE = 100
# What no Unity server lets a name contain. Joined by periods, such a name would address something else.
_IMPOSSIBLE = re.compile(r"[\x00-\x20./\x7f]")


class UnityApi:
    """One server. Thread-safe. Every method raises CatalogError."""

    def __init__(self, source: str, settings: UnitySettings) -> None:
        self._source = source
        self._http = HttpClient(
            source,
            settings.endpoint + settings.api_path,
            error_of=error_of,
            sign_in=FixedHeaders.bearer(settings.auth_token),
            limits=settings.limits,
            tls=settings.tls,
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
        )

    def catalog(self, name: str) -> Native:
        return self._http.get(f"/catalogs/{quote(name, safe='')}", about=f"reading the catalog {name}").fields

    def schemas(self, catalog: str) -> Iterator[Native]:
        """Every schema of a catalog, whole, in pages."""
        return self._pages("/schemas", "schemas", f"listing the schemas of {catalog}", catalog_name=catalog)

    def schema(self, path: Path) -> Native:
        about = f"reading the schema {path_key(path)}"
        return self._http.get(self._address("schemas", path, NamespaceNotFound), about=about).fields

    def create_schema(self, body: Native) -> None:
        about = f"creating the schema {body['catalog_name']}${body['name']}"
        self._http.send("POST", "/schemas", body=body, about=about)

    def alter_schema(self, path: Path, body: Native) -> None:
        """Replaces the whole map of its properties, and its comment where ``body`` has one."""
        address = self._address("schemas", path, NamespaceNotFound)
        self._http.send("PATCH", address, body=body, about=f"altering the schema {path_key(path)}")

    def drop_schema(self, path: Path) -> None:
        """Never with ``force``: the server itself refuses then what is not empty."""
        # Its answer, "200 OK", is no JSON.
        address = self._address("schemas", path, NamespaceNotFound)
        self._http.send("DELETE", address, about=f"dropping the schema {path_key(path)}")

    def tables(self, schema: Path) -> Iterator[Native]:
        """Every table of a schema, Lance or not, whole, in pages. A schema that is not there is NamespaceNotFound on every page."""
        self._address("schemas", schema, NamespaceNotFound)
        catalog, name = schema
        about = f"listing the tables of {path_key(schema)}"
        return self._pages("/tables", "tables", about, catalog_name=catalog, schema_name=name)

    def table(self, path: Path) -> Native:
        about = f"reading the table {path_key(path)}"
        return self._http.get(self._address("tables", path, TableNotFound), about=about).fields

    def grants(self, path: Path) -> list[Native]:
        """Who may do what with the table itself: ``principal`` and ``privileges`` each, as far as they were granted on it."""
        about = f"reading the grants on the table {path_key(path)}"
        found = self._http.get(self._address("permissions/table", path, TableNotFound), about=about).fields
        return list(found.get("privilege_assignments") or [])

    def create_table(self, body: Native) -> Native:
        """The table as the server says that it has stored it."""
        about = f"declaring the table {body['catalog_name']}${body['schema_name']}${body['name']}"
        return self._http.send("POST", "/tables", body=body, about=about).fields

    def drop_table(self, path: Path) -> None:
        """Removes the entry; what lies at the location of an external table stays."""
        address = self._address("tables", path, TableNotFound)
        self._http.send("DELETE", address, about=f"removing the table {path_key(path)}")

    def close(self) -> None:
        self._http.close()

    def _address(self, noun: str, path: Path, missing: type[CatalogError]) -> str:
        for name in path:
            if _IMPOSSIBLE.search(name):
                raise missing(f"{self._source}: {path_key(path)} does not exist: no name in Unity Catalog is {name!r}")
        return f"/{noun}/{quote('.'.join(path), safe='.')}"

    def _pages(self, path: str, key: str, about: str, **query: str) -> Iterator[Native]:
        """The rows of every page. A full last page carries a token, too, and an empty page follows; no token is ever dropped.

        Raises Internal if a token repeats, since such a listing would never end, and for an answer that is no listing.
        """
        token: str | None = None
        seen: set[str] = set()
        while True:
            answer = self._http.get(path, {**query, "max_results": PAGE, "page_token": token}, about=about).fields
            # Databricks leaves the key out where nothing is to list.
            rows = answer.get(key, [] if not answer.keys() - {"next_page_token"} else None)
            if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("name") for row in rows):
                raise Internal(f"{self._source}: {about}: the server's answer is no list of {key} with names")
            yield from rows
            token = answer.get("next_page_token") or None
            if token is None:
                return
            if token in seen:
                raise Internal(f"{self._source}: {about}: the server repeats a page token, so that the listing has no end")
            seen.add(token)
