"""The calls to Polaris, by path: the Iceberg REST API for namespaces, the Generic Table API, the management API for catalogs.

Paths are ``(catalog, namespace, ..., name)``. The levels of a namespace are joined by the unit separator, ``%1F``: joined by ``.``, as
the Lance spec's text has it, a real server does not find them, and a name may hold dots of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from federator.connector import Internal, InvalidInput, NamespaceNotFound, PermissionDenied, TableNotFound
from federator.model import Path, path_key
from federator_connectors._http.answer import Answer
from federator_connectors._http.client import HttpClient
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

    def catalogs(self) -> dict[str, Native]:
        """The properties of every catalog, by name."""
        try:
            answer = self._http.get(_CATALOGS, about="listing the catalogs")
        except PermissionDenied as error:
            raise PermissionDenied(
                error.message, hint="name the catalogs in polaris.catalogs, or allow LIST_CATALOGS"
            ) from None
        listed = [each if isinstance(each, dict) else {} for each in _entries(answer, "catalogs")]
        return {_own_name(answer, [each.get("name")], []): each.get("properties") or {} for each in listed}

    def catalog(self, name: str) -> Native:
        """The properties of a catalog, as everyone who may use it sees them. Raises NamespaceNotFound."""
        answer = self._http.get(
            f"{_ICEBERG}/config", {"warehouse": self._joined(name)}, about=f"reading the catalog {path_key((name,))}"
        )
        return _object(answer, "defaults")

    # Namespaces

    def namespaces(self, parent: Path) -> list[str]:
        """The children's own names, of a catalog or namespace, each once, every page of them. Raises NamespaceNotFound."""
        about = f"listing the namespaces of {path_key(parent)}"
        levels = list(parent[1:])
        within = {"parent": self._joined(*levels)} if levels else {}
        names: list[str] = []
        for answer in self._pages(self._namespaces(parent[0]), within, about):
            names += [_own_name(answer, found, levels) for found in _entries(answer, "namespaces")]
        return list(dict.fromkeys(names))

    def namespace(self, path: Path) -> Native:
        """A namespace's properties. Raises NamespaceNotFound."""
        return _object(self._http.get(self._namespace(path), about=f"reading the namespace {path_key(path)}"), "properties")

    def create_namespace(self, path: Path, properties: Mapping[str, str]) -> Native:
        """Its properties as they then are. Raises NamespaceAlreadyExists, and NamespaceNotFound of the parent."""
        self._namespace(path)
        body = {"namespace": list(path[1:]), "properties": dict(properties)}
        about = f"creating the namespace {path_key(path)}"
        return _object(self._http.send("POST", self._namespaces(path[0]), body=body, about=about), "properties")

    def alter_namespace(self, path: Path, updates: Mapping[str, str], removals: list[str]) -> None:
        """Sets and removes properties, one call for both. Raises NamespaceNotFound."""
        body = {"updates": dict(updates), "removals": removals}
        about = f"altering the namespace {path_key(path)}"
        self._http.send("POST", f"{self._namespace(path)}/properties", body=body, about=about)

    def drop_namespace(self, path: Path) -> None:
        """Raises NamespaceNotFound, NamespaceNotEmpty."""
        self._http.send("DELETE", self._namespace(path), about=f"dropping the namespace {path_key(path)}")

    # Generic tables

    def tables(self, namespace: Path) -> list[str]:
        """The names of all generic tables, Lance or not, each once. Raises NamespaceNotFound."""
        about = f"listing the tables of {path_key(namespace)}"
        levels = list(namespace[1:])
        names: list[str] = []
        for answer in self._pages(self._tables(namespace), {}, about):
            listed = [each if isinstance(each, dict) else {} for each in _entries(answer, "identifiers")]
            names += [_own_name(answer, [*(each.get("namespace") or []), each.get("name")], levels) for each in listed]
        return list(dict.fromkeys(names))

    def table(self, path: Path) -> Native:
        """A generic table. Raises TableNotFound, also where its namespace or catalog does not exist."""
        with about_a_table(missing=TableNotFound):
            return _object(self._http.get(self._table(path), about=f"reading the table {path_key(path)}"), "table")

    def create_table(self, path: Path, body: Native) -> Native:
        """The table as Polaris then has it. Raises TableAlreadyExists, NamespaceNotFound."""
        self._table(path)
        with about_a_table(missing=NamespaceNotFound):
            about = f"declaring the table {path_key(path)}"
            return _object(self._http.send("POST", self._tables(path[:-1]), body=body, about=about), "table")

    def drop_table(self, path: Path) -> None:
        """Removes the entry; Polaris never touches a generic table's data. Raises TableNotFound."""
        with about_a_table(missing=TableNotFound):
            self._http.send("DELETE", self._table(path), about=f"removing the table {path_key(path)}")

    def grants(self, path: Path) -> list[Native]:
        """The grants on a table itself, each with its catalog role. Raises PermissionDenied to who may not manage access."""
        about = f"listing the grants on {path_key(path)}"
        roles_at = f"{_CATALOGS}/{self._segment(path[0])}/catalog-roles"
        answer = self._http.get(roles_at, about=about)
        listed = [each if isinstance(each, dict) else {} for each in _entries(answer, "roles")]
        found: list[Native] = []
        for role in [_own_name(answer, [each.get("name")], []) for each in listed]:
            told = self._http.get(f"{roles_at}/{self._segment(role)}/grants", about=about)
            for grant in _entries(told, "grants"):
                if not isinstance(grant, dict):
                    raise Internal(f"{told.about}: {grant!r} is no grant")
                target = (grant.get("type"), grant.get("namespace"), grant.get("tableName"))
                if target == ("table", list(path[1:-1]), path[-1]):
                    found.append({"role": role, **grant})
        return found

    # Addresses and pages

    def _pages(self, address: str, within: Mapping[str, str], about: str) -> Iterator[Answer]:
        # A server that pages on its own is followed; ``pageSize`` goes with an empty token at first, as Iceberg's REST API has it.
        token = "" if self._page_size else None
        seen: set[str] = set()
        while True:
            answer = self._http.get(address, {**within, "pageSize": self._page_size, "pageToken": token}, about=about)
            yield answer
            token = answer.fields.get("next-page-token")
            if not token:
                return
            if token in seen:
                raise Internal(f"{answer.about}: the server gave the same page token twice")
            seen.add(token)

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


def _entries(answer: Answer, key: str) -> list[Any]:
    found = answer.fields.get(key)
    if not isinstance(found, list):
        raise Internal(f"{answer.about}: the server's answer has no list {key!r}: {answer.excerpt}")
    return found


def _object(answer: Answer, key: str) -> Native:
    found = answer.fields.get(key)
    if not isinstance(found, dict):
        raise Internal(f"{answer.about}: the server's answer has no object {key!r}: {answer.excerpt}")
    return found


def _own_name(answer: Answer, found: Any, levels: list[str]) -> str:
    """The last of the listed levels, the others being those of the namespace that was listed."""
    if isinstance(found, list) and found[:-1] == levels and found and isinstance(found[-1], str) and found[-1]:
        return found[-1]
    raise Internal(f"{answer.about}: the server lists {found!r}, which is nothing in it")
