"""Client of Polaris, by path.

It uses the Iceberg REST API for namespaces, the Generic Table API for tables and the management API for catalogs.

Paths are ``(catalog, namespace, ..., name)``. The levels of a namespace are joined with the unit separator, ``%1F``. The Lance spec
joins them with ``.``, but a real server does not find such a namespace, and a name may contain dots.
"""

from __future__ import annotations

from contextlib import suppress

from federator.connector import CatalogError, Internal, NamespaceNotFound, PermissionDenied, TableNotFound
from federator.model import Path, path_key
from federator_connectors._http.client import HttpClient
from federator_connectors._http.response import HttpResponse, error_for_status
from federator_connectors._iceberg.namespaces import NamespaceClient
from federator_connectors._iceberg.namespaces import Native as Native
from federator_connectors._polaris import responses
from federator_connectors._polaris.authentication import build_authentication
from federator_connectors._polaris.errors import error_for_grants, error_for_response, name_realm, translate_table_errors
from federator_connectors._polaris.settings import PolarisSettings

_ICEBERG = "/api/catalog/v1"
_GENERIC = "/api/catalog/polaris/v1"
_CATALOGS = "/api/management/v1/catalogs"


class PolarisClient(NamespaceClient):
    """Client of one Polaris server. Thread-safe. Every call raises CatalogError, also Internal for a response of another shape.

    ``Native`` is a JSON object as Polaris sends or receives it.
    """

    def __init__(self, source: str, settings: PolarisSettings) -> None:
        http = HttpClient(
            source,
            settings.endpoint,
            error_of=lambda response: name_realm(error_for_response(response), response),
            authentication=build_authentication(source, settings),
            limits=settings.limits,
            tls=settings.tls,
            connections=settings.pool_size,
            connect_timeout=settings.connect_timeout / 1000,
            read_timeout=settings.read_timeout / 1000,
        )
        super().__init__(source, http, settings.page_size)

    # Catalogs

    def list_creation_times(self) -> dict[str, str]:
        """Return the creation time of each catalog, by name, as a text for its identity. Empty if unknown."""
        response = self._http.get(_CATALOGS, about="reading when the catalogs were created")
        return {item["name"]: _format_creation(item) for item in response.require_shape(responses.CATALOGS)["catalogs"]}

    def list_catalogs(self) -> dict[str, Native]:
        """Return the properties of all catalogs, by name."""
        try:
            response = self._http.get(_CATALOGS, about="listing the catalogs")
        except PermissionDenied as error:
            raise PermissionDenied(
                error.message, hint="name the catalogs in polaris.catalogs, or allow LIST_CATALOGS"
            ) from None
        return {item["name"]: item["properties"] for item in response.require_shape(responses.CATALOGS)["catalogs"]}

    def get_catalog(self, name: str) -> Native:
        """Return those properties of a catalog that each of its users may read. Raise NamespaceNotFound."""
        response = self._http.get(
            f"{_ICEBERG}/config", {"warehouse": self._join(name)}, about=f"reading the catalog {path_key((name,))}"
        )
        defaults: Native = response.require_shape(responses.CONFIG)["defaults"]
        return defaults

    # Generic tables

    def list_tables(self, namespace: Path) -> list[str]:
        """Return the names of all generic tables, Lance or not, without duplicates. Raise NamespaceNotFound."""
        return self._list_identifiers(self._tables_url(namespace), namespace, f"listing the tables of {path_key(namespace)}")

    def get_table(self, path: Path) -> Native:
        """Return a generic table. Raise TableNotFound, also if its namespace or catalog does not exist."""
        with translate_table_errors(missing=TableNotFound):
            return _parse_table(path, self._http.get(self._table_url(path), about=f"reading the table {path_key(path)}"))

    def create_table(self, path: Path, body: Native) -> Native:
        """Create a table and return it as Polaris stores it. Raise TableAlreadyExists, NamespaceNotFound.

        ``body`` is a ``CreateGenericTableRequest``. Raise InvalidInput for a name that no URL could address later.
        """
        self._table_url(path)
        with translate_table_errors(missing=NamespaceNotFound):
            about = f"declaring the table {path_key(path)}"
            return _parse_table(path, self._http.send("POST", self._tables_url(path[:-1]), body=body, about=about))

    def drop_table(self, path: Path) -> None:
        """Remove the entry of a table. Polaris never touches a generic table's data. Raise TableNotFound."""
        with translate_table_errors(missing=TableNotFound):
            self._http.send("DELETE", self._table_url(path), about=f"removing the table {path_key(path)}").require_no_body()

    def find_iceberg_object(self, path: Path) -> str | None:
        """Return whether an Iceberg ``table`` or ``view`` has a name. None if neither has."""
        for kind in ("table", "view"):
            url = f"{self._namespace_url(path[:-1])}/{kind}s/{self._segment(path[-1])}"
            with suppress(TableNotFound):
                # The response to HEAD has no body, so a 404 alone must count as "not found".
                self._http.send("HEAD", url, about=f"looking for a {kind} {path_key(path)}", error_of=_error_for_head)
                return kind
        return None

    def list_grants(self, path: Path) -> list[Native]:
        """Return the grants on a table itself, each with its catalog role.

        Raise PermissionDenied if the source's principal may not manage access, and Unsupported if Polaris cannot list them.
        """
        about = f"listing the grants on {path_key(path)}"
        roles_url = f"{_CATALOGS}/{self._segment(path[0])}/catalog-roles"
        roles = [item["name"] for item in self._http.get(roles_url, about=about).require_shape(responses.ROLES)["roles"]]
        grants: list[Native] = []
        for role in roles:
            response = self._http.get(f"{roles_url}/{self._segment(role)}/grants", about=about, error_of=error_for_grants)
            for grant in response.require_shape(responses.GRANTS)["grants"]:
                target = (grant.get("type"), grant.get("namespace"), grant.get("tableName"))
                if target == ("table", list(path[1:-1]), path[-1]):
                    grants.append({"role": role, **grant})
        return grants

    # URLs

    def _base(self, catalog: str) -> str:
        return f"{_ICEBERG}/{self._segment(catalog)}"

    def _tables_url(self, namespace: Path) -> str:
        return f"{_GENERIC}/{self._segment(namespace[0])}/namespaces/{self._segment(*namespace[1:])}/generic-tables"

    def _table_url(self, path: Path) -> str:
        return f"{self._tables_url(path[:-1])}/{self._segment(path[-1])}"


def _error_for_head(response: HttpResponse) -> CatalogError:
    return error_for_status(response, missing=TableNotFound)


def _format_creation(catalog: Native) -> str:
    created = catalog.get("createTimestamp")
    return f"created {created}" if created else ""


def _parse_table(path: Path, response: HttpResponse) -> Native:
    """Return the table of a response. Raise Internal if it has another name than the requested one."""
    table: Native = response.require_shape(responses.TABLE)["table"]
    if table["name"] != path[-1]:
        raise Internal(f"{response.operation}: the server's response is about {table['name']!r}")
    return table
