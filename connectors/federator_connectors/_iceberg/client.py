"""Client of an Iceberg REST server, by path. Source: Apache Iceberg's REST catalog specification.

It sends its own requests, like the other HTTP connectors. PyIceberg's client would answer after retries and redirects of its own, read
table metadata as objects that fail for formats that it does not know, and give listings without the page that failed.

Paths are ``(warehouse, namespace, ..., name)``. A warehouse is not part of a URL: ``/v1/config`` gives the prefix that stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from federator.connector import (
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from federator.connector.shapes import NAME, TEXTS, Shape, maybe
from federator.model import Path, path_key
from federator_connectors._http.client import HttpClient
from federator_connectors._iceberg.authentication import build_authentication, build_signature
from federator_connectors._iceberg.errors import error_for_config, error_for_response
from federator_connectors._iceberg.namespaces import NamespaceClient, Native
from federator_connectors._iceberg.settings import IcebergSettings
from federator_connectors._polaris.errors import translate_table_errors

# Required fields of the responses; those of namespaces and listings are in ``namespaces``.
_CONFIG = {"defaults": dict, "overrides": dict, "endpoints": maybe([str])}
_TABLE = {
    "metadata-location": maybe(str),
    "metadata": {"table-uuid": maybe(str), "location": NAME, "properties": maybe(TEXTS)},
}  # fmt: skip
_VIEW = {"metadata": {"view-uuid": NAME}}
_LOAD_VIEW = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"
_RENAME = "POST /v1/{prefix}/tables/rename"
# NAME@BRANCH, NAME#TIME, `NAME` and 'NAME'
_NESSIE_REFERENCE = re.compile(r".*[@#].*|`.*`|'.*'", re.DOTALL)
_PREFIX = re.compile(r"[^\x00-\x20?#\\\x7f]+")


@dataclass(frozen=True)
class Warehouse:
    """A warehouse as ``/v1/config`` describes it.

    Its URLs begin with ``path``, ``/v1`` and, if it has one, its ``prefix``. ``separator`` stands between the levels of its namespaces.
    """

    path: str
    prefix: str | None
    separator: str
    has_views: bool
    can_rename: bool
    is_nessie: bool


@dataclass(frozen=True)
class IcebergTable:
    """A table: its metadata, and the location of the file that contains it, if the server gives it."""

    metadata: Native
    metadata_location: str | None

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.get("properties") or {}


class IcebergClient(NamespaceClient):
    """Client of one Iceberg REST server. Thread-safe. Every call raises CatalogError."""

    # By Iceberg's specification, a server that has no properties of namespaces sends null.
    namespace_shape: ClassVar[Shape] = {"namespace": [str], "properties": maybe(TEXTS)}

    def __init__(self, source: str, settings: IcebergSettings) -> None:
        connect_timeout, read_timeout = settings.timeouts
        address = urlsplit(settings.endpoint)
        # The client's address has no path: on a branch of Nessie, the configuration has another path than everything else.
        self._origin, self._path = f"{address.scheme}://{address.netloc}", address.path.rstrip("/")
        http = HttpClient(
            source,
            self._origin,
            error_of=error_for_response,
            authentication=build_authentication(source, settings),
            limits=settings.limits,
            tls=settings.tls,
            connections=settings.pool_size,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            sign=build_signature(source, settings),
        )
        # No pages: Iceberg's own server counts entries, so a table that is dropped meanwhile would hide another one.
        super().__init__(source, http)
        self._warehouses: dict[str, Warehouse] = {}

    def read_warehouse(self, name: str) -> Warehouse:
        """Read the configuration of a warehouse. Raise NamespaceNotFound."""
        response = self._http.send(
            "GET", f"{self._path}/v1/config", params={"warehouse": self._join(name)},
            about=f"reading the warehouse {path_key((name,))}", error_of=error_for_config,
        )  # fmt: skip
        fields = response.require_shape(_CONFIG)
        values = {**fields["defaults"], **fields["overrides"]}
        prefix, separator = values.get("prefix"), values.get("namespace-separator") or "%1F"
        if not (prefix is None or (isinstance(prefix, str) and _PREFIX.fullmatch(prefix))) or not isinstance(separator, str):
            raise Internal(f"{response.operation}: the server's prefix or namespace separator cannot be used")
        is_nessie = values.get("nessie.is-nessie-catalog") == "true"
        # By Iceberg's specification, a server that lists no endpoints can rename tables and has no views; Nessie has them.
        endpoints = fields.get("endpoints") or (_RENAME, *([_LOAD_VIEW] if is_nessie else []))
        path, has_views, can_rename = self._find_path(values.get("uri")), _LOAD_VIEW in endpoints, _RENAME in endpoints
        warehouse = self._warehouses[name] = Warehouse(
            path, prefix and prefix.strip("/"), unquote(separator), has_views, can_rename, is_nessie
        )
        return warehouse

    def _find_path(self, uri: object) -> str:
        """Return the path before ``/v1``: that of ``uri``, which the configuration names, if the endpoint is below ``uri``.

        This is so for a branch of Nessie. Any other address may lead the credentials to somebody else.
        """
        named = uri.rstrip("/") if isinstance(uri, str) else ""
        is_above = named.startswith(self._origin) and f"{self._origin}{self._path}".startswith(f"{named}/")
        return named.removeprefix(self._origin) if is_above else self._path

    def is_nessie(self, warehouse: str) -> bool:
        """Return whether a warehouse is on Nessie, which differs from Iceberg's specification. Raise NamespaceNotFound."""
        return self._warehouse(warehouse).is_nessie

    def list_namespaces(self, parent: Path) -> list[str]:
        names = super().list_namespaces(parent)
        self._check_listing(parent, names)
        return names

    def list_tables(self, namespace: Path) -> list[str]:
        """Return the names of all Iceberg tables, Lance or not, without duplicates. Raise NamespaceNotFound."""
        about = f"listing the tables of {path_key(namespace)}"
        names = self._list_identifiers(f"{self._namespace_url(namespace)}/tables", namespace, about)
        self._check_listing(namespace, names)
        return names

    def get_table(self, path: Path) -> IcebergTable:
        """Return a table. Raise TableNotFound, also if its namespace or warehouse does not exist, or if the name is a view's."""
        with translate_table_errors(missing=TableNotFound):
            # Tables that are not Lance may have very many snapshots.
            query, about = {"snapshots": "refs"}, f"reading the table {path_key(path)}"
            fields = self._http.get(self._table_url(path), query, about=about).require_shape(_TABLE)
            return IcebergTable(fields["metadata"], fields.get("metadata-location"))

    def has_view(self, path: Path) -> bool:
        """Return whether a view has this name."""
        try:
            if not self._warehouse(path[0]).has_views:
                return False
            self._http.get(self._entry_url(path, "views"), about=f"reading the view {path_key(path)}").require_shape(_VIEW)
        except (TableNotFound, NamespaceNotFound):
            return False
        return True

    def create_table(self, path: Path, body: Native) -> IcebergTable:
        """Create a table and return it as the server stores it. Raise TableAlreadyExists, NamespaceNotFound."""
        self._require_url(path)
        with translate_table_errors(missing=NamespaceNotFound):
            url, about = f"{self._namespace_url(path[:-1])}/tables", f"declaring the table {path_key(path)}"
            fields = self._http.send("POST", url, body=body, about=about).require_shape(_TABLE)
            return IcebergTable(fields["metadata"], fields.get("metadata-location"))

    def commit(self, path: Path, uuid: str, updates: Sequence[Mapping[str, Any]]) -> None:
        """Change a table that has still this UUID. Raise TableNotFound, ConcurrentModification."""
        body = {"requirements": [{"type": "assert-table-uuid", "uuid": uuid}], "updates": list(updates)}
        with translate_table_errors(missing=TableNotFound):
            about = f"altering the table {path_key(path)}"
            self._http.send("POST", self._table_url(path), body=body, about=about).require_shape(_TABLE)

    def rename_table(self, path: Path, new_path: Path) -> None:
        """Rename a table within its warehouse. Raise TableNotFound, NamespaceNotFound, TableAlreadyExists or Unsupported."""
        about = f"renaming the table {path_key(path)} to {path_key(new_path)}"
        if not self._warehouse(path[0]).can_rename:
            raise Unsupported(f"{self._source}: {about}: the server does not offer this call")
        for table_path in (path, new_path):
            self._require_url(table_path)
        source, destination = ({"namespace": names[:-1], "name": names[-1]} for _, *names in (path, new_path))
        try:
            url, body = f"{self._base(path[0])}/tables/rename", {"source": source, "destination": destination}
            self._http.send("POST", url, body=body, about=about).require_no_body()
        except NamespaceAlreadyExists as error:
            raise TableAlreadyExists(error.message) from None

    def drop_table(self, path: Path, *, purge: bool = False) -> None:
        """Remove the entry of a table, and ask the server to keep its data, unless ``purge`` is set. Raise TableNotFound."""
        with translate_table_errors(missing=TableNotFound):
            query, about = {"purgeRequested": str(purge).lower()}, f"removing the table {path_key(path)}"
            self._http.send("DELETE", self._table_url(path), params=query, about=about).require_no_body()

    def _warehouse(self, name: str) -> Warehouse:
        return self._warehouses.get(name) or self.read_warehouse(name)

    def _check_listing(self, namespace: Path, names: list[str]) -> None:
        """Raise NamespaceNotFound if the namespace does not exist: Nessie lists it, as an empty one."""
        if not names and len(namespace) > 1 and self.is_nessie(namespace[0]):
            self.get_namespace(namespace)

    def _base(self, catalog: str) -> str:
        warehouse = self._warehouse(catalog)
        return f"{warehouse.path}/v1/{warehouse.prefix}" if warehouse.prefix else f"{warehouse.path}/v1"

    def _separator(self, catalog: str) -> str:
        return self._warehouse(catalog).separator

    def _require_url(self, path: Path) -> None:
        """Raise InvalidInput for a name that no URL can have, before a request whose body has the name."""
        self._table_url(path)

    def _table_url(self, path: Path) -> str:
        return self._entry_url(path, "tables")

    def _entry_url(self, path: Path, kind: str) -> str:
        name = path[-1]
        if self.is_nessie(path[0]) and _NESSIE_REFERENCE.fullmatch(name):
            raise InvalidInput(
                f"{self._source}: Nessie would take the name {name!r} for another table, or for one of another branch"
            )
        return f"{self._namespace_url(path[:-1])}/{kind}/{self._segment(name)}"
