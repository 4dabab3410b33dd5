"""The calls to Polaris, by path: the Iceberg REST API for namespaces, the Generic Table API, the management API for catalogs.

Paths are ``(catalog, namespace, ..., name)``. The levels of a namespace are joined by the unit separator, ``%1F``: joined by ``.``, as
the Lance spec's text has it, a real server does not find them, and a name may hold dots of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sized
from typing import Any
from urllib.parse import quote

from federator.connector import Internal, InvalidInput, NamespaceNotFound, PermissionDenied, TableNotFound
from federator.connector.tokens import PageTokens
from federator.model import Path, path_key
from federator_connectors._http.answer import Answer
from federator_connectors._http.client import HttpClient
from federator_connectors._polaris import responses
from federator_connectors._polaris.errors import about_a_table, error_of
from federator_connectors._polaris.settings import PolarisSettings
from federator_connectors._polaris.signin import sign_in

Native = Mapping[str, Any]

_SEPARATOR = "\x1f"
_UNADDRESSED = re.compile(r"[\x1f\ud800-\udfff]")
_ICEBERG = "/api/catalog/v1"
_GENERIC = "/api/catalog/polaris/v1"
_CATALOGS = "/api/management/v1/catalogs"


class Client:
    """One Polaris server. Thread-safe. Every call raises CatalogError."""

    def __init__(self, source: str, settings: PolarisSettings) -> None:
        self._source = source
        self._page_size = settings.page_size
        self._http = HttpClient(
            source,
            settings.endpoint,
            error_of=error_of,
            sign_in=sign_in(source, settings),
            limits=settings.limits,
            tls=settings.tls,
            connect_timeout=settings.connect_timeout / 1000,
            read_timeout=settings.read_timeout / 1000,
        )

    def close(self) -> None:
        """Harmless twice."""
        self._http.close()

    # Catalogs

    def creations(self) -> dict[str, str]:
        """Read when each catalog was created, by name."""
        answer = self._http.get(_CATALOGS, about="reading when the catalogs were created")
        return {each["name"]: _created(each) for each in answer.fitting(responses.CATALOGS)["catalogs"]}

    def catalogs(self) -> dict[str, Native]:
        """The properties of every catalog, by name."""
        try:
            answer = self._http.get(_CATALOGS, about="listing the catalogs")
        except PermissionDenied as error:
            raise PermissionDenied(
                error.message, hint="name the catalogs in polaris.catalogs, or allow LIST_CATALOGS"
            ) from None
        return {each["name"]: each["properties"] for each in answer.fitting(responses.CATALOGS)["catalogs"]}

    def catalog(self, name: str) -> Native:
        """The properties of a catalog, as everyone who may use it sees them. Raises NamespaceNotFound."""
        answer = self._http.get(
            f"{_ICEBERG}/config", {"warehouse": self._joined(name)}, about=f"reading the catalog {path_key((name,))}"
        )
        defaults: Native = answer.fitting(responses.CONFIG)["defaults"]
        return defaults

    # Namespaces

    def namespaces(self, parent: Path) -> list[str]:
        """The children's own names, of a catalog or namespace, each once, every page of them. Raises NamespaceNotFound."""
        about = f"listing the namespaces of {path_key(parent)}"
        levels = list(parent[1:])
        within = {"parent": self._joined(*levels)} if levels else {}
        names: dict[str, None] = {}
        for answer in self._pages(self._namespaces(parent[0]), within, about, names):
            listed = answer.fitting(responses.NAMESPACES)["namespaces"]
            names.update(dict.fromkeys(_own_name(answer, found, levels) for found in listed))
        return list(names)

    def namespace(self, path: Path) -> Native:
        """A namespace's properties. Raises NamespaceNotFound."""
        return _properties(path, self._http.get(self._namespace(path), about=f"reading the namespace {path_key(path)}"))

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> Native:
        """Its properties as they then are. Raises NamespaceAlreadyExists, and NamespaceNotFound of the parent."""
        self._namespace(path)
        body = {"namespace": list(path[1:]), "properties": dict(properties)}
        about = f"creating the namespace {path_key(path)}"
        return _properties(path, self._http.send("POST", self._namespaces(path[0]), body=body, about=about))

    def alter_namespace(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:
        """Sets and removes properties, one call for both. Raises NamespaceNotFound."""
        body = {"updates": dict(updates), "removals": removals}
        about = f"altering the namespace {path_key(path)}"
        self._http.send("POST", f"{self._namespace(path)}/properties", body=body, about=about)

    def drop_namespace(self, path: Path) -> None:
        """Raises NamespaceNotFound, NamespaceNotEmpty."""
        self._http.send("DELETE", self._namespace(path), about=f"dropping the namespace {path_key(path)}").without_body()

    # Generic tables

    def tables(self, namespace: Path) -> list[str]:
        """The names of all generic tables, Lance or not, each once. Raises NamespaceNotFound."""
        about = f"listing the tables of {path_key(namespace)}"
        levels = list(namespace[1:])
        names: dict[str, None] = {}
        for answer in self._pages(self._tables(namespace), {}, about, names):
            listed = answer.fitting(responses.TABLES)["identifiers"]
            names.update(dict.fromkeys(_own_name(answer, [*each["namespace"], each["name"]], levels) for each in listed))
        return list(names)

    def table(self, path: Path) -> Native:
        """A generic table. Raises TableNotFound, also where its namespace or catalog does not exist."""
        with about_a_table(missing=TableNotFound):
            return _table(path, self._http.get(self._table(path), about=f"reading the table {path_key(path)}"))

    def create_table(self, path: Path, body: Native) -> Native:
        """The table as Polaris then has it. Raises TableAlreadyExists, NamespaceNotFound."""
        self._table(path)
        with about_a_table(missing=NamespaceNotFound):
            about = f"declaring the table {path_key(path)}"
            return _table(path, self._http.send("POST", self._tables(path[:-1]), body=body, about=about))

    def drop_table(self, path: Path) -> None:
        """Removes the entry; Polaris never touches a generic table's data. Raises TableNotFound."""
        with about_a_table(missing=TableNotFound):
            self._http.send("DELETE", self._table(path), about=f"removing the table {path_key(path)}").without_body()

    def grants(self, path: Path) -> list[Native]:
        """The grants on a table itself, each with its catalog role. Raises PermissionDenied to who may not manage access."""
        about = f"listing the grants on {path_key(path)}"
        roles_at = f"{_CATALOGS}/{self._segment(path[0])}/catalog-roles"
        roles = [each["name"] for each in self._http.get(roles_at, about=about).fitting(responses.ROLES)["roles"]]
        found: list[Native] = []
        for role in roles:
            told = self._http.get(f"{roles_at}/{self._segment(role)}/grants", about=about)
            for grant in told.fitting(responses.GRANTS)["grants"]:
                target = (grant.get("type"), grant.get("namespace"), grant.get("tableName"))
                if target == ("table", list(path[1:-1]), path[-1]):
                    found.append({"role": role, **grant})
        return found

    # Addresses and pages

    def _pages(self, address: str, within: Mapping[str, str], about: str, names: Sized) -> Iterator[Answer]:
        """Every page; ``names`` is what the caller has read of them."""
        # A server that pages on its own is followed; ``pageSize`` goes with an empty token at first, as Iceberg's REST API has it.
        token = "" if self._page_size else None
        tokens = PageTokens(f"{self._source}: {about}")
        while True:
            known = len(names)
            answer = self._http.get(address, {**within, "pageSize": self._page_size, "pageToken": token}, about=about)
            yield answer
            token = tokens.following(answer.fields.get("next-page-token"), added=len(names) - known)
            if token is None:
                return

    def _namespaces(self, catalog: str) -> str:
        return f"{_ICEBERG}/{self._segment(catalog)}/namespaces"

    def _namespace(self, path: Path) -> str:
        return f"{self._namespaces(path[0])}/{self._segment(*path[1:])}"

    def _tables(self, namespace: Path) -> str:
        return f"{_GENERIC}/{self._segment(namespace[0])}/namespaces/{self._segment(*namespace[1:])}/generic-tables"

    def _table(self, path: Path) -> str:
        return f"{self._tables(path[:-1])}/{self._segment(path[-1])}"

    def _segment(self, *levels: str) -> str:
        return quote(self._joined(*levels), safe="")

    def _joined(self, *levels: str) -> str:
        """Raises InvalidInput for names that would lead to another object, or that no address can hold."""
        text = _SEPARATOR.join(levels)
        # A separator would lead to a deeper object, dots alone to the one above; lone surrogates are no text.
        odd = any(_UNADDRESSED.search(level) for level in levels)
        if odd or text in (".", ".."):
            raise InvalidInput(f"{self._source}: {path_key(levels)!r} holds a name that no address of Polaris can hold")
        return text


def _created(catalog: Native) -> str:
    created = catalog.get("createTimestamp")
    return f"created {created}" if created else ""


def _properties(path: Path, answer: Answer) -> Native:
    found = answer.fitting(responses.NAMESPACE)
    if found["namespace"] != list(path[1:]):
        raise Internal(f"{answer.about}: the server's response is of {path_key(found['namespace'])}")
    properties: Native = found["properties"]
    return properties


def _table(path: Path, answer: Answer) -> Native:
    table: Native = answer.fitting(responses.TABLE)["table"]
    if table["name"] != path[-1]:
        raise Internal(f"{answer.about}: the server's response is of {table['name']!r}")
    return table


def _own_name(answer: Answer, found: Any, levels: list[str]) -> str:
    """The last of the listed levels, the others being those of the namespace that was listed."""
    if isinstance(found, list) and found[:-1] == levels and found and isinstance(found[-1], str) and found[-1]:
        return found[-1]
    raise Internal(f"{answer.about}: the server lists {found!r}, which is nothing in it")
