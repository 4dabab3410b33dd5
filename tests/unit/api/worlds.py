"""Indexes that look the same to a principal: one has everything, and one only what the principal's scopes cover."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import insert, update

from federator.api.app import create_app
from federator.model import ROOT, Coverage, Record, TableRecord, failed_evidence, parse_path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.planning.changes import Action, Change
from federator.planning.holds import Hold
from federator.planning.plan import Plan
from federator.settings import Settings
from federator.store import Index, coverage, plans, requests, revisions, tokens, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from federator.worker.runner import RequestRunner
from tests.fixtures.index_content import fill, namespace, record_change, table
from tests.unit.api import linked_tables
from tests.unit.api.conftest import Api

#: what the callers of both worlds may see
SEEN = Scopes.parse(["lake$sales", "copy", "spare"])
MIRRORS = {"open": ("copy", "spare"), "hidden": ("vault", "copy"), "half": ("lake", "copy")}
#: every name of what only the richer world has contains one of these
HIDDEN = ("vault", "payroll", "salesx", "Sales", "sale$", "secret")
RUN_SEEN, RUN_BOTH, RUN_HIDDEN = "00000000001-aaaaaaaa", "00000000002-bbbbbbbb", "00000000003-cccccccc"
ORDERS = "s3://lake/sales/orders.lance"
#: digest of a plan of which ``SEEN`` covers a part
IN_PART = "9" * 64


def settings(settings_of: Callable[..., Settings], *, visible: Scopes = EVERYTHING, **more: Any) -> Settings:
    sources = {
        name: {
            "impl": "federator.testing:CONNECTOR",
            "store": f"worlds-{name}",
            "schedule": "@every 1h",
            "data_operations": False,
        }
        for name in ("lake", "copy", "spare", "vault")
        if visible.is_visible((name,))
    }
    mirrors = {
        name: {"from": origin, "to": target, "schedule": "@every 1h"}
        for name, (origin, target) in MIRRORS.items()
        if visible.is_visible((origin,)) and visible.is_visible((target,))
    }
    return settings_of(sources=sources, mirrors=mirrors, serve={"auth": "required", **more})


def build(index: Index, *, visible: Scopes = EVERYTHING, disk: Path | None = None) -> dict[str, str]:
    """Fills an index with what the scopes cover; returns the digests of plans by mirror. What two worlds have in common is the same to
    the byte. With ``disk``, tables that refer to others are written there, and verified."""
    orders = table("lake", "sales", "orders", schema='[{"name":"id","type":"bigint"}]', owner="anna", properties={"team": "eu"})
    lake: list[Record] = [
        namespace("lake", "sales"),
        namespace("lake", "sales", "eu"),
        orders,
        table("lake", "sales", "eu", "items"),
    ]
    same_names: list[Record] = [
        table("lake", "sales", "Twin"),
        table("lake", "sales", "twin", location=f"{ORDERS}/_in/t.lance"),
    ]
    copy: list[Record] = [namespace("copy", "s"), table("copy", "s", "orders", location="s3a://lake/sales/orders.lance/")]
    hidden: list[Record] = [
        namespace("lake", "payroll"), table("lake", "payroll", "salaries"),
        table("lake", "payroll", "orders", location=ORDERS, doc="secret"),
        namespace("lake", "salesx"), table("lake", "salesx", "orders", location=f"{ORDERS}/secret/y.lance"),
        namespace("lake", "Sales"), table("lake", "Sales", "orders"), namespace("lake", "sale"), table("lake", "sale", "secret$sales"),
        table("lake", "secret", location="s3://lake/sales"),
    ]  # fmt: skip
    with index.write() as connection:
        # The root of the Lance protocol shows it.
        connection.execute(update(t.deployment).where(t.deployment.c.key == "fingerprint").values(value="f" * 32))
    part = _VisiblePart(visible)
    for source, objects in (
        ("lake", [*lake, *same_names, *hidden]), ("copy", copy),
        ("spare", [namespace("spare", "s"), table("spare", "s", "orders", location="s3://spare/orders.lance")]),
        ("vault", [namespace("vault", "s"), table("vault", "s", "orders", location=ORDERS, owner="secret")]),
    ):  # fmt: skip
        if visible.is_visible((source,)):
            linked = linked_tables.records(disk, source) if disk is not None else []
            fill(index, source, *filter(part.has_record, [*objects, *linked]))
    if visible.is_visible(("lake",)):
        _cover(index, visible)
    if disk is not None:
        linked_tables.write_tables(disk, visible)
        verified = [row for name, row in linked_tables.verifications(disk) if part.has_both(name)]
        with index.write() as connection:
            verifications.save_verifications(connection, verified)
    with index.write() as connection:
        _verify(connection, part)
        for mirror, origin, target in (
            ("open", ("copy", "s$orders"), ("spare", "s$orders")), ("hidden", ("vault", "s$orders"), ("copy", "s$orders")),
            ("half", ("lake", "sales$orders"), ("vault", "s$orders")),
        ):  # fmt: skip
            if part.has_both("$".join(origin), "$".join(target)):
                _entries(connection, mirror, origin, target)
        names = 3 if visible.covers_all else 2
        for kind, subject, other, detail in (
            ("dangling_mirror", "spare$s$orders", "copy$s$orders", "d"),
            ("name_clash", "lake$sales$Twin", "lake$sales$twin", f"{names} names that differ in case"),
            ("duplicate", "lake$sales$orders", "lake$payroll$orders", "d"),
            ("duplicate", "lake$salesx$orders", "lake$sales$orders", "d"),
            ("dangling_mirror", "copy$s$orders", "vault$s$orders", "d"), ("missing", "vault$s$orders", ORDERS, "d"),
        ):  # fmt: skip
            if part.has_both(subject, other):
                _drift(connection, kind, subject, other, detail)
        _runs(connection, visible)
        _requests(connection, visible)
    result = {mirror: _plan(index, mirror) for mirror, ends in MIRRORS.items() if part.has_both(*ends)}
    _plan_in_part(index, part)
    with index.write() as connection:
        connection.execute(update(t.source).values(crawled_at=10.0, published_at=11.0))
        connection.execute(update(t.revision).values(read_began_at=9.0, published_at=11.0))
        connection.execute(update(t.plan).values(created_at=12.0))
        connection.execute(update(t.request).values(created_at=13.0))
        connection.execute(update(t.ledger).values(updated_at=14.0))
    return result


class _VisiblePart:
    """What scopes cover of a world."""

    def __init__(self, scopes: Scopes) -> None:
        self.scopes = scopes

    def has_record(self, record: Record) -> bool:
        path = (record.source, *record.path)
        return self.scopes.covers(path) if isinstance(record, TableRecord) else self.scopes.is_visible(path)

    def has_both(self, *ids: str) -> bool:
        """Whether the scopes cover all of some object ids. A location counts as covered."""
        return all("://" in text or self.scopes.covers(parse_path_key(text)) for text in ids)


def api(index: Index, settings: Settings, role: str = "viewer", scopes: Scopes = SEEN) -> Api:
    """The app, asked by a caller of that role."""
    return as_caller(create_app(settings), index, role, scopes, role)


def as_caller(app: FastAPI, index: Index, role: str, scopes: Scopes, name: str) -> Api:
    """An app, asked with a new token of that name."""
    secret, _ = tokens.create_token(index, name, role=role, scopes=scopes, lifetime=3600, actor="tests")
    return Api(app, headers={"Authorization": f"Bearer {secret}"})


def execute_queued(index: Index, runner: RequestRunner, kinds: Sequence[str]) -> None:
    """Carries out what waits, as the worker's loop does."""
    with index.read() as connection:
        waiting = requests.list_queued(connection, kinds)
    for request in waiting:
        runner.request = request
        runner.execute(request)


