"""What is asked: every route of the OpenAPI document and of the Lance protocols, with everything that could be asked for."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import APIRoute

from federator.api.lance import general_spec, namespaces, table_metadata, table_read, table_write, tables, unsupported
from federator.model import parse_path_key
from federator.model.scopes import Scopes
from tests.unit.api.test_access_hidden import IDS, LANCE, LOCATIONS, WORDS, iter_urls
from tests.unit.api.test_access_hidden import READS as READS
from tests.unit.api.worlds import RUN_BOTH, RUN_HIDDEN, RUN_SEEN

_MODULES = (namespaces, tables, table_read, table_metadata, table_write, unsupported)
_BODIES: dict[str, list[dict[str, Any]]] = {
    "/api/v1/runs": [
        {"kind": "crawl", "sources": ["vault"]}, {"kind": "crawl", "sources": ["nope"]}, {"kind": "sync", "mirrors": ["hidden"]},
        {"kind": "sync", "mirrors": ["half"]}, {"kind": "sync", "mirrors": ["nope"]}, {"kind": "apply", "plans": ["0" * 64]},
        {"kind": "verify", "tables": ["vault$s$orders"]}, {"kind": "verify", "tables": ["lake$payroll$nope"]},
    ],
    "/api/v1/reports": [{"report": "none"}],
    "/api/v1/tokens": [{"name": "fuzz", "scopes": ["vault"]}],
    "/api/v1/declarations": [
        {"places": ["s3://lake/payroll/salaries.lance"], "into": ["vault"]}, {"places": ["s3://lake/new.lance"], "into": ["nope"]},
    ],
}  # fmt: skip
_NAMES = (
    "lake",
    "copy",
    "spare",
    "vault",
    "nope",
    "open",
    "hidden",
    "half",
    "sales",
    "payroll",
    "orders",
    "s",
    "crawl:vault",
    "sync:half",
)
VALUES = (
    *IDS, *LOCATIONS, *WORDS, *_NAMES, RUN_SEEN, RUN_BOTH, RUN_HIDDEN, "run-1", "run-2", "1", "2", "3", "0", "-1", "999", "true",
    "false",
    "1970-01-02", "merged", "valid", "duplicate", "missing", "held", "*", "", "%", "é", "a" * 300, "lake$payroll$", "$", "LAKE",
)  # fmt: skip


@dataclass(frozen=True)
class Probe:
    """A request. ``changes``: it may change what later ones get, so it is sent last."""

    method: str
    url: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    changes: bool = False


def fixed(app: FastAPI, scopes: Scopes, plans: Mapping[str, str]) -> Iterator[Probe]:
    """Every route with all ids of the world, visible, hidden and absent. Writes go only where the scopes do not reach."""
    for read in READS:
        yield from (Probe("GET", url) for url in iter_urls(read, dict(plans)))
    keys = ["$", *(key for key in IDS if key and "%" not in key)]
    for method, template, body in LANCE:
        yield from (Probe(method, template.format(quote(key, safe="")), body) for key in keys)
    outside = [key for key in keys if key != "$" and not scopes.covers(parse_path_key(key))]
    for module in _MODULES:
        for route in (route for route in module.router.routes if isinstance(route, APIRoute)):
            for method in sorted(route.methods or ()):
                for key in outside:
                    yield Probe(
                        method, route.path.replace("{id}", quote(key, safe="")), {} if method == "POST" else None, changes=True
                    )
    for path in sorted(route.path for route in general_spec.router.routes if isinstance(route, APIRoute)):
        for key in outside:
            *above, name = parse_path_key(key)
            body = {
                "name": name,
                "parent": above,
                "namespace": above,
                "location": "s3://lake/new.lance",
                "schema": {"fields": []},
            }
            yield Probe("POST", path, body, changes=True)
    yield from _own_writes(app, plans)


def _own_writes(app: FastAPI, plans: Mapping[str, str]) -> Iterator[Probe]:
    values = {
        "{digest}": [plans["hidden"], plans["half"], "0" * 64], "{name}": ["crawl:vault", "sync:hidden", "sync:half", "crawl:nope"],
        "{id}": [RUN_HIDDEN, "nope"], "{number}": ["1", "999999"],
    }  # fmt: skip
    for path, operations in app.openapi()["paths"].items():
        for method in sorted(set(operations) & {"post", "put", "delete"}):
            parameter = next(iter(re.findall(r"\{[^}]+\}", path)), "")
            for value in values.get(parameter, [""]):
                for body in _BODIES.get(path, [{}]):
                    headers = {"If-Match": f'"{value}"'}
                    yield Probe(method.upper(), path.replace(parameter, quote(value, safe="")), body, headers, changes=True)


def drawn(app: FastAPI, number: int, rng: random.Random, cursors: list[str]) -> Iterator[Probe]:
    """Random reads: any route, any of its parameters, any value, and cursors that other principals were given."""
    document = app.openapi()["paths"]
    # The stream of events ends only if it is asked to, as in READS.
    reads = [
        (path, methods["get"]) for path, methods in sorted(document.items()) if "get" in methods and path != "/api/v1/events"
    ]
    for _ in range(number):
        path, operation = rng.choice(reads)
        url = re.sub(r"\{[^}]+\}", lambda _: quote(rng.choice(VALUES) or "x", safe=""), path)
        parameters = [item["name"] for item in operation.get("parameters", ()) if item["in"] == "query"]
        chosen = rng.sample(parameters, min(len(parameters), rng.randrange(4)))
        pairs = [(name, rng.choice(cursors) if name == "cursor" and cursors else rng.choice(VALUES)) for name in chosen]
        yield Probe("GET", url + ("?" if pairs else "") + "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs))
