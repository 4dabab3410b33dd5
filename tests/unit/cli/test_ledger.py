"""``ledger rebuild``: entries of a lost index are restored by the ownership markers at the target, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from federator.connector import Catalog, SourceSpec
from federator.model import Coverage, Path, Record, TableRecord, failed_evidence
from federator.planning.cells import LedgerRow
from federator.planning.changes import Action, Decision
from federator.planning.decision import CrawlEvidence
from federator.planning.mapping import MirrorContext
from federator.planning.ownership import OwnershipMarker
from federator.registry import open_catalog, source_capabilities
from federator.settings import load_settings
from federator.store import Index, audit_log, coverage, journal, ledger, records, revisions
from federator.store.leases import acquire_lease
from federator.testing import MemoryStore
from tests.fixtures.index_content import intent, owned
from tests.fixtures.index_reads import iter_records
from tests.fixtures.ledger_replay import replay_ledger
from tests.prove.rules_in_memory import decide_all
from tests.unit.cli.conftest import Shell

ORDERS: Path = ("sales", "orders")
LOCATION = "s3://lake/orders.lance"
Crawl = Callable[..., None]


def mark(path: Path = ORDERS, *, op_id: str = "op-1", **fields: Any) -> dict[str, str]:
    """The properties that the mirror leaves on its copy of a table."""
    created = {"instance": "test", "mirror": "nightly", "origin": f"lake${'$'.join(path)}", **fields}
    return OwnershipMarker(op_id=op_id, **created).to_properties(path)


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
                observed = [item for shard in opened.plan_shards() for item in opened.read_shard(shard)]
            fill(index, name, [item for item in observed if isinstance(item, Record)])

    return read


def catalog(shell: Shell, name: str) -> Catalog:
    return open_catalog(spec(shell, name))


def spec(shell: Shell, name: str) -> SourceSpec:
    return load_settings(shell.folder / "federator.toml").source(name).spec


@pytest.fixture
def lost(shell: Shell, crawl: Crawl) -> Shell:
    """The mirror had declared a table, in a namespace that it had made, and the index does not know it any more."""
    shell.store("lake").add_table(ORDERS, LOCATION, properties={"team": "eu"}, doc="All orders")
    copy = shell.store("copy")
    copy.add_namespace(("sales",), properties=OwnershipMarker("test", "nightly", "lake$sales").to_properties(("sales",)))
    copy.add_table(ORDERS, LOCATION, properties={"team": "eu", "added": "there", **mark()}, doc="All orders")
    crawl()
    return shell


def entries(index: Index, mirror: str = "nightly") -> dict[tuple[int, str], dict[str, Any]]:
    with index.read() as connection:
        return {(entry.is_table, entry.target_path): asdict(entry) for entry in ledger.list_entries(connection, mirror)}


def decisions(shell: Shell, index: Index) -> list[Decision]:
    """What a plan over the index decides for each table."""
    rule = load_settings(shell.folder / "federator.toml").mirror_rule("nightly")
    context = MirrorContext(
        rule, "test", source_capabilities(spec(shell, "lake")).levels, source_capabilities(spec(shell, "copy"))
    )
    with index.read() as connection:
        origins, targets = (
            [record for record in iter_records(connection, name, is_table=True) if isinstance(record, TableRecord)]
            for name in ("lake", "copy")
        )
        query = ledger.select_rows("nightly", "lake", records.published_revision(connection, "lake"), "copy")
        rows = [LedgerRow(**row) for row in connection.execute(query).mappings()]
    return decide_all(context, CrawlEvidence({}, {}, {}), origins, targets, rows).decisions


def rebuilt(shell: Shell, *words: str, code: int = 0) -> dict[str, Any]:
    result = shell.run("ledger", "rebuild", *words, "--output", "json")
    assert result.exit_code == code, result.output
    (mirror,) = json.loads(result.stdout)["mirrors"]
    return dict(mirror)


def test_without_yes_it_only_lists(lost: Shell, index: Index) -> None:
    assert [decision.reason for decision in decisions(lost, index)] == ["unledgered"]
    results = rebuilt(lost)
    assert results["entries"] == [
        {"kind": "namespace", "target": "copy$sales", "origin": "lake$sales", "location": None, "op_id": "",
         "why": "it is missing in the ledger"},
        {"kind": "table", "target": "copy$sales$orders", "origin": "lake$sales$orders", "location": LOCATION, "op_id": "op-1",
         "why": "it is missing in the ledger"},
    ]  # fmt: skip
    assert (results["entered"], results["left"], results["gaps"]) == (False, [], [])
    assert entries(index) == {}
    result = lost.run("ledger", "rebuild")
    assert result.exit_code == 0
    assert "mirror nightly: 2 objects not in the ledger" in result.stdout
    assert "nothing was changed; use --yes to add these to the ledger" in result.stderr


def test_with_yes_the_ledger_has_all_of_it_again(lost: Shell, index: Index) -> None:
    result = lost.run("ledger", "rebuild", "nightly", "--yes")
    assert (result.exit_code, "2 objects added to the ledger" in result.stdout) == (0, True)
    assert decisions(lost, index) == []
    stored = entries(index)
    with index.read() as connection:
        origin = records.find_record(connection, "lake", ORDERS, is_table=True)
        target = records.find_record(connection, "copy", ORDERS, is_table=True)
    assert origin is not None
    assert target is not None
    table = stored[1, "sales$orders"]
    assert json.loads(table.pop("declared")) == {"location": LOCATION, "properties": {"team": "eu"}, "doc": "All orders"}
    assert {key: table[key] for key in ("origin_source", "origin_path", "op_id", "native_id", "location")} == {
        "origin_source": "lake", "origin_path": "sales$orders", "op_id": "op-1", "native_id": target.record.native_id,
        "location": LOCATION,
    }  # fmt: skip
    rule = load_settings(lost.folder / "federator.toml").mirror_rule("nightly")
    assert [table[f"{name}_digest"] for name in ("origin", "target", "mapping")] == [
        origin.digest,
        target.digest,
        rule.mapping_digest,
    ]
    assert (stored[0, "sales"]["origin_path"], stored[0, "sales"]["native_id"] is not None) == ("sales", True)
    assert lost.store("copy").calls() == []
    assert rebuilt(lost, "--yes")["entries"] == []


def test_every_object_is_audited(lost: Shell, index: Index) -> None:
    lost.run("ledger", "rebuild", "--yes")
    written = [row for row in audit_log.list_events(index) if row.kind == "ledger_rebuilt"]
    assert [row.subject for row in written] == ["copy$sales", "copy$sales$orders"]
    detail = json.loads(written[1].event)["detail"]
    assert (detail["op_id"], detail["origin_path"]) == ("op-1", "sales$orders")
    assert written[1].run_id == entries(index)[1, "sales$orders"]["run_id"] == detail["run_id"]
    assert audit_log.count_unsealed(index) == 0
    with index.read() as connection:
        stored = ledger.list_entries(connection, "nightly")
    response = replay_ledger(json.loads(row.event) for row in audit_log.list_events(index))
    assert sorted(response.values(), key=str) == sorted((entry.to_json() for entry in stored), key=str)


def test_what_no_plan_would_leave_as_it_is_stays_to_be_compared(lost: Shell, index: Index, crawl: Crawl) -> None:
    lost.store("lake").add_table(ORDERS, LOCATION, properties={"team": "us", "new": "1"}, doc="Every order")
    crawl("lake")
    lost.run("ledger", "rebuild", "--yes")
    table = entries(index)[1, "sales$orders"]
    assert (table["origin_digest"], table["target_digest"]) == (None, None)
    assert json.loads(table["declared"]) == {"location": LOCATION, "properties": {"team": "eu"}, "doc": None}
    (change,) = decisions(lost, index)
    assert (change.reason, change.after.properties["team"], change.after.properties["added"]) == (  # type: ignore[union-attr]
        "properties differ",
        "us",
        "there",
    )


def test_of_a_table_whose_origin_is_gone_nothing_is_claimed(lost: Shell, index: Index, fill: Callable[..., None]) -> None:
    lost.store("lake").remove(ORDERS)
    with acquire_lease(index, "source:lake") as lease:
        draft = revisions.begin_draft(index, lease, "lake", "run", 2.0)
        revisions.close_records(index, lease, draft, [(1, "sales$orders")])
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=1, values={})
    lost.run("ledger", "rebuild", "--yes")
    table = entries(index)[1, "sales$orders"]
    assert json.loads(table["declared"]) == {"location": LOCATION, "properties": {}, "doc": None}
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
def test_nothing_else_is_taken_for_owned(shell: Shell, index: Index, crawl: Crawl, properties: dict[str, str]) -> None:
    shell.store("copy").add_table(ORDERS, LOCATION, properties=properties)
    crawl()
    result = rebuilt(shell, "--yes")
    assert (result["entries"], result["left"], entries(index)) == ([], [], {})


def test_a_mark_in_the_comment_is_one(shell: Shell, index: Index, crawl: Crawl) -> None:
    comment = OwnershipMarker("test", "nightly", "lake$sales$orders", "op-9").to_comment(ORDERS)
    shell.store("lake").add_table(ORDERS, LOCATION, doc="All orders")
    shell.store("copy").add_table(ORDERS, LOCATION, doc=f"All orders\n{comment}")
    crawl()
    rebuilt(shell, "--yes")
    table = entries(index)[1, "sales$orders"]
    assert (table["op_id"], json.loads(table["declared"])["doc"]) == ("op-9", "All orders")


def test_a_ledger_from_an_old_backup_learns_the_newer_operation(lost: Shell, index: Index, crawl: Crawl) -> None:
    lost.run("ledger", "rebuild", "--yes")
    record = table(lost.store("copy"))
    lost.store("copy").add_table(ORDERS, LOCATION, properties={**record.properties, **mark(op_id="op-2")}, doc=record.doc)
    crawl("copy")
    (result,) = rebuilt(lost, "--yes")["entries"]
    assert (result["op_id"], result["why"]) == ("op-2", "the ledger has another operation: op-1")
    assert entries(index)[1, "sales$orders"]["op_id"] == "op-2"
    assert decisions(lost, index) == []


def test_the_mirror_whose_mark_it_is_takes_it_from_another(lost: Shell, index: Index) -> None:
    with index.write() as connection:
        ledger.upsert_entry(connection, owned("lake", "x", "copy", "sales$orders", mirror="weekly", op_id="op-0"))
    rebuilt(lost, "--yes")
    assert entries(index, "weekly") == {}
    assert (1, "sales$orders") in entries(index)


def test_observations_count_instead_of_the_last_crawl(lost: Shell, index: Index) -> None:
    lost.store("copy").add_table(ORDERS, LOCATION, properties={"team": "eu", **mark(op_id="op-7")}, doc="All orders")
    (_, result) = rebuilt(lost, "--yes")["entries"]
    assert result["op_id"] == "op-7"
    assert decisions(lost, index) == []


@pytest.mark.parametrize(("change", "reason"), [
    (lambda store: store.remove(ORDERS), "it is absent"),
    (lambda store: (store.remove(ORDERS), store.add_foreign(ORDERS)), "it is no longer a Lance table: copy: sales$orders is a view"),
])  # fmt: skip
def test_what_is_not_there_any_more_is_left(
    lost: Shell, index: Index, change: Callable[[MemoryStore], Any], reason: str
) -> None:
    change(lost.store("copy"))
    result = rebuilt(lost, "--yes")
    assert [(left["target"], left["why"].split(", not")[0]) for left in result["left"]] == [("copy$sales$orders", reason)]
    assert list(entries(index)) == [(0, "sales")]


def test_an_object_without_its_marker_since_the_crawl_is_not_owned(lost: Shell, index: Index) -> None:
    lost.store("copy").add_table(ORDERS, LOCATION)
    rebuilt(lost, "--yes")
    assert list(entries(index)) == [(0, "sales")]


def test_an_object_that_cannot_be_observed_is_reported_and_the_rest_is_done(lost: Shell, index: Index) -> None:
    lost.store("copy").faults("undescribed:sales$orders")
    result = rebuilt(lost, "--yes", code=3)
    assert [gap.split(":")[0] for gap in result["gaps"]] == ["sales$orders could not be observed"]
    assert list(entries(index)) == [(0, "sales")]


def test_a_target_that_was_never_crawled_is_an_error(shell: Shell, index: Index) -> None:
    result = shell.run("ledger", "rebuild", "--yes")
    assert result.exit_code == 1
    assert "copy has not been crawled yet" in result.stderr
    assert "run: federator crawl copy" in result.stderr


def test_a_namespace_that_was_not_read_is_reported(lost: Shell, index: Index) -> None:
    with acquire_lease(index, "source:copy") as lease:
        draft = revisions.begin_draft(index, lease, "copy", "run", 2.0)
        denied = failed_evidence(15, "denied")
        with index.write() as connection:
            coverage.write_coverage(connection, draft, [Coverage("copy", ("hidden",), denied, denied)], {})
        revisions.publish_draft(index, lease, draft, added=0, changed=0, removed=0, values={})
    result = rebuilt(lost, "--yes", code=3)
    assert result["gaps"] == ["hidden was not read completely: denied"]
    assert (result["entered"], len(result["entries"])) == (True, 2)


def test_a_catalog_without_markers_is_reported(lost: Shell, index: Index) -> None:
    file = lost.folder / "federator.toml"
    text = file.read_text()
    before, after = text.split("[sources.copy]")
    file.write_text(f"{before}[sources.copy]{after.replace('testing:CONNECTOR', 'testing.memory:PLAIN')}")
    result = rebuilt(lost, code=3)
    assert result["gaps"] == [
        "the catalog keeps neither properties nor comments, so no marker shows which of its tables are owned"
    ]


def test_an_origin_that_the_mirror_does_not_read_is_left(lost: Shell, index: Index, crawl: Crawl) -> None:
    lost.store("copy").add_table(ORDERS, LOCATION, properties=mark(origin="attic$sales$orders"))
    crawl("copy")
    result = rebuilt(lost, "--yes")
    assert result["left"] == [
        {
            "target": "copy$sales$orders",
            "why": "its ownership marker names the origin attic$sales$orders, but the mirror's origin is lake",
        }
    ]


def test_a_forwarded_copy_has_the_copy_as_its_origin(shell: Shell, index: Index, crawl: Crawl) -> None:
    first = OwnershipMarker("far", "in", "far$x", "op").to_properties(ORDERS)
    shell.store("lake").add_table(ORDERS, LOCATION, properties=first)
    shell.store("copy").add_table(ORDERS, LOCATION, properties=mark(origin="far$x", via=("lake",)))
    shell.store("copy").add_table(("sales", "b"), "s3://lake/b", properties=mark(("sales", "b"), origin="far$y", via=("lake",)))
    crawl()
    result = rebuilt(shell, "--yes")
    assert [(item["target"], item["origin"]) for item in result["entries"]] == [("copy$sales$orders", "lake$sales$orders")]
    (left,) = result["left"]
    assert (left["target"], left["why"].partition(", or")[0]) == (
        "copy$sales$b", "no table of lake is a copy of far$y and maps to this name",
    )  # fmt: skip


def test_a_forwarded_copy_whose_origin_was_moved_is_pruned(shell: Shell, index: Index, crawl: Crawl) -> None:
    """The marker has the first origin's earlier name: only the location tells which table it is."""
    store, moved = shell.store("lake"), ("moved", "orders")
    store.add_table(moved, LOCATION, properties=OwnershipMarker("far", "in", "far$moved$orders", "op").to_properties(moved))
    shell.store("copy").add_table(ORDERS, LOCATION, properties=mark(origin="far$sales$orders", via=("lake",)))
    crawl()
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text() + "transitive = true\n")
    assert [(item["target"], item["origin"]) for item in rebuilt(shell, "--yes")["entries"]] == [
        ("copy$sales$orders", "lake$moved$orders")
    ]
    assert [decision.reason for decision in decisions(shell, index) if decision.target_path == "sales$orders"] == ["unselected"]
    file.write_text(file.read_text() + "prune_unselected = true\n")
    (removed,) = [decision for decision in decisions(shell, index) if decision.target_path == "sales$orders"]
    assert removed.action is Action.DEREGISTER_TABLE  # type: ignore[union-attr]


