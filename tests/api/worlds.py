"""Two worlds that look the same to who may see a part of them: one has that part alone, the other has more beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from sqlalchemy import insert, update

from federator.api.app import create_app
from federator.index import Index, coverage, datasets, plans, requests, revisions, tokens
from federator.index import tables as t
from federator.index.leases import hold
from federator.model import ROOT, Coverage, Record, failed
from federator.model.scopes import Scopes
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from federator.settings import Settings
from tests.api.conftest import Api
from tests.integration.index_support import fill, namespace, table

#: what the callers of both worlds may see
SEEN = Scopes.parse(["lake$sales", "copy", "spare"])
#: every name of what only the richer world has contains one of these
HIDDEN = ("vault", "payroll", "salesx", "Sales", "sale$", "secret")
RUN_SEEN, RUN_BOTH, RUN_HIDDEN = "00000000001-aaaaaaaa", "00000000002-bbbbbbbb", "00000000003-cccccccc"
ORDERS = "s3://lake/sales/orders.lance"


def settings(settings_of: Callable[..., Settings], *, rich: bool) -> Settings:
    memory = {"impl": "federator.testing:CONNECTOR"}
    sources = {name: {**memory, "store": f"worlds-{name}", "schedule": "@every 1h"} for name in ("lake", "copy", "spare")}
    mirrors: dict[str, Any] = {"open": {"from": "copy", "to": "spare", "schedule": "@every 1h"}}
    if rich:
        sources["vault"] = {**memory, "store": "worlds-vault", "schedule": "@every 1h"}
        mirrors["hidden"] = {"from": "vault", "to": "copy", "schedule": "@every 1h"}
        mirrors["half"] = {"from": "lake", "to": "copy", "schedule": "@every 1h"}
    return settings_of(sources=sources, mirrors=mirrors, serve={"auth": "required"})


def build(index: Index, *, rich: bool) -> dict[str, str]:
    """Fills an index; returns the digests of plans by mirror. What both worlds have is the same to the byte."""
    orders = table("lake", "sales", "orders", schema='[{"name":"id","type":"bigint"}]', owner="anna", properties={"team": "eu"})
    lake: list[Record] = [
        namespace("lake", "sales"),
        namespace("lake", "sales", "eu"),
        orders,
        table("lake", "sales", "eu", "items"),
    ]
    twins: list[Record] = [table("lake", "sales", "Twin"), table("lake", "sales", "twin", location=f"{ORDERS}/_in/t.lance")]
    copy: list[Record] = [namespace("copy", "s"), table("copy", "s", "orders", location="s3a://lake/sales/orders.lance/")]
    hidden: list[Record] = [
        namespace("lake", "payroll"), table("lake", "payroll", "salaries"),
        table("lake", "payroll", "orders", location=ORDERS, doc="secret"),
        namespace("lake", "salesx"), table("lake", "salesx", "orders", location=f"{ORDERS}/secret/y.lance"),
        namespace("lake", "Sales"), table("lake", "Sales", "orders"), namespace("lake", "sale"), table("lake", "sale", "secret$sales"),
        table("lake", "secret", location="s3://lake/sales"),
    ]  # fmt: skip
    fill(index, "lake", *lake, *twins, *(hidden if rich else []))
    fill(index, "copy", *copy)
    fill(index, "spare", namespace("spare", "s"), table("spare", "s", "orders", location="s3://spare/orders.lance"))
    _cover(index, rich=rich)
    if rich:
        fill(index, "vault", namespace("vault", "s"), table("vault", "s", "orders", location=ORDERS, owner="secret"))
    found = {"open": _plan(index, "open")}
    with index.write() as connection:
        _verify(connection, rich=rich)
        _entries(connection, "open", ("copy", "s$orders"), ("spare", "s$orders"))
        _drift(connection, "dangling_mirror", "spare$s$orders", "copy$s$orders")
        _drift(connection, "name_clash", "lake$sales$Twin", "lake$sales$twin", f"{3 if rich else 2} names that differ in case")
        _runs(connection, rich=rich)
        requests.add(connection, "crawl", {"sources": ["copy"]}, actor="ops")
        if rich:
            _entries(connection, "hidden", ("vault", "s$orders"), ("copy", "s$orders"))
            _entries(connection, "half", ("lake", "sales$orders"), ("vault", "s$orders"))
            for kind, subject, other in (
                ("duplicate", "lake$sales$orders", "lake$payroll$orders"), ("duplicate", "lake$salesx$orders", "lake$sales$orders"),
                ("dangling_mirror", "copy$s$orders", "vault$s$orders"), ("missing", "vault$s$orders", ORDERS),
            ):  # fmt: skip
                _drift(connection, kind, subject, other)
            requests.add(connection, "crawl", {"sources": ["vault"]}, actor="ops")
            requests.add(connection, "crawl", {}, actor="ops")
    if rich:
        found |= {mirror: _plan(index, mirror) for mirror in ("hidden", "half")}
    with index.write() as connection:
        connection.execute(update(t.source).values(crawled_at=10.0, published_at=11.0))
        connection.execute(update(t.revision).values(read_began_at=9.0, published_at=11.0))
        connection.execute(update(t.plan).values(created_at=12.0))
        connection.execute(update(t.request).values(created_at=13.0))
        connection.execute(update(t.ledger).values(updated_at=14.0))
    return found


def api(index: Index, settings: Settings, role: str = "viewer", scopes: Scopes = SEEN) -> Api:
    """The app, asked by a caller of that role."""
    return as_caller(create_app(settings), index, role, scopes, role)


def as_caller(app: FastAPI, index: Index, role: str, scopes: Scopes, name: str) -> Api:
    """An app, asked with a new token of that name."""
    secret, _ = tokens.create(index, name, role=role, scopes=scopes, lifetime=3600, actor="tests")
    return Api(app, headers={"Authorization": f"Bearer {secret}"})


def _cover(index: Index, *, rich: bool) -> None:
    """A second revision of ``lake``: a namespace failed where nobody of us looks."""
    denied = failed(15, "secret: denied")
    with hold(index, "source:lake") as lease:
        draft = revisions.begin(index, lease, "lake", "run-2", 0.0)
        with index.write() as connection:
            more = [Coverage("lake", ("payroll",), denied, denied)] if rich else []
            coverage.write(connection, draft, [Coverage("lake", ROOT), Coverage("lake", ("sales",)), *more], {})
        values = {"state": "partial", "message": "payroll: denied"} if rich else {"state": "ok", "message": None}
        revisions.publish(index, lease, draft, added=0, changed=0, removed=0, values=values)


def _verify(connection: Any, *, rich: bool) -> None:
    checked = {
        "canonical": ORDERS, "location": ORDERS, "state": "valid", "message": None, "version": 3, "rows": 10, "fragments": 1,
        "schema": "[]", "checked_at": 1.5, "checked_through": "lake", "size": 1, "indices": 0, "fingerprint": "f", "format": "2.1",
        "changed_at": 1.0,
    }  # fmt: skip
    datasets.save(connection, [checked])
    if rich:
        datasets.save(
            connection,
            [{**checked, "canonical": "s3://lake/payroll/salaries.lance", "location": "s3://lake/payroll/salaries.lance"}],
        )


def _entries(connection: Any, mirror: str, origin: tuple[str, str], target: tuple[str, str]) -> None:
    row = {
        "mirror": mirror, "origin_source": origin[0], "origin_path": origin[1], "target_source": target[0], "target_path": target[1],
        "is_table": 1, "op_id": "o", "run_id": RUN_SEEN, "updated_at": 1.0,
    }  # fmt: skip
    connection.execute(insert(t.ledger), [row])


def _drift(connection: Any, kind: str, subject: str, other: str, detail: str = "d") -> None:
    row = {
        "kind": kind, "subject": subject, "other": other, "severity": "high", "source": subject.partition("$")[0], "detail": detail,
        "first_seen": 1.0, "last_seen": 2.0,
    }  # fmt: skip
    connection.execute(insert(t.drift), [row])


def _runs(connection: Any, *, rich: bool) -> None:
    def run(key: str, state: str, summary: dict[str, Any], sources: dict[str, str], targets: list[tuple[str, str]]) -> None:
        row = {
            "id": key, "kind": "sync", "state": state, "trigger": "api", "actor": "ops", "started_at": 1.0, "finished_at": 2.0,
            "summary": json.dumps(summary), "error": None,
        }  # fmt: skip
        connection.execute(insert(t.run), [row])
        for source, ended in sources.items():
            connection.execute(insert(t.run_source), [{"run_id": key, "source": source, "state": ended}])
        for number, (mirror, target) in enumerate(targets):
            source, _, path = target.partition("$")
            line = {
                "op_id": f"{key}-{number}", "run_id": key, "plan": "p", "mirror": mirror, "seq": number, "action": "declare_table",
                "target_source": source, "target_path": path, "origin_path": "s$orders", "change": '{"reason": "missing"}',
                "state": "done", "intent_at": 1.0,
            }  # fmt: skip
            connection.execute(insert(t.journal), [line])

    run(RUN_SEEN, "ok", {}, {"copy": "ok"}, [("open", "spare$s$orders")])
    run(RUN_BOTH, "failed" if rich else "ok", {"n": int(rich)}, {"copy": "ok", **({"vault": "failed", "lake": "ok"} if rich else {})},
        [("open", "spare$s$orders"), *([("half", "vault$s$orders"), ("half", "lake$payroll$orders")] if rich else [])])  # fmt: skip
    if rich:
        run(RUN_HIDDEN, "ok", {}, {"vault": "ok", "lake": "ok"}, [("half", "vault$s$orders")])


def _plan(index: Index, mirror: str) -> str:
    plan = Plan(mirror, "d", 1, 1, holds=(Hold("max_delete_percent", "too much"),))
    with index.write() as connection:
        plans.save(
            connection, digest=plan.digest, mirror=mirror, run_id=RUN_SEEN, state="held", body=json.dumps(plan.to_json())
        )
    return plan.digest


__all__ = ["HIDDEN", "ORDERS", "RUN_BOTH", "RUN_HIDDEN", "RUN_SEEN", "SEEN", "api", "as_caller", "build", "settings"]