def _cover(index: Index, visible: Scopes) -> None:
    """A second revision of ``lake``: a namespace failed where few look."""
    denied = failed_evidence(15, "secret: denied")
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run-2", 0.0)
        with index.write() as connection:
            rows = [Coverage("lake", ROOT), Coverage("lake", ("sales",)), Coverage("lake", ("payroll",), denied, denied)]
            covered = [row for row in rows if visible.is_visible(("lake", *row.namespace))]
            coverage.write_coverage(connection, draft, covered, {})
        is_partial = visible.is_visible(("lake", "payroll"))
        values = {"state": "partial", "message": "payroll: denied"} if is_partial else {"state": "ok", "message": None}
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values=values)


def _verify(connection: Any, part: _VisiblePart) -> None:
    checked = {
        "canonical": ORDERS, "location": ORDERS, "state": "valid", "message": None, "version": 3, "rows": 10, "fragments": 1,
        "schema": "[]", "checked_at": 1.5, "checked_through": "lake", "access": "",
        "size": 1, "indices": 0, "fingerprint": "f", "format": "2.1",
        "changed_at": 1.0,
    }  # fmt: skip
    salaries = {"canonical": "s3://lake/payroll/salaries.lance", "location": "s3://lake/payroll/salaries.lance"}
    if any(map(part.has_both, ("lake$sales$orders", "lake$payroll$orders", "copy$s$orders", "vault$s$orders"))):
        verifications.save_verifications(connection, [checked])
    if part.has_both("lake$payroll$salaries"):
        verifications.save_verifications(connection, [checked | salaries])


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