@pytest.mark.parametrize("fields", [
    {"origin": "near$sales$orders", "via": ("lake",)}, {"origin": "far$sales$orders", "via": ("lake", "other")},
    {"origin": "far$sales$orders", "via": ("other",)},
], ids=["another first source", "another way", "not from the origin"])  # fmt: skip
def test_a_location_alone_claims_nothing(shell: Shell, index: Index, crawl: Crawl, fields: dict[str, Any]) -> None:
    moved = ("moved", "orders")
    first = OwnershipMarker("far", "in", "far$moved$orders", "op").to_properties(moved)
    shell.store("lake").add_table(moved, LOCATION, properties=first)
    shell.store("copy").add_table(ORDERS, LOCATION, properties=mark(**fields))
    crawl()
    result = rebuilt(shell, "--yes")
    assert (result["entries"], [left["target"] for left in result["left"]]) == ([], ["copy$sales$orders"])


def test_an_open_call_is_left_to_the_next_run(lost: Shell, index: Index) -> None:
    with index.write() as connection:
        journal.insert_intent(connection, intent("op-1", mirror="nightly", target_path="sales$orders"))
    result = rebuilt(lost, "--yes")
    assert [left["why"] for left in result["left"]] == [
        "the outcome of its last call is not known yet; the next run resolves it"
    ]
    assert list(entries(index)) == [(0, "sales")]


def test_a_mirror_that_is_not_configured_is_a_mistake(lost: Shell) -> None:
    assert lost.run("ledger", "rebuild", "weekly").exit_code == 64


def table(store: MemoryStore) -> TableRecord:
    with store.locked_state() as state:
        row = state["tables"]["sales$orders"]
    return replace(TableRecord("copy", ORDERS), properties=row["properties"], doc=row["doc"])
