"""The calls of Unity's REST API that the connector makes, by path.

Source: the Unity Catalog REST API 2.1 (``catalogs``, ``schemas``, ``tables``), as the Lance Unity spec uses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from federator.connector import CatalogError, Internal, NamespaceNotFound, PermissionDenied, TableNotFound, Unsupported
from federator.connector.shapes import Shape
from federator.connector.tokens import PageTokens
from federator.model import Path, path_key
from federator_connectors._http.answer import Answer
from federator_connectors._http.client import HttpClient
from federator_connectors._http.signin import FixedHeaders
from federator_connectors._unity import responses
from federator_connectors._unity.errors import about_an_optional_call, error_of
from federator_connectors._unity.settings import UnitySettings

Native = Mapping[str, Any]
#: called for each page of a listing that has no list
Omitted = Callable[[], None]

#: rows that are asked for at once; the open-source server never gives more
PAGE = 100
# What no Unity server lets a name contain. Joined by periods, such a name would address something else.
_IMPOSSIBLE = re.compile(r"[\x00-\x20./\x7f]")


def _ignore() -> None:
    """A caller of a listing that shows what there is, and proves nothing by it."""


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
        answer = self._http.get(f"/catalogs/{quote(name, safe='')}", about=f"reading the catalog {name}")
        return self._of((name,), answer, responses.CATALOG, "name")

    def metastore(self) -> str:
        """Read the metastore's id; empty where the server does not have the call, or not for this principal."""
        try:
            with about_an_optional_call():
                found = self._http.get("/metastore_summary", about="reading the metastore's id").fields.get("metastore_id")
        except (PermissionDenied, Unsupported):
            return ""
        return str(found or "")

    def schemas(self, catalog: str, *, omitted: Omitted = _ignore) -> Iterator[Native]:
        """Every schema of a catalog, whole, in pages. ``omitted`` as for ``tables``."""
        return self._pages("/schemas", "schemas", f"listing the schemas of {catalog}", omitted, catalog_name=catalog)

    def schema(self, path: Path) -> Native:
        about = f"reading the schema {path_key(path)}"
        answer = self._http.get(self._address("schemas", path, NamespaceNotFound), about=about)
        return self._of(path, answer, responses.SCHEMA, "catalog_name", "name")

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

    def tables(self, schema: Path, *, omitted: Omitted = _ignore) -> Iterator[Native]:
        """Every table of a schema, Lance or not, whole, in pages. A schema that is not there is NamespaceNotFound on every page.

        ``omitted`` is called for a page without its list: what Databricks sends where nothing is to list, and what proves nothing.
        """
        self._address("schemas", schema, NamespaceNotFound)
        catalog, name = schema
        about = f"listing the tables of {path_key(schema)}"
        return self._pages("/tables", "tables", about, omitted, catalog_name=catalog, schema_name=name)

    def table(self, path: Path) -> Native:
        about = f"reading the table {path_key(path)}"
        answer = self._http.get(self._address("tables", path, TableNotFound), about=about)
        return self._of(path, answer, responses.TABLE, "catalog_name", "schema_name", "name")

    def grants(self, path: Path) -> list[Native]:
        """Who may do what with the table itself: ``principal`` and ``privileges`` each, as far as they were granted on it."""
        about = f"reading the grants on the table {path_key(path)}"
        answer = self._http.get(self._address("permissions/table", path, TableNotFound), about=about)
        return list(answer.fitting(responses.GRANTS)["privilege_assignments"])

    def create_table(self, body: Native) -> Native:
        """The table as the server says that it has stored it."""
        about = f"declaring the table {body['catalog_name']}${body['schema_name']}${body['name']}"
        return self._http.send("POST", "/tables", body=body, about=about).fitting(responses.TABLE)

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

    def _of(self, path: Path, answer: Answer, shape: Shape, *keys: str) -> Native:
        """An object's fields. Raise Internal for a response that lacks some, or that is of another object than the one at ``path``."""
        fields = answer.fitting(shape)
        found = tuple(str(fields[key]) for key in keys)
        # Databricks answers in lower case, whatever was asked.
        if path_key(found).lower() != path_key(path).lower():
            raise Internal(f"{answer.about}: the server's response is of {path_key(found)}")
        return fields

    def _pages(self, path: str, key: str, about: str, omitted: Omitted, **query: str) -> Iterator[Native]:
        """The rows of every page. A full last page carries a token, too, and an empty page follows; no token is ever dropped.

        Raises Internal for a listing that has no end, and for a response that is no listing.
        """
        tokens = PageTokens(f"{self._source}: {about}")
        token: str | None = None
        names: set[str] = set()
        while True:
            answer = self._http.get(path, {**query, "max_results": PAGE, "page_token": token}, about=about)
            known = len(names)
            if answer.fields.keys() <= {"next_page_token"}:
                omitted()
            else:
                rows = answer.fitting(responses.PAGES[key])[key]
                names.update(row["name"] for row in rows)
                yield from rows
            token = tokens.following(answer.fields.get("next_page_token"), added=len(names) - known)
            if token is None:
                return
