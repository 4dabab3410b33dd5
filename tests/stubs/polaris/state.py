"""What a Polaris holds: catalogs, nested namespaces, generic tables. Ids grow, and listings are in their order."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.stubs.polaris.answers import ENDPOINTS, Answer, Refusal, dotted, no_namespace, no_table
from tests.stubs.polaris.pages import page

Levels = tuple[str, ...]
_BASE = "default-base-location"
# ReservedProperties.prefixes of 1.4.1
_RESERVED = "polaris."

_NO_FILE = re.compile(r"""[ \\\[\]{}|"<>^`]""")
_NOT_SINCE_1_6 = re.compile(r"[:#*+]")

# What PolarisAdminService of 1.4.1 grants to whoever made a catalog
_ADMINISTRATION = (
    {"type": "catalog", "privilege": "CATALOG_MANAGE_ACCESS"},
    {"type": "catalog", "privilege": "CATALOG_MANAGE_METADATA"},
)


@dataclass
class _Namespace:
    id: int
    properties: dict[str, str]
    tables: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    #: what Iceberg tables and views hold: ``table`` or ``view`` by name
    iceberg: dict[str, str] = field(default_factory=dict)


@dataclass
class _Catalog:
    shown: dict[str, Any]
    namespaces: dict[Levels, _Namespace] = field(default_factory=dict)
    #: by catalog role; a new catalog has the one of its administrators
    grants: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"catalog_admin": [*_ADMINISTRATION]})

    def inside(self, levels: Levels) -> list[tuple[int, Levels]]:
        depth = len(levels) + 1
        return [(ns.id, name) for name, ns in self.namespaces.items() if len(name) == depth and name[:-1] == levels]


