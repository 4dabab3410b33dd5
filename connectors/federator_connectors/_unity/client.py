"""Client of Unity's REST API, by path.

Source: the Unity Catalog REST API 2.1 (``catalogs``, ``schemas``, ``tables``), as the Lance Unity spec uses it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from federator.connector import CatalogError, Internal, NamespaceNotFound, PermissionDenied, TableNotFound, Unsupported
from federator.connector.page_tokens import PageTokens
from federator.connector.shapes import Shape
from federator.model import Path, path_key
from federator_connectors._http.authentication import Authentication, FixedHeaders
from federator_connectors._http.client import HttpClient
from federator_connectors._http.client_credentials import TokenClient, shared_token
from federator_connectors._http.response import HttpResponse
from federator_connectors._unity import responses
from federator_connectors._unity.errors import error_for_response, error_for_token_response, optional_call
from federator_connectors._unity.settings import UnitySettings

Native = Mapping[str, Any]
#: called for each page of a listing that has no list
Omitted = Callable[[], None]

#: requested rows per page; the open-source server never sends more
PAGE_SIZE = 100
# Characters that no Unity server allows in a name. Joined by periods, such a name would address another object.
_IMPOSSIBLE = re.compile(r"[\x00-\x20./\x7f]")


_CREATE_LOCKS = tuple(threading.Lock() for _ in range(64))


def _build_authentication(source: str, settings: UnitySettings) -> Authentication:
    if settings.client_id is None or settings.client_secret is None:
        return FixedHeaders.bearer(settings.auth_token)
    client = TokenClient(
        source=source, url=settings.token_url or f"{settings.endpoint}/oidc/v1/token", client_id=settings.client_id,
        secret=settings.client_secret, scope=settings.scope, error_of=error_for_token_response, timeouts=settings.timeouts,
        limits=settings.limits, tls=settings.tls, in_header=True,
    )  # fmt: skip
    return shared_token(client)


def _ignore() -> None:
    """The default for callers that do not use the listing as a proof."""


class UnityClient:
    """Client of one server. Thread-safe. Every method raises CatalogError."""

    def __init__(self, source: str, settings: UnitySettings) -> None:
        connect_timeout, read_timeout = settings.timeouts
        self._source = source
        self._url = settings.endpoint + settings.api_path
        self._http = HttpClient(
            source,
            self._url,
            error_of=error_for_response,
            authentication=_build_authentication(source, settings),
            limits=settings.limits,
            tls=settings.tls,
            connections=settings.pool_size,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
        )

    def get_catalog(self, name: str) -> Native:
        response = self._http.get(f"/catalogs/{quote(name, safe='')}", about=f"reading the catalog {name}")
        return self._require_object((name,), response, responses.CATALOG, "name")

    def iter_catalogs(self) -> Iterator[Native]:
        """Yield all catalogs that the source's principal may see. Raise Internal for a page without its list."""

        def require_list() -> None:
            raise Internal(f"{self._source}: listing the catalogs: the server's response has no list of catalogs")

        return self._iter_rows("/catalogs", "catalogs", "listing the catalogs", require_list)

    def get_metastore_id(self) -> str:
        """Return the metastore's id; empty if the server does not have the call, or denies it to the source's principal."""
        try:
            with optional_call():
                metastore_id = self._http.get("/metastore_summary", about="reading the metastore's id").json_object.get(
                    "metastore_id"
                )
        except (PermissionDenied, Unsupported):
            return ""
        return str(metastore_id or "")

    def iter_schemas(self, catalog: str, *, omitted: Omitted = _ignore) -> Iterator[Native]:
        """Yield all schemas of a catalog. ``omitted`` as for ``iter_tables``."""
        return self._iter_rows("/schemas", "schemas", f"listing the schemas of {catalog}", omitted, catalog_name=catalog)

    def get_schema(self, path: Path) -> Native:
        about = f"reading the schema {path_key(path)}"
        response = self._http.get(self._address("schemas", path, NamespaceNotFound), about=about)
        return self._require_object(path, response, responses.SCHEMA, "catalog_name", "name")

    def create_schema(self, body: Native) -> None:
        about = f"creating the schema {body['catalog_name']}${body['name']}"
        self._http.send("POST", "/schemas", body=body, about=about)

    def alter_schema(self, path: Path, body: Native) -> None:
        """Replace all properties of a schema, and its comment if ``body`` has one."""
        address = self._address("schemas", path, NamespaceNotFound)
        self._http.send("PATCH", address, body=body, about=f"altering the schema {path_key(path)}")

    def drop_schema(self, path: Path) -> None:
        """Drop an empty schema. ``force`` is never sent, so the server refuses a schema that is not empty."""
        # The body of the response, "200 OK", is not JSON.
        address = self._address("schemas", path, NamespaceNotFound)
        self._http.send("DELETE", address, about=f"dropping the schema {path_key(path)}")

    def iter_tables(self, schema: Path, *, omitted: Omitted = _ignore) -> Iterator[Native]:
        """Yield all tables of a schema, Lance or not. Raise NamespaceNotFound on any page if the schema does not exist.

        ``omitted`` is called for a page without its list. Databricks sends such a page for an empty listing, but it proves nothing.
        """
        self._address("schemas", schema, NamespaceNotFound)
        catalog, name = schema
        about = f"listing the tables of {path_key(schema)}"
        return self._iter_rows("/tables", "tables", about, omitted, catalog_name=catalog, schema_name=name)

    def get_table(self, path: Path) -> Native:
        about = f"reading the table {path_key(path)}"
        response = self._http.get(self._address("tables", path, TableNotFound), about=about)
        return self._require_object(path, response, responses.TABLE, "catalog_name", "schema_name", "name")

    def list_grants(self, path: Path) -> list[Native]:
        """Return the grants on the table itself, each with ``principal`` and ``privileges``. Inherited grants are omitted."""
        about = f"reading the grants on the table {path_key(path)}"
        response = self._http.get(self._address("permissions/table", path, TableNotFound), about=about)
        return list(response.require_shape(responses.GRANTS)["privilege_assignments"])

    def issue_credentials(self, path: Path, table_id: str, operation: str) -> Native:
        """Return temporary credentials for a table's files. Raise Unsupported if the server does not have the call.

        The request changes nothing, and is not repeated: the server may count it.
        """
        about = f"issuing credentials for the table {path_key(path)}"
        body = {"table_id": table_id, "operation": operation}
        with optional_call():
            response = self._http.send("POST", "/temporary-table-credentials", body=body, about=about)
        return response.require_shape(responses.CREDENTIALS)

    def lock_for(self, path: Path) -> threading.Lock:
        """Return the lock of a new table's path. All clients of this process and server share it.

        The server lets concurrent creates of one name succeed, and answers 500 to every later call about it.
        """
        # A fixed number of locks, so that they do not accumulate.
        return _CREATE_LOCKS[hash((self._url, path)) % len(_CREATE_LOCKS)]

    def create_table(self, body: Native) -> Native:
        """Create a table and return it as the server reports it."""
        about = f"declaring the table {body['catalog_name']}${body['schema_name']}${body['name']}"
        return self._http.send("POST", "/tables", body=body, about=about).require_shape(responses.TABLE)

    def drop_table(self, path: Path) -> None:
        """Remove the entry of a table. The data at the location of an external table stays."""
        address = self._address("tables", path, TableNotFound)
        self._http.send("DELETE", address, about=f"removing the table {path_key(path)}")

    def close(self) -> None:
        self._http.close()

    def _address(self, noun: str, path: Path, missing: type[CatalogError]) -> str:
        for name in path:
            if _IMPOSSIBLE.search(name):
                raise missing(f"{self._source}: {path_key(path)} does not exist: {name!r} is not a valid name in Unity Catalog")
        return f"/{noun}/{quote('.'.join(path), safe='.')}"

    def _require_object(self, path: Path, response: HttpResponse, shape: Shape, *keys: str) -> Native:
        """Return an object's fields. Raise Internal for a response that lacks fields, or that is not about the object at ``path``."""
        fields = response.require_shape(shape)
        returned_path = tuple(str(fields[key]) for key in keys)
        # Databricks returns names in lower case, whatever the case in the request.
        if path_key(returned_path).lower() != path_key(path).lower():
            raise Internal(f"{response.operation}: the server's response is about {path_key(returned_path)}")
        return fields

    def _iter_rows(self, path: str, key: str, about: str, omitted: Omitted, **query: str) -> Iterator[Native]:
        """Yield the rows of all pages. Raise Internal for an endless listing, and for a response that is not a listing.

        A full last page also has a token, and an empty page follows it. Every token is followed.
        """
        tokens = PageTokens(f"{self._source}: {about}")
        token: str | None = None
        names: set[str] = set()
        while True:
            response = self._http.get(path, {**query, "max_results": PAGE_SIZE, "page_token": token}, about=about)
            known = len(names)
            if response.json_object.keys() <= {"next_page_token"}:
                omitted()
            else:
                rows = response.require_shape(responses.PAGES[key])[key]
                _require_parent(response, rows, query)
                names.update(row["name"] for row in rows)
                yield from rows
            token = tokens.following(response.json_object.get("next_page_token"), added=len(names) - known)
            if token is None:
                return


def _require_parent(response: HttpResponse, rows: list[Native], parent: Mapping[str, str]) -> None:
    """Raise Internal for a row of another catalog or schema than the one whose listing was requested."""
    for row in rows:
        for key, name in parent.items():
            # Databricks returns names in lower case, whatever the case in the request.
            if row[key].lower() != name.lower():
                raise Internal(f"{response.operation}: the server's response has a row with the {key} {row[key]!r}")
