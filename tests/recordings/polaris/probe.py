"""Asks a Polaris what the Lance namespace over it needs to know, and tells each call and its answer on one line.

The recordings beside this file are what it said of Apache Polaris 1.4.1, as it comes and with LIST_PAGINATION_ENABLED. Needs a
server without a catalog ``pc`` that takes FILE storage::

    python -m tests.recordings.polaris.probe http://127.0.0.1:8181 --bulk 500
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import requests

ROOT = "file:///data/wh/pol"
_CUT = 700
_BODY_CUT = 158


class Probe:
    """One signed-in session; every call adds its line to ``lines``."""

    def __init__(self, base: str, client: tuple[str, str] = ("root", "s3cr3t")) -> None:
        self.base = base.rstrip("/")
        self.client = client
        self.lines: list[str] = []
        self.session = _session()

    def call(self, method: str, path: str, body: Any = None, *, cut: int = _CUT, **query: Any) -> requests.Response:
        answer = self.quiet(method, path, body, **query)
        sent = json.dumps(body)[:_BODY_CUT] if body else ""
        self.lines.append(f"{method} {path} {query or ''} {sent} -> {answer.status_code} {answer.text[:cut]}")
        return answer

    def quiet(self, method: str, path: str, body: Any = None, **query: Any) -> requests.Response:
        return self.session.request(method, self.base + path, json=body, params=query or None, timeout=30)

    def run(self, bulk: int = 0) -> list[str]:
        """Everything, in the order of the recordings."""
        parts: list[tuple[str, Callable[[], None]]] = [
            ("auth", self.auth), ("catalog", self.catalog), ("namespaces", self.namespaces),
            ("generic tables", self.generic_tables), ("iceberg name clash", self.iceberg_name_clash), ("deletes", self.deletes),
        ]  # fmt: skip
        if bulk:
            parts.append(("bulk", lambda: self.bulk(bulk)))
        for title, part in parts:
            self.lines.append(f"## {title}")
            part()
        return self.lines

    def auth(self) -> None:
        self.call("GET", f"{_CATALOG}/config", warehouse="pc")
        self.session.headers["Authorization"] = "Bearer garbage"
        self.call("GET", f"{_CATALOG}/config", warehouse="pc")
        del self.session.headers["Authorization"]
        refused = self._sign_in("wrong")
        self.lines.append(f"bad secret {refused.status_code} {refused.text[:300]}")
        granted = self._sign_in(self.client[1])
        token = granted.json()
        self.session.headers["Authorization"] = f"Bearer {token['access_token']}"
        shown = {**token, "access_token": f"{token['access_token'][:25]}..."}
        self.lines.append(f"token {granted.status_code} {shown}")

    def catalog(self) -> None:
        wanted = {
            "catalog": {
                "name": "pc",
                "type": "INTERNAL",
                "properties": {"default-base-location": ROOT},
                "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [ROOT]},
            }
        }
        self.call("POST", _CATALOGS, wanted)
        self.call("POST", _CATALOGS, wanted)
        self.call("GET", _CATALOGS)
        self.call("GET", f"{_CATALOG}/config", warehouse="pc", cut=3000)
        self.call("GET", f"{_CATALOG}/config", warehouse="nope")

    def namespaces(self) -> None:
        self.call("POST", _NAMESPACES, {"namespace": ["n1"], "properties": {"owner": "me"}})
        for levels in (["n1"], ["n1", "n2"], ["n1", "n2", "n3"], ["nope", "x"]):
            self.call("POST", _NAMESPACES, {"namespace": levels})
        self.call("GET", _NAMESPACES)
        for parent in ("n1", "n1\x1fn2", "n1.n2", "nope"):
            self.call("GET", _NAMESPACES, parent=parent)
        for name in ("n1%1Fn2", "n1.n2", "nope"):
            self.call("GET", f"{_NAMESPACES}/{name}")
        self.call("HEAD", f"{_NAMESPACES}/n1%1Fn2%1Fn3")
        self.call("GET", f"{_CATALOG}/nocat/namespaces")
        self.call("POST", f"{_NAMESPACES}/n1/properties", {"updates": {"k": "v"}, "removals": []})
        for number in range(5):
            self.quiet("POST", _NAMESPACES, {"namespace": [f"p{number}"]})
        self._pages(_NAMESPACES)
        self.call("GET", _NAMESPACES, pageSize=2, pageToken="garbage")

    def generic_tables(self) -> None:
        self.call("POST", _TABLES, _table("t1", f"{ROOT}/n1/n2/t1"))
        self.call("POST", _TABLES, _table("t1", f"{ROOT}/n1/n2/t1x"))
        self.call("POST", _TABLES, _table("t_noloc"))
        locations = {
            "t_dup": f"{ROOT}/n1/n2/t1", "t_child": f"{ROOT}/n1/n2/t1/sub", "t_outside": "file:///elsewhere/t",
            "t_s3": "s3://b/x", "t_plain": "/data/wh/pol/plain", "t_elsens": f"{ROOT}/zzz/t",
        }  # fmt: skip
        for name, location in locations.items():
            self.call("POST", _TABLES, _table(name, location))
        self.call("POST", _TABLES, {"name": "t_min", "format": "lance"})
        self.call("POST", _TABLES, {"name": "t_nofmt"})
        self.call("POST", _TABLES, _table("we.ird name", f"{ROOT}/n1/n2/w"))
        self.call("POST", f"{_GENERIC}/pc/namespaces/nope/generic-tables", _table("t", f"{ROOT}/q/t"))
        self.call("POST", f"{_GENERIC}/nocat/namespaces/n1/generic-tables", _table("t", f"{ROOT}/q/t"))
        for name in ("t1", "t_noloc", "missing"):
            self.call("GET", f"{_TABLES}/{name}")
        self.call("GET", f"{_GENERIC}/pc/namespaces/nope/generic-tables/t1")
        self.call("GET", _TABLES)
        self.call("GET", f"{_GENERIC}/pc/namespaces/n1/generic-tables")
        self.call("GET", f"{_GENERIC}/pc/namespaces/nope/generic-tables")
        self._pages(_TABLES)
        self.call("GET", f"{_NAMESPACES}/n1%1Fn2/tables")
        self.call("GET", f"{_NAMESPACES}/n1%1Fn2/tables/t1")
        self.call("PUT", f"{_TABLES}/t1", _table("t1"))
        self.call("POST", f"{_TABLES}/t1", _table("t1"))

    def iceberg_name_clash(self) -> None:
        column = {"id": 1, "name": "id", "type": "long", "required": False}
        schema = {"type": "struct", "schema-id": 0, "fields": [column]}
        self.call("POST", f"{_NAMESPACES}/n1%1Fn2/tables", {"name": "t1", "schema": schema}, cut=300)

    def deletes(self) -> None:
        for name in ("n1%1Fn2", "n1", "nope"):
            self.call("DELETE", f"{_NAMESPACES}/{name}")
        self.call("DELETE", f"{_TABLES}/missing")
        self.call("DELETE", f"{_TABLES}/t1")
        self.call("GET", f"{_TABLES}/t1")
        for table in self.quiet("GET", _TABLES).json()["identifiers"]:
            self.quiet("DELETE", f"{_TABLES}/{quote(table['name'], safe='')}")
        for name in ("n1%1Fn2%1Fn3", "n1%1Fn2", "n1"):
            self.call("DELETE", f"{_NAMESPACES}/{name}")
        self.call("DELETE", f"{_CATALOGS}/pc")

    def bulk(self, number: int) -> None:
        tables = f"{_GENERIC}/pc/namespaces/bulk/generic-tables"
        names = [f"t{index:05d}" for index in range(number)]
        self.quiet("POST", _NAMESPACES, {"namespace": ["bulk"]})
        start = time.monotonic()
        status_codes = [self.quiet("POST", tables, _table(name, f"{ROOT}/bulk/{name}")).status_code for name in names]
        took = time.monotonic() - start
        bad = sum(status != 200 for status in status_codes)
        self.lines.append(f"create {number}: {took:.2f}s {took / number * 1e3:.2f} ms each bad={bad} ")
        for size in (None, 10, 100, 1000):
            start = time.monotonic()
            pages = list(self._listing(tables, size))
            took = time.monotonic() - start
            self.lines.append(f"LIST pageSize={size}: n={sum(pages)} pages={len(pages)} {took:.3f}s")
        start = time.monotonic()
        for name in names:
            self.quiet("GET", f"{tables}/{name}").raise_for_status()
        took = time.monotonic() - start
        self.lines.append(f"GET {number}, 1 conn: {took:.2f}s {took / number * 1e3:.2f} ms each")
        start = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda part: self._load_all(tables, names[part::4]), range(4)))
        took = time.monotonic() - start
        self.lines.append(f"GET {number}, 4 conns: {took:.2f}s {number / took:.0f}/s")

    def _sign_in(self, secret: str) -> requests.Response:
        form = {"grant_type": "client_credentials", "client_id": self.client[0], "client_secret": secret}
        return self.session.post(
            f"{self.base}{_CATALOG}/oauth/tokens", data={**form, "scope": "PRINCIPAL_ROLE:ALL"}, timeout=30
        )

    def _pages(self, path: str) -> None:
        first = self.call("GET", path, pageSize=2, pageToken="")
        self.call("GET", path, pageSize=2, pageToken=first.json().get("next-page-token") or "")
        self.call("GET", path, pageSize=2)

    def _listing(self, tables: str, size: int | None) -> Iterator[int]:
        token: str | None = ""
        while token is not None:
            page = self.quiet("GET", tables, **({} if size is None else {"pageSize": size, "pageToken": token})).json()
            yield len(page["identifiers"])
            token = page.get("next-page-token") or None

    def _load_all(self, tables: str, names: list[str]) -> None:
        own = _session()
        own.headers.update(self.session.headers)
        for name in names:
            own.get(f"{self.base}{tables}/{name}", timeout=30).raise_for_status()


_CATALOG = "/api/catalog/v1"
_GENERIC = "/api/catalog/polaris/v1"
_CATALOGS = "/api/management/v1/catalogs"
_NAMESPACES = f"{_CATALOG}/pc/namespaces"
_TABLES = f"{_GENERIC}/pc/namespaces/n1%1Fn2/generic-tables"


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    return session


def _table(name: str, location: str | None = None) -> dict[str, Any]:
    base = {"base-location": location} if location else {}
    return {"name": name, "format": "lance", **base, "doc": "d", "properties": {"table_type": "lance", "k": "v"}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("--bulk", type=int, default=0, help="number of tables to create, list and load")
    parser.add_argument("--client", default="root:s3cr3t", help="id:secret")
    given = parser.parse_args()
    print(*Probe(given.base, tuple(given.client.split(":", 1))).run(given.bulk), sep="\n")
