"""The calls that were recorded, made again against any Unity server: ``python -m tests.recordings.unity.probe URL [--token T]``.

It prints a line to each call, as ``unity-oss-0.6.0.txt`` has them; ``masked`` takes out what differs from run to run. The server
needs no catalog; those that the probe makes, ``c1`` and ``bulk``, are dropped at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests

ROOT = "file:///data/wh"
BULK = 2000
_SHOWN, _SHOWN_ROW = 900, 1200

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\b1\d{12}\b")
_DURATION = re.compile(r"\d+\.\d+ ?(?:s|ms)\b|\d+/s\b")

Json = dict[str, Any]


def masked(line: str) -> str:
    """The line without ids, times of day and durations; counts of pages and rows and the amount of data stay."""
    return _DURATION.sub("DURATION", _TIME.sub("TIME", _ID.sub("ID", line)))


def table(name: str, location: str | None, catalog: str = "c1", schema: str = "s1", **fields: Any) -> Json:
    """The body that declares a Lance table with one column."""
    kind = '{"name":"__placeholder_id","type":"long","nullable":true,"metadata":{}}'
    column = {
        "name": "__placeholder_id", "type_text": "bigint", "type_json": kind, "type_name": "LONG", "type_precision": 0,
        "type_scale": 0, "position": 0, "nullable": True,
    }  # fmt: skip
    return {
        "name": name, "catalog_name": catalog, "schema_name": schema, "table_type": "EXTERNAL", "data_source_format": "TEXT",
        "columns": [column], "properties": {"table_type": "lance", "k": "v"}, "storage_location": location, **fields,
    }  # fmt: skip


class Probe:
    """The calls in their order; ``show`` gets each line."""

    def __init__(self, base: str, show: Callable[[str], None], token: str | None = None) -> None:
        self._base = base.rstrip("/")
        self._show = show
        self._token = token
        self._session = self._new_session()

    def run(self, bulk: int = BULK) -> None:
        for title, part in (
            ("catalogs", self._catalogs),
            ("schemas", self._schemas),
            ("tables", self._tables),
            ("deletes", self._deletes),
        ):
            self._show(f"## {title}")
            part()
        if bulk:
            self._show("## bulk")
            self._bulk(bulk)

    def _catalogs(self) -> None:
        self._call("POST", "/catalogs", {"name": "c1", "comment": "x", "properties": {"a": "b"}, "storage_root": ROOT})
        self._call("POST", "/catalogs", {"name": "c1"})
        for name in ("c1", "missing"):
            self._call("GET", f"/catalogs/{name}")
        self._call("GET", "/catalogs")
        self._call("GET", "/catalogs", max_results=1)

    def _schemas(self) -> None:
        schema = {"name": "s1", "catalog_name": "c1"}
        self._call("POST", "/schemas", {**schema, "comment": "y", "properties": {"p": "q"}})
        self._call("POST", "/schemas", schema)
        self._call("POST", "/schemas", {**schema, "catalog_name": "missing"})
        for full in ("c1.s1", "c1.missing", "missing.s1"):
            self._call("GET", f"/schemas/{full}")
        for catalog in ("c1", "missing"):
            self._call("GET", "/schemas", catalog_name=catalog)
        self._call("GET", "/schemas")

    def _tables(self) -> None:
        for body in (
            table("t1", f"{ROOT}/c1/s1/t1"),
            table("t1", f"{ROOT}/c1/s1/t1b"),
            table("t_noloc", None),
            table("t_dup", f"{ROOT}/c1/s1/t1"),
            table("t_child", f"{ROOT}/c1/s1/t1/sub"),
            table("t_parent", f"{ROOT}/c1/s1"),
            table("t_s3", "s3://bucket/x/t_s3"),
            table("t_plain", "/data/wh/plainpath"),
            table("t_relnofile", f"{ROOT}/not/existing/yet"),
            table("t_nocol", f"{ROOT}/nocol", columns=[]),
            table("t_missingcol", f"{ROOT}/nocol2", columns=None),
            table("t_badfmt", f"{ROOT}/bf", data_source_format="LANCE"),
            table("tm", f"{ROOT}/m", schema="missing"),
            table("tm", f"{ROOT}/m", catalog="missing"),
            table("we-ird.name", f"{ROOT}/we"),
            table("MiXed", f"{ROOT}/mixed"),
        ):
            self._call("POST", "/tables", body)
        for full in ("c1.s1.t1", "c1.s1.T1", "c1.s1.missing", "c1.missing.t1", "missing.s1.t1", "c1.s1"):
            self._call("GET", f"/tables/{full}")
        inside = {"catalog_name": "c1", "schema_name": "s1"}
        self._whole_listing(inside)
        self._call("GET", "/tables", **inside, max_results=1)
        self._call("GET", "/tables", catalog_name="c1", schema_name="missing")
        self._call("GET", "/tables", catalog_name="missing", schema_name="s1")
        self._call("GET", "/tables", catalog_name="c1")
        self._call("GET", "/tables", **inside, max_results=-1)
        response = self._request("GET", "/tables", max_results=0, **inside)
        rows = response.json()
        self._show(f"max_results=0 {response.status_code} {len(rows['tables'])} {rows['next_page_token']}")
        self._call("GET", "/tables", **inside, page_token="zzzzzz")
        self._call("PATCH", "/tables/c1.s1.t1", {"properties": {"x": "y"}})
        self._call("PATCH", "/schemas/c1.s1", {"properties": {"x": "y"}})

    def _whole_listing(self, inside: Json) -> None:
        response = self._request("GET", "/tables", **inside)
        body = response.json()
        first = json.dumps(body["tables"][0])[:_SHOWN_ROW]
        self._show(f"LIST {response.status_code} {len(body['tables'])} keys {sorted(body)} first: {first}")
        for row in body["tables"]:
            self._show(f"    {row['name']} {row['storage_location']} {row['properties']}")

    def _deletes(self) -> None:
        for path in ("/schemas/c1.s1", "/catalogs/c1", "/tables/c1.s1.missing", "/tables/c1.s1.t1"):
            self._call("DELETE", path)
        self._call("GET", "/tables/c1.s1.t1")
        for path in ("/schemas/c1.missing", "/catalogs/missing"):
            self._call("DELETE", path)
        self._call("DELETE", "/schemas/c1.s1", force="true")
        self._call("GET", "/schemas/c1.s1")
        self._call("POST", "/schemas", {"name": "s2", "catalog_name": "c1"})
        self._call("DELETE", "/catalogs/c1")
        self._call("DELETE", "/catalogs/c1", force="true")
        self._call("GET", "/catalogs/c1")

    def _bulk(self, count: int) -> None:
        self._request("POST", "/catalogs", {"name": "bulk", "storage_root": ROOT})
        self._request("POST", "/schemas", {"name": "b", "catalog_name": "bulk"})
        names = [f"t{number:05d}" for number in range(count)]
        start = time.time()
        bodies = (table(name, f"{ROOT}/bulk/{name}", catalog="bulk", schema="b") for name in names)
        bad = sum(self._request("POST", "/tables", body).status_code != 200 for body in bodies)
        took = time.time() - start
        self._show(f"create {count}: {took:.1f}s {took / count * 1e3:.2f} ms each bad={bad}")
        for limit in (None, 10, 50, 100, 1000, 5000):
            self._list_bulk(limit)
        some = names[:1000]
        start = time.time()
        self._get_all(some)
        took = time.time() - start
        self._show(f"GET {len(some)}: {took:.2f}s {took / len(some) * 1e3:.2f} ms each")
        start = time.time()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._get_all, (some[part::4] for part in range(4))))
        took = time.time() - start
        self._show(f"GET {len(some)} 4 conns: {took:.2f}s {len(some) / took:.0f}/s")
        start = time.time()
        dropped = self._request("DELETE", "/schemas/bulk.b", force="true")
        self._show(f"force delete {dropped.status_code} {time.time() - start:.2f}s")
        self._show(str(self._request("DELETE", "/catalogs/bulk", force="true").status_code))

    def _list_bulk(self, limit: int | None) -> None:
        start = time.time()
        pages = [(len(page.json()["tables"]), len(page.content)) for page in self._pages(limit)]
        rows, size = sum(count for count, _ in pages), sum(length for _, length in pages) / 1e6
        took = time.time() - start
        self._show(
            f"LIST max_results={limit}: tables={rows} pages={len(pages)} first_page={pages[0][0]} {size:.2f} MB {took:.2f}s "
            "last_token=None"
        )

    def _pages(self, limit: int | None) -> Iterator[requests.Response]:
        query: Json = {"catalog_name": "bulk", "schema_name": "b"} | ({"max_results": limit} if limit else {})
        while True:
            response = self._request("GET", "/tables", **query)
            yield response
            query["page_token"] = response.json()["next_page_token"]
            if query["page_token"] is None:
                return

    def _get_all(self, names: list[str]) -> None:
        with self._new_session() as session:
            for name in names:
                session.get(f"{self._base}/tables/bulk.b.{name}").raise_for_status()

    def _call(self, method: str, path: str, body: Json | None = None, **query: Any) -> None:
        response = self._request(method, path, body, **query)
        self._show(f"{method} {path} {query or ''} -> {response.status_code} {response.text[:_SHOWN]}")

    def _request(self, method: str, path: str, body: Json | None = None, **query: Any) -> requests.Response:
        return self._session.request(method, self._base + path, json=body, params=query or None, timeout=60)

    def _new_session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        if self._token:
            session.headers["Authorization"] = f"Bearer {self._token}"
        return session


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("base", help="for example http://127.0.0.1:8080/api/2.1/unity-catalog")
    arguments.add_argument("--token")
    arguments.add_argument("--bulk", type=int, default=BULK, help="tables to make; 0 leaves that part out")
    args = arguments.parse_args()
    Probe(args.base, print, args.token).run(args.bulk)


if __name__ == "__main__":
    main()
