"""``ledger rebuild``: what an index lost is found again by the marks at the target, and nothing else is taken for ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from federator.audit.ledger import ledger_from
from federator.connector import Catalog, SourceSpec
from federator.index import Index, audit_log, coverage, journal, ledger, records, revisions
from federator.index.leases import hold
from federator.model import Coverage, Path, Record, TableRecord, failed
from federator.model.rows import table_record
from federator.planning.cells import LedgerRow, decide_all
from federator.planning.changes import Decision
from federator.planning.decide import Knowledge
from federator.planning.mapping import MirrorContext
from federator.planning.marks import Mark
from federator.registry import capabilities, open_catalog
from federator.settings import load
from federator.testing import MemoryStore
from tests.cli.conftest import Shell

ORDERS: Path = ("sales", "orders")
PLACE = "s3://lake/orders.lance"
Crawl = Callable[..., None]


def mark(path: Path = ORDERS, *, op_id: str = "op-1", **fields: Any) -> dict[str, str]:
    """The properties that the mirror leaves on its copy of a table."""
    made = {"instance": "test", "mirror": "nightly", "origin": f"lake${'$'.join(path)}", **fields}
    return Mark(op_id=op_id, **made).properties(path)


@pytest.fixture
def index(shell: Shell) -> Iterator[Index]:
    opened = shell.index()
    yield opened
    opened.close()


@pytest.fixture
def crawl(shell: Shell, index: Index, fill: Callable[..., None]) -> Crawl:
    """Reads both catalogs into the index as they are, without Spark."""

    def read(*sources: str) -> None:
        for name in sources or ("lake", "copy"):
            with catalog(shell, name) as opened:
                seen = [each for shard in opened.shards() for each in opened.read(shard)]
            fill(index, name, [each for each in seen if isinstance(each, Record)])

    return read


def catalog(shell: Shell, name: str) -> Catalog:
    return open_catalog(spec(shell, name))


def spec(shell: Shell, name: str) -> SourceSpec:
    return load(shell.folder / "federator.toml").source(name).spec


@pytest.fixture
def lost(shell: Shell, crawl: Crawl) -> Shell:
    """The mirror had declared a table, in a namespace that it had made, and the index does not know it any more."""
    shell.store("lake").add_table(ORDERS, PLACE, properties={"team": "eu"}, doc="All orders")
    copy = shell.store("copy")
    copy.add_namespace(("sales",), properties=Mark("test", "nightly", "lake$sales").properties(("sales",)))
    copy.add_table(ORDERS, PLACE, properties={"team": "eu", "added": "there", **mark()}, doc="All orders")
    crawl()
    return shell


def entries(index: Index, mirror: str = "nightly") -> dict[tuple[int, str], dict[str, Any]]:
    with index.read() as connection:
        return {(row["is_table"], row["target_path"]): dict(row) for row in ledger.of_mirror(connection, mirror)}


def decisions(shell: Shell, index: Index) -> list[Decision]:
    """What a plan over the index decides for each table."""
    rule = load(shell.folder / "federator.toml").rule("nightly")
    context = MirrorContext(rule, "test", capabilities(spec(shell, "lake")).levels, capabilities(spec(shell, "copy")))
    with index.read() as connection:
        origins, targets = (
            [table_record(name, row) for row in records.subtree(connection, name, is_table=True)] for name in ("lake", "copy")
        )
        rows = [LedgerRow.of(row) for row in ledger.with_origins(connection, "nightly")]
    return decide_all(context, Knowledge({}, {}, {}), origins, targets, rows).decisions


def rebuilt(shell: Shell, *words: str, code: int = 0) -> dict[str, Any]:
    result = shell.run("ledger", "rebuild", *words, "--output", "json")
    assert result.exit_code == code, result.output
    (mirror,) = json.loads(result.stdout)["mirrors"]
    return dict(mirror)


def test_without_yes_it_only_lists(lost: Shell, index: Index) -> None:
    assert [decision.reason for decision in decisions(lost, index)] == ["unledgered"]
    found = rebuilt(lost)
    assert found["entries"] == [
        {"kind": "namespace", "target": "copy$sales", "origin": "lake$sales", "location": None, "op_id": "",
         "why": "the ledger does not know it"},
        {"kind": "table", "target": "copy$sales$orders", "origin": "lake$sales$orders", "location": PLACE, "op_id": "op-1",
         "why": "the ledger does not know it"},
    ]  # fmt: skip
    assert (found["entered"], found["left"], found["gaps"]) == (False, [], [])
    assert entries(index) == {}
    result = lost.run("ledger", "rebuild")
    assert result.exit_code == 0
    assert "mirror nightly: 2 objects not in the ledger" in result.stdout
    assert "nothing was changed; --yes takes these into the ledger" in result.stderr


def test_with_yes_the_ledger_has_all_of_it_again(lost: Shell, index: Index) -> None:
    result = lost.run("ledger", "rebuild", "nightly", "--yes")
    assert (result.exit_code, "2 objects taken into the ledger" in result.stdout) == (0, True)
    assert decisions(lost, index) == []
    kept = entries(index)
    with index.read() as connection:
        origin = records.get(connection, "lake", ORDERS, is_table=True)
        target = records.get(connection, "copy", ORDERS, is_table=True)
    assert origin is not None
    assert target is not None
    table = kept[1, "sales$orders"]
    assert json.loads(table.pop("declared")) == {"location": PLACE, "properties": {"team": "eu"}, "doc": "All orders"}
    assert {key: table[key] for key in ("origin_source", "origin_path", "op_id", "native_id", "location")} == {
        "origin_source": "lake", "origin_path": "sales$orders", "op_id": "op-1", "native_id": target["native_id"],
        "location": PLACE,
    }  # fmt: skip
    rule = load(lost.folder / "federator.toml").rule("nightly")
    assert [table[f"{name}_digest"] for name in ("origin", "target", "mapping")] == [
        origin["digest"],
        target["digest"],
        rule.mapping_digest,
    ]
    assert (kept[0, "sales"]["origin_path"], kept[0, "sales"]["native_id"] is not None) == ("sales", True)
    assert lost.store("copy").calls() == []
    assert rebuilt(lost, "--yes")["entries"] == []


def test_every_object_is_audited(lost: Shell, index: Index) -> None:
    lost.run("ledger", "rebuild", "--yes")
    written = [row for row in audit_log.events(index) if row["kind"] == "ledger_rebuilt"]
    assert [row["subject"] for row in written] == ["copy$sales", "copy$sales$orders"]
    detail = json.loads(written[1]["event"])["detail"]
    assert (detail["op_id"], detail["origin_path"]) == ("op-1", "sales$orders")
    assert written[1]["run_id"] == entries(index)[1, "sales$orders"]["run_id"] == detail["run_id"]
    assert audit_log.unsealed_count(index) == 0
    with index.read() as connection:
        kept = [{**row} for row in ledger.of_mirror(connection, "nightly")]
    told = ledger_from(json.loads(row["event"]) for row in audit_log.events(index))
    assert sorted(told.values(), key=str) == sorted(
        ({k: v for k, v in row.items() if k != "updated_at"} for row in kept), key=str
    )


def test_what_no_plan_would_leave_as_it_is_stays_to_be_compared(lost: Shell, index: Index, crawl: Crawl) -> None:
    lost.store("lake").add_table(ORDERS, PLACE, properties={"team": "us", "new": "1"}, doc="Every order")
    crawl("lake")
    lost.run("ledger", "rebuild", "--yes")
    table = entries(index)[1, "sales$orders"]
    assert (table["origin_digest"], table["target_digest"]) == (None, None)
    assert json.loads(table["declared"]) == {"location": PLACE, "properties": {"team": "eu"}, "doc": None}
    (change,) = decisions(lost, index)
    assert (change.reason, change.after.properties["team"], change.after.properties["added"]) == (  # type: ignore[union-attr]
        "properties differ",
        "us",
        "there",
    )


def test_of_a_table_whose_origin_is_gone_nothing_is_claimed(lost: Shell, index: Index, fill: Callable[..., None]) -> None:
    lost.store("lake").remove(ORDERS)
    with hold(index, "source:lake") as lease:
        draft = revisions.begin(index, lease, "lake", "run", 2.0)
        revisions.close_records(index, lease, draft, [(1, "sales$orders")])
        revisions.publish(index, lease, draft, added=0, changed=0, removed=1, values={})
    lost.run("ledger", "rebuild", "--yes")
    table = entries(index)[1, "sales$orders"]
    assert json.loads(table["declared"]) == {"location": PLACE, "properties": {}, "doc": None}
    assert [decision.reason for decision in decisions(lost, index)] == ["not_covered"]


@pytest.mark.parametrize(
    "properties",
    [
        {},
        mark(instance="other"),
        mark(mirror="weekly"),
        mark(("sales", "original")),
        {key: text for key, text in mark().items() if key != "federator.path"},
    ],
    ids=["no mark", "another instance", "another mirror", "a copy", "a mark without its path"],
)
def test_nothing_else_is_taken_for_ours(shell: Shell, index: Index, crawl: Crawl, properties: dict[str, str]) -> None:
    shell.store("copy").add_table(ORDERS, PLACE, properties=properties)
    crawl()
    found = rebuilt(shell, "--yes")
    assert (found["entries"], found["left"], entries(index)) == ([], [], {})


def test_a_mark_in_the_comment_is_one(shell: Shell, index: Index, crawl: Crawl) -> None:
    comment = Mark("test", "nightly", "lake$sales$orders", "op-9").comment(ORDERS)
    shell.store("lake").add_table(ORDERS, PLACE, doc="All orders")
    shell.store("copy").add_table(ORDERS, PLACE, doc=f"All orders\n{comment}")
    crawl()
    rebuilt(shell, "--yes")
    table = entries(index)[1, "sales$orders"]
    assert (table["op_id"], json.loads(table["declared"])["doc"]) == ("op-9", "All orders")


def test_a_ledger_from_an_old_backup_learns_the_newer_operation(lost: Shell, index: Index, crawl: Crawl) -> None:
    lost.run("ledger", "rebuild", "--yes")
    record = table(lost.store("copy"))
    lost.store("copy").add_table(ORDERS, PLACE, properties={**record.properties, **mark(op_id="op-2")}, doc=record.doc)
    crawl("copy")
    (found,) = rebuilt(lost, "--yes")["entries"]
    assert (found["op_id"], found["why"]) == ("op-2", "the ledger knows the operation op-1")
    assert entries(index)[1, "sales$orders"]["op_id"] == "op-2"
    assert decisions(lost, index) == []


def test_the_mirror_whose_mark_it_is_takes_it_from_another(lost: Shell, index: Index) -> None:
    with index.write() as connection:
        theirs = {"mirror": "weekly", "origin_source": "lake", "origin_path": "x", "target_source": "copy"}
        ledger.put(connection, {**theirs, "target_path": "sales$orders", "is_table": 1, "op_id": "op-0", "run_id": "old"})
    rebuilt(lost, "--yes")
    assert entries(index, "weekly") == {}
    assert (1, "sales$orders") in entries(index)


def test_what_is_seen_now_counts_not_what_was_crawled(lost: Shell, index: Index) -> None:
    lost.store("copy").add_table(ORDERS, PLACE, properties={"team": "eu", **mark(op_id="op-7")}, doc="All orders")
    (_, found) = rebuilt(lost, "--yes")["entries"]
    assert found["op_id"] == "op-7"
    assert decisions(lost, index) == []


@pytest.mark.parametrize(("change", "why"), [
    (lambda store: store.remove(ORDERS), "it is gone"),
    (lambda store: (store.remove(ORDERS), store.add_foreign(ORDERS)), "it is no Lance table now: copy: sales$orders is a view"),
])  # fmt: skip
def test_what_is_not_there_any_more_is_left(lost: Shell, index: Index, change: Callable[[MemoryStore], Any], why: str) -> None:
    change(lost.store("copy"))
    found = rebuilt(lost, "--yes")
    assert [(left["target"], left["why"].split(", not")[0]) for left in found["left"]] == [("copy$sales$orders", why)]
    assert list(entries(index)) == [(0, "sales")]


def test_what_has_lost_its_mark_since_the_crawl_is_not_ours(lost: Shell, index: Index) -> None:
    lost.store("copy").add_table(ORDERS, PLACE)
    rebuilt(lost, "--yes")
    assert list(entries(index)) == [(0, "sales")]


def test_what_cannot_be_looked_at_is_said_and_the_rest_is_done(lost: Shell, index: Index) -> None:
    lost.store("copy").faults("undescribed:sales$orders")
    found = rebuilt(lost, "--yes", code=3)
    assert [gap.split(":")[0] for gap in found["gaps"]] == ["sales$orders could not be looked at"]
    assert list(entries(index)) == [(0, "sales")]


def test_a_target_that_was_never_crawled_is_an_error(shell: Shell, index: Index) -> None:
    result = shell.run("ledger", "rebuild", "--yes")
    assert result.exit_code == 1
    assert "the index knows nothing of copy yet" in result.stderr
    assert "federator crawl copy reads it" in result.stderr


def test_a_namespace_that_was_not_read_is_said(lost: Shell, index: Index) -> None:
    with hold(index, "source:copy") as lease:
        draft = revisions.begin(index, lease, "copy", "run", 2.0)
        denied = failed(15, "denied")
        with index.write() as connection:
            coverage.write(connection, draft, [Coverage("copy", ("hidden",), denied, denied)], {})
        revisions.publish(index, lease, draft, added=0, changed=0, removed=0, values={})
    found = rebuilt(lost, "--yes", code=3)
    assert found["gaps"] == ["hidden was not read in full: denied"]
    assert (found["entered"], len(found["entries"])) == (True, 2)


def test_a_catalog_that_keeps_no_marks_is_said(lost: Shell, index: Index) -> None:
    file = lost.folder / "federator.toml"
    text = file.read_text()
    before, after = text.split("[sources.copy]")
    file.write_text(f"{before}[sources.copy]{after.replace('testing:CONNECTOR', 'testing.memory:PLAIN')}")
    found = rebuilt(lost, code=3)
    assert found["gaps"] == ["the catalog keeps neither properties nor comments: no mark tells which of its tables are ours"]


def test_an_origin_that_the_mirror_does_not_read_is_left(lost: Shell, index: Index, crawl: Crawl) -> None:
    lost.store("copy").add_table(ORDERS, PLACE, properties=mark(origin="attic$sales$orders"))
    crawl("copy")
    found = rebuilt(lost, "--yes")
    assert found["left"] == [
        {"target": "copy$sales$orders", "why": "its mark names the origin attic$sales$orders, and the mirror reads lake"}
    ]


def test_a_forwarded_copy_has_the_copy_as_its_origin(shell: Shell, index: Index, crawl: Crawl) -> None:
    first = Mark("far", "in", "far$x", "op").properties(ORDERS)
    shell.store("lake").add_table(ORDERS, PLACE, properties=first)
    shell.store("copy").add_table(ORDERS, PLACE, properties=mark(origin="far$x", via=("lake",)))
    shell.store("copy").add_table(("sales", "b"), PLACE, properties=mark(("sales", "b"), origin="far$y", via=("lake",)))
    crawl()
    found = rebuilt(shell, "--yes")
    assert [(each["target"], each["origin"]) for each in found["entries"]] == [("copy$sales$orders", "lake$sales$orders")]
    assert [left["target"] for left in found["left"]] == ["copy$sales$b"]


def test_an_open_call_is_left_to_the_next_run(lost: Shell, index: Index) -> None:
    with index.write() as connection:
        journal.intend(connection, {
            "op_id": "op-1", "run_id": "r", "plan": "p", "mirror": "nightly", "seq": 0, "action": "declare_table",
            "target_source": "copy", "target_path": "sales$orders", "origin_path": "sales$orders", "change": "{}",
        })  # fmt: skip
    found = rebuilt(lost, "--yes")
    assert [left["why"] for left in found["left"]] == ["the fate of a call there is not known yet; the next run finds it out"]
    assert list(entries(index)) == [(0, "sales")]


def test_a_mirror_that_is_not_configured_is_a_mistake(lost: Shell) -> None:
    assert lost.run("ledger", "rebuild", "weekly").exit_code == 64


def table(store: MemoryStore) -> TableRecord:
    with store.state() as state:
        row = state["tables"]["sales$orders"]
    return replace(TableRecord("copy", ORDERS), properties=row["properties"], doc=row["doc"])