def _requests(connection: Any, visible: Scopes) -> None:
    """Requests have the same ids in all worlds."""
    for number, sources in enumerate((["copy"], ["vault"], []), start=1):
        if all(visible.covers((source,)) for source in sources) if sources else visible.covers_all:
            request = requests.queue_request(connection, "crawl", {"sources": sources} if sources else {}, actor="ops")
            connection.execute(update(t.request).where(t.request.c.id == request.id).values(id=number))


def _runs(connection: Any, visible: Scopes) -> None:
    part = _VisiblePart(visible)

    def run(key: str, state: str, summary: dict[str, Any], sources: dict[str, str], targets: list[tuple[str, str]]) -> None:
        covered = {source: ended for source, ended in sources.items() if visible.covers((source,))}
        writes = [(mirror, target) for mirror, target in targets if part.has_both(target)]
        if not (covered or writes):
            return
        if covered != sources:
            ended = set(covered.values()) | ({"ok"} if writes else set())
            state, summary = (ended.pop() if len(ended) == 1 else "partial"), summary | {"n": 0} if "n" in summary else {}
        row = {
            "id": key, "kind": "sync", "state": state, "trigger": "api", "actor": "ops", "started_at": 1.0, "finished_at": 2.0,
            "summary": json.dumps(summary), "error": None,
        }  # fmt: skip
        connection.execute(insert(t.run), [row])
        for source, ended in covered.items():
            connection.execute(insert(t.run_source), [{"run_id": key, "source": source, "state": ended}])
        rows = [("crawl", source) for source in covered]
        rows += [("plan", name) for name, ends in MIRRORS.items() if all(visible.covers((end,)) for end in ends)]
        for stage, subject in rows:
            row = {"run_id": key, "stage": stage, "subject": subject, "state": "ok", "started_at": 1.0, "finished_at": 2.0}
            connection.execute(insert(t.run_stage), [row])
        for number, (mirror, target) in enumerate(targets):
            source, _, path = target.partition("$")
            if (mirror, target) not in writes:
                continue
            line = {
                "op_id": f"{key}-{number}", "run_id": key, "plan": "p", "mirror": mirror, "seq": number, "action": "declare_table",
                "target_source": source, "target_path": path, "origin_path": "s$orders", "change": '{"reason": "missing"}',
                "state": "done", "intent_at": 1.0,
            }  # fmt: skip
            connection.execute(insert(t.journal), [line])

    run(RUN_SEEN, "ok", {}, {"copy": "ok"}, [("open", "spare$s$orders")])
    run(RUN_BOTH, "failed", {"n": 1}, {"copy": "ok", "vault": "failed", "lake": "ok"},
        [("open", "spare$s$orders"), ("half", "vault$s$orders"), ("half", "lake$payroll$orders")])  # fmt: skip
    run(RUN_HIDDEN, "ok", {}, {"vault": "ok", "lake": "ok"}, [("half", "vault$s$orders")])


def _plan(index: Index, mirror: str) -> str:
    plan = Plan(mirror, "d", 1, 1, holds=(Hold("max_delete_percent", "too much"),))
    with index.write() as connection:
        plans.save_plan(
            connection, digest=plan.digest, mirror=mirror, run_id=RUN_SEEN, state="held", body=json.dumps(plan.to_json())
        )
    return plan.digest


def _plan_in_part(index: Index, part: _VisiblePart) -> None:
    """A held plan of the mirror ``half`` that was applied in part. The digest is that of the whole plan in all worlds."""
    changes = [
        Change(
            Action.DECLARE_TABLE, "copy", target, "lake", origin, "new at the origin", after=table("copy", *target.split("$"))
        )
        for origin, target in (("sales$orders", "s$mine"), ("sales$eu$items", "s$left"), ("payroll$salaries", "s$other"))
    ]
    # A principal sees a write if it sees the target, and a change if it sees both ends.
    written = [change for change in changes if part.has_both(f"copy${change.target_path}")]
    seen = [change for change in written if part.has_both(f"lake${change.origin_path}")]
    if seen:
        body = json.dumps(Plan("half", "d", 1, 1, tuple(seen), holds=(Hold("max_changes", "too much payroll"),)).to_json())
        with index.write() as connection:
            plans.save_plan(connection, digest=IN_PART, mirror="half", run_id=RUN_SEEN, state="held", body=body)
    for change in written:
        is_left = change.target_path == "s$left"
        message = "payroll$salaries already points there" if is_left else None
        record_change(index, IN_PART, change, "skipped" if is_left else "done", mirror="half", run_id=RUN_SEEN, message=message)
    with index.write() as connection:
        connection.execute(update(t.journal).where(t.journal.c.plan == IN_PART).values(intent_at=1.0, outcome_at=2.0))


__all__ = ["HIDDEN", "IN_PART", "ORDERS", "RUN_BOTH", "RUN_HIDDEN", "RUN_SEEN", "SEEN", "api", "as_caller", "build", "settings"]