class State:
    """One server's entities. Every method is one request, made under one lock, and raises Refusal."""

    def __init__(self, *, paging: bool = False, version: tuple[int, int] = (1, 4)) -> None:
        self.version = version
        self._paging = paging
        #: no version that was seen does
        self.lists_generic_grants = False
        self._catalogs: dict[str, _Catalog] = {}
        self._ids = count(1)
        self.lock = threading.RLock()

    # Catalogs

    def create_catalog(self, body: Mapping[str, Any]) -> Answer:
        given = body["catalog"]
        name = given["name"]
        if name in self._catalogs:
            message = f"Cannot create Catalog {name}. Catalog already exists or resolution failed"
            raise Refusal(409, "AlreadyExistsException", message)
        shown = {
            "type": given["type"], "name": name, "properties": given["properties"],
            "createTimestamp": int(time.time() * 1000), "lastUpdateTimestamp": 0, "entityVersion": 1,
            "storageConfigInfo": given["storageConfigInfo"],
        }  # fmt: skip
        self._catalogs[name] = _Catalog({**shown, "lastUpdateTimestamp": shown["createTimestamp"]})
        return Answer(201, shown)

    def list_catalogs(self) -> Answer:
        return Answer(200, {"catalogs": [catalog.shown for catalog in self._catalogs.values()]})

    def drop_catalog(self, name: str) -> Answer:
        catalog = self._catalogs.get(name)
        if catalog is None:
            raise Refusal(404, "NotFoundException", f"Catalog {name} not found")
        if catalog.namespaces:
            raise Refusal(400, "BadRequestException", f"Catalog '{name}' cannot be dropped, it is not empty")
        del self._catalogs[name]
        return Answer(204)

    def config(self, warehouse: str | None) -> Answer:
        if warehouse is None:
            raise Refusal(400, "BadRequestException", "Please specify a warehouse")
        catalog = self._catalogs.get(warehouse)
        if catalog is None:
            raise Refusal(404, "NotFoundException", f"Unable to find warehouse {warehouse}")
        defaults = catalog.shown["properties"]
        return Answer(200, {"defaults": defaults, "overrides": {"prefix": warehouse}, "endpoints": ENDPOINTS})

    # Catalog roles and grants, by the models of the management API

    def list_roles(self, name: str) -> Answer:
        return Answer(200, {"roles": [{"name": role, "properties": {}} for role in self._catalogs[name].grants]})

    def list_grants(self, name: str, role: str) -> Answer:
        grants = self._catalogs[name].grants[role]
        if not self.lists_generic_grants and any(self._is_generic(name, grant) for grant in grants):
            # Seen of 1.4.1 and 1.7.0; the type is not recorded.
            raise Refusal(500, "RuntimeException", "Invalid entity sub type: GENERIC_TABLE")
        return Answer(200, {"grants": grants})

    def _is_generic(self, name: str, grant: Mapping[str, Any]) -> bool:
        namespace = self._catalogs[name].namespaces.get(tuple(grant.get("namespace", ())))
        return grant["type"] == "table" and namespace is not None and grant["tableName"] in namespace.tables

    def add_grant(self, name: str, role: str, grant: Mapping[str, Any]) -> None:
        self._catalogs[name].grants.setdefault(role, []).append(dict(grant))

    def remove_grants(self, name: str, role: str) -> None:
        self._catalogs[name].grants[role].clear()

    # Namespaces

    def create_namespace(self, prefix: str, body: Mapping[str, Any]) -> Answer:
        levels, given = tuple(body["namespace"]), dict(body.get("properties") or {})
        _refuse_reserved(given)
        self._refuse_name(levels[-1])
        catalog = self._catalogs.get(prefix)
        if catalog and catalog.shown["storageConfigInfo"]["storageType"] == "FILE" and _NO_FILE.search(levels[-1]):
            # Seen of 1.4.1; generic tables of such names are recorded as accepted. The text is not recorded.
            raise Refusal(400, "IllegalArgumentException", f"Illegal character in path: {levels[-1]}")
        above = self._location(prefix, levels[:-1])
        if levels in self._catalogs[prefix].namespaces:
            message = f"Cannot create namespace {dotted(levels)}. Namespace already exists"
            raise Refusal(409, "AlreadyExistsException", message)
        location = given.pop("location", f"{above}/{levels[-1]}").rstrip("/") + "/"
        made = _Namespace(next(self._ids), {**given, "location": location})
        self._catalogs[prefix].namespaces[levels] = made
        return Answer(200, {"namespace": levels, "properties": made.properties})

    def list_namespaces(self, prefix: str, parent: Levels, query: Mapping[str, str]) -> Answer:
        self._location(prefix, parent)
        names, token = page(self._catalogs[prefix].inside(parent), query if self._paging else {})
        return Answer(200, {"namespaces": names, "next-page-token": token})

    def load_namespace(self, prefix: str, levels: Levels) -> Answer:
        return Answer(200, {"namespace": levels, "properties": self._namespace(prefix, levels).properties})

    def namespace_exists(self, prefix: str, levels: Levels) -> Answer:
        self._namespace(prefix, levels)
        return Answer(204)

    def update_namespace(self, prefix: str, levels: Levels, body: Mapping[str, Any]) -> Answer:
        properties, removals = self._namespace(prefix, levels).properties, body["removals"]
        if body["updates"] and removals:
            # Seen of 1.4.1 and 1.7.0: the updates stay, the removals do not. The text is not recorded.
            properties.update(body["updates"])
            raise Refusal(409, "CommitConflictException", f"Concurrent modification of namespace: {dotted(levels)}")
        missing = [key for key in removals if key not in properties]
        removed = [key for key in removals if properties.pop(key, None) is not None]
        properties.update(body["updates"])
        return Answer(200, {"removed": removed, "updated": list(body["updates"]), "missing": missing})

    def drop_namespace(self, prefix: str, levels: Levels) -> Answer:
        namespace = self._namespace(prefix, levels)
        if namespace.tables or namespace.iceberg or self._catalogs[prefix].inside(levels):
            raise Refusal(409, "NamespaceNotEmptyException", f"Namespace {dotted(levels)} is not empty")
        del self._catalogs[prefix].namespaces[levels]
        return Answer(204)

    # Generic tables

    def create_table(self, prefix: str, levels: Levels, body: Mapping[str, Any]) -> Answer:
        if not body.get("name") or not body.get("format"):
            raise Refusal(400)
        name, properties = body["name"], dict(body.get("properties") or {})
        _refuse_reserved(properties)
        self._refuse_name(name)
        namespace = self._namespace(prefix, levels)
        tables = namespace.tables
        if name in tables or name in namespace.iceberg:
            raise Refusal(409, "AlreadyExistsException", f"Generic table already exists: {dotted((*levels, name))}")
        table = {
            "name": name, "format": body["format"], "base-location": body.get("base-location"), "doc": body.get("doc"),
            "properties": dict(sorted(properties.items())),
        }  # fmt: skip
        tables[name] = (next(self._ids), table)
        return Answer(200, {"table": table, "storage-access-configs": []})

    def list_tables(self, prefix: str, levels: Levels) -> Answer:
        """Never in pages."""
        names = [{"namespace": levels, "name": name} for name in self._namespace(prefix, levels).tables]
        return Answer(200, {"next-page-token": None, "identifiers": names})

    def load_table(self, prefix: str, levels: Levels, name: str) -> Answer:
        """A namespace that does not exist is a table that does not exist."""
        return Answer(200, {"table": self._table(prefix, levels, name), "storage-access-configs": []})

    def drop_table(self, prefix: str, levels: Levels, name: str) -> Answer:
        # By the source: a missing namespace is told here.
        tables = self._namespace(prefix, levels).tables
        if tables.pop(name, None) is None:
            raise no_table(levels, name)
        return Answer(204)

    # Iceberg tables, as far as they meet generic ones

    def names(self, prefix: str, levels: Levels) -> list[str]:
        """The generic tables of a namespace."""
        return list(self._namespace(prefix, levels).tables)

    def add_iceberg(self, prefix: str, levels: Levels, name: str, kind: str) -> None:
        """An Iceberg ``table`` or ``view`` that holds a name."""
        self._namespace(prefix, levels).iceberg[name] = kind

    def remove_iceberg(self, prefix: str, levels: Levels, name: str) -> None:
        del self._namespace(prefix, levels).iceberg[name]

    def iceberg_exists(self, prefix: str, levels: Levels, name: str, kind: str) -> Answer:
        """By Iceberg's REST API."""
        if self._namespace(prefix, levels).iceberg.get(name) != kind:
            raise Refusal(404)
        return Answer(204)

    def list_iceberg(self, prefix: str, levels: Levels) -> Answer:
        self._namespace(prefix, levels)
        return Answer(200, {"identifiers": [], "next-page-token": None})

    def load_iceberg(self, prefix: str, levels: Levels, name: str) -> Answer:
        raise no_table(levels, name, "Table")

    def create_iceberg(self, prefix: str, levels: Levels, body: Mapping[str, Any]) -> Answer:
        namespace = self._namespace(prefix, levels)
        wanted = namespace.properties["location"] + body["name"]
        for _, table in namespace.tables.values():
            if table["base-location"] == wanted:
                conflict = f"it conflicts with existing table or namespace at location '{wanted}'"
                raise Refusal(403, "ForbiddenException", f"Unable to create table at location '{wanted}' because {conflict}")
        raise Refusal(501, "NotRecorded", "this stub holds no Iceberg tables")

    # What they share

    def _refuse_name(self, name: str) -> None:
        """Seen of 1.5 and 1.6 and later; the text is not recorded."""
        if (self.version >= (1, 5) and ("/" in name or name != name.strip())) or (
            self.version >= (1, 6) and _NOT_SINCE_1_6.search(name)
        ):
            raise Refusal(400, "BadRequestException", f"Invalid name: {name}")

    def _location(self, prefix: str, levels: Levels) -> str:
        """Of a catalog or namespace, without a slash at its end. A missing catalog is a missing namespace."""
        if not levels and prefix in self._catalogs:
            return str(self._catalogs[prefix].shown["properties"][_BASE]).rstrip("/")
        return self._namespace(prefix, levels).properties["location"].rstrip("/")

    def _namespace(self, prefix: str, levels: Levels) -> _Namespace:
        catalog = self._catalogs.get(prefix)
        if catalog is None or levels not in catalog.namespaces:
            raise no_namespace(levels)
        return catalog.namespaces[levels]

    def _table(self, prefix: str, levels: Levels, name: str) -> dict[str, Any]:
        catalog = self._catalogs.get(prefix)
        namespace = catalog.namespaces.get(levels) if catalog else None
        if namespace is None or name not in namespace.tables:
            raise no_table(levels, name)
        return namespace.tables[name][1]


def _refuse_reserved(properties: Mapping[str, str]) -> None:
    for key in properties:
        if key.startswith(_RESERVED):
            message = f"Property '{key}' matches reserved prefix '{_RESERVED}'"
            raise Refusal(400, "IllegalArgumentException", message)
