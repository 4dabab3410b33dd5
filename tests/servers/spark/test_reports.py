"""Each report over one small index of real runs and random revisions: its figures equal those of plain SQL."""

from __future__ import annotations

import csv
import json
import random
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert, text, update

from federator.connector import ConfigError
from federator.model import Scopes
from federator.model.report_kinds import REPORT_KINDS
from federator.settings.retention import ReportSettings
from federator.stages.report import ReportSpec
from federator.store import retention, runs, tokens, verifications
from federator.store import tables as t
from federator.store.leases import acquire_lease
from tests.fixtures.index_content import fill, namespace, table
from tests.fixtures.spark import World, Worlds

_DAY = 86_400.0
_ODD = '<script>alert("x")</script>, "quoted"\nand $a%'


@pytest.fixture(scope="module")
def world(worlds: Worlds) -> World:
    built = worlds(mirrors={"copy": {"from": "a", "to": "b", "namespace": "from_a"}})
    lake = built.store("a")
    lake.add_namespace(("sales",))
    for name in ("orders", "items", "gone"):
        lake.add_table(("sales", name), f"s3://lake/sales/{name}", owner="anna")
    assert built.sync().state == "ok"
    lake.remove(("sales", "gone"))
    assert built.sync().state == "ok"
    index = built.federator.index
    chosen = random.Random(7)
    for source in ("x", "y"):
        for step in range(5):
            paths = {("s", f"t{chosen.randrange(12)}") for _ in range(6)}
            gone = {("s", f"t{chosen.randrange(12)}") for _ in range(3)} - paths
            tables = [table(source, *path, doc=str(step), owner=chosen.choice(["ben", None])) for path in sorted(paths)]
            fill(index, source, namespace(source, "s"), *tables, gone=sorted(gone))
    spellings = [
        table("x", "s", f"on_disk_{n}", location=f"{prefix}/disk/t{n}") for n, prefix in enumerate(("file:", "file://"))
    ]
    fill(index, "x", table("x", "s", _ODD, location="s3a://other/odd", owner=_ODD), *spellings)
    with acquire_lease(index, "source:y") as lease:
        retention.prune_source(index, lease, "y", _published(built, "y", 3), runs.RunHandle("r", "prune", "me"))
    with index.write() as connection:
        for source in ("x", "y"):
            for number in range(1, 7):
                mine = (t.revision.c.source == source) & (t.revision.c.number == number)
                connection.execute(update(t.revision).where(mine).values(published_at=_noon(20 - 2 * number)))
        locations = [
            r[0] for r in connection.execute(text("SELECT DISTINCT canonical FROM record WHERE canonical > '' ORDER BY 1"))
        ]
        verifications.save_verifications(
            connection, [_checked(location, number) for number, location in enumerate(locations[:5])]
        )
        connection.execute(insert(t.drift), [_drift(number) for number in range(9)])
    tokens.create_token(index, "ci", role="operator", scopes=Scopes.parse(["a$sales"]), lifetime=None, actor="anna")
    tokens.create_token(index, "old", role="viewer", scopes=Scopes.parse(["*"]), lifetime=None, actor="anna")
    tokens.revoke_token(index, "old", actor="ben")
    return built


def _published(world: World, source: str, number: int) -> float:
    with world.read() as connection:
        mine = {"s": source, "n": number}
        return float(
            connection.execute(text("SELECT published_at FROM revision WHERE source = :s AND number = :n"), mine).scalar_one()
        )


def _noon(days_ago: int) -> float:
    today = datetime.now(UTC).date()
    return datetime(today.year, today.month, today.day, tzinfo=UTC).timestamp() - days_ago * _DAY + _DAY / 2


def _checked(location: str, number: int) -> dict[str, Any]:
    return {
        "canonical": location, "location": location, "state": "valid" if number else "missing", "message": None, "version": 1,
        "rows": 10 * number, "fragments": 1, "schema": None, "checked_at": time.time() - number * 3 * _DAY, "checked_through": "a",
        "access": "",
        "size": 1000 * number,
        "indices": 0, "fingerprint": None, "format": "2.1", "changed_at": None,
    }  # fmt: skip


def _drift(number: int) -> dict[str, Any]:
    return {
        "kind": "missing" if number % 2 else "name_clash", "subject": f"a$sales$d{number}", "other": "",
        "severity": "high" if number % 2 else "medium",
        "source": "a", "detail": _ODD, "first_seen": time.time() - number * 5 * _DAY, "last_seen": time.time(),
        "resolved_at": time.time() if number % 3 == 0 else None,
    }  # fmt: skip


@pytest.fixture(scope="module")
def report_directories(world: World) -> dict[str, Path]:
    """The directory of one report of each kind."""
    directories: dict[str, Path] = {}
    for kind in REPORT_KINDS:
        result = world.federator.make_report(ReportSpec(kind, ReportSettings(kind=kind)))
        assert result.state == "ok", result.errors
        directories[kind] = Path(result.reports[0].directory)
    return directories


def figures(report_directories: dict[str, Path], kind: str, title: str = "figures") -> list[dict[str, Any]]:
    """A section of a report as its JSON has it."""
    (section,) = [
        s for s in json.loads((report_directories[kind] / "report.json").read_text())["sections"] if s["title"] == title
    ]
    return [dict(zip(section["columns"], row, strict=True)) for row in section["rows"]]


def sql(world: World, query: str) -> list[tuple[Any, ...]]:
    with world.read() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


_NOW = "record r JOIN source s ON s.name = r.source AND r.valid_from <= s.revision AND (r.valid_to IS NULL OR r.valid_to > s.revision)"


def test_inventory(world: World, report_directories: dict[str, Path]) -> None:
    (tiles,) = figures(report_directories, "inventory")
    (counted,) = sql(
        world, f"SELECT sum(is_table = 0), sum(is_table), count(DISTINCT canonical), count(DISTINCT r.source) FROM {_NOW}"
    )
    assert (tiles["namespaces"], tiles["tables"], tiles["datasets"], tiles["sources"]) == counted
    twice = sql(
        world, f"SELECT count(*) FROM (SELECT 1 FROM {_NOW} WHERE canonical > '' GROUP BY canonical HAVING count(*) > 1)"
    )
    assert [(tiles["declared more than once"],)] == twice
    bytes_of = f"SELECT sum(size), sum(rows) FROM dataset WHERE canonical IN (SELECT canonical FROM {_NOW} WHERE is_table = 1)"
    assert [(tiles["bytes"], tiles["rows"])] == sql(world, bytes_of)
    by_source = sql(world, f"SELECT r.source, count(*) FROM {_NOW} WHERE is_table = 1 GROUP BY 1 ORDER BY 2 DESC, 1")
    assert [(row["source"], row["tables"]) for row in figures(report_directories, "inventory", "Tables by source")] == by_source
    owners = sql(
        world, f"SELECT coalesce(r.owner, '(nobody)'), count(*) FROM {_NOW} WHERE is_table = 1 GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    assert [tuple(row.values()) for row in figures(report_directories, "inventory", "Tables by owner")] == owners
    opened = figures(report_directories, "inventory", "What opening the locations found")
    states = "coalesce((SELECT state FROM dataset d WHERE d.canonical = r.canonical), 'unverified')"
    assert {(row["state"], row["tables"]) for row in opened} == set(
        sql(world, f"SELECT {states}, count(*) FROM {_NOW} WHERE is_table = 1 GROUP BY 1")
    )
    storages = {row["storage"]: row["tables"] for row in figures(report_directories, "inventory", "Tables by storage")}
    assert (storages["file:///disk"], storages["s3://other"]) == (2, 1)
    assert not {"file:/disk", "s3a://other"} & set(storages)
    details = pq.read_table(report_directories["inventory"] / "inventory.parquet")
    assert list(zip(details["source"].to_pylist(), details["path"].to_pylist(), strict=True)) == sql(
        world, f"SELECT r.source, r.path FROM {_NOW} WHERE is_table = 1 ORDER BY 1, 2"
    )


def test_drift(world: World, report_directories: dict[str, Path]) -> None:
    (tiles,) = figures(report_directories, "drift")
    count = "SELECT count(*), sum(severity = 'high'), sum(severity = 'medium') FROM drift WHERE resolved_at IS NULL"
    assert [(tiles["open"], tiles["high"], tiles["medium"])] == sql(world, count)
    kinds = sql(
        world, "SELECT replace(kind, '_', ' '), count(*) FROM drift WHERE resolved_at IS NULL GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    assert [(row["kind"], row["open"]) for row in figures(report_directories, "drift", "Open drift by kind")] == kinds
    first = figures(report_directories, "drift", "The gravest, oldest first")[0]
    grave = "SELECT subject FROM drift WHERE resolved_at IS NULL AND severity = 'high' ORDER BY first_seen LIMIT 1"
    assert [(first["table"],)] == sql(world, grave)
    with (report_directories["drift"] / "drift.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["subject"] for row in rows] == [
        s for (s,) in sql(world, "SELECT subject FROM drift ORDER BY kind, subject, other")
    ]
    assert _ODD in {row["detail"] for row in rows}


def test_mirrors(world: World, report_directories: dict[str, Path]) -> None:
    (tiles,) = figures(report_directories, "mirrors")
    assert (tiles["mirrors"], tiles["copies"]) == sql(
        world, "SELECT count(DISTINCT mirror), count(*) FROM ledger WHERE is_table = 1"
    )[0]
    assert (tiles["copies"], tiles["in place"], tiles["an end gone"]) == (3, 2, 1)
    written = sql(
        world,
        "SELECT mirror, replace(action, '_', ' '), state, count(*) FROM journal GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 2, 3",
    )
    assert [
        (r["mirror"], r["action"], r["state"], r["writes"])
        for r in figures(report_directories, "mirrors", "Writes of the last 30 days")
    ] == written
    (gone,) = figures(report_directories, "mirrors", "Copies of which an end is gone")
    assert (gone["origin"], gone["target"], gone["state"]) == ("a$sales$gone", "b$from_a$gone", "origin gone")
    (newest,) = sql(world, "SELECT body FROM plan WHERE mirror = 'copy' ORDER BY created_at DESC LIMIT 1")
    reasons = sorted(refusal["reason"] for refusal in json.loads(newest[0])["refusals"])
    refusals = figures(report_directories, "mirrors", "Refusals of each mirror's newest plan")
    assert sorted(row["reason"] for row in refusals for _ in range(row["tables"])) == reasons


def test_freshness(world: World, report_directories: dict[str, Path]) -> None:
    (tiles,) = figures(report_directories, "freshness")
    assert tiles["sources"] == 4
    never = f"SELECT count(DISTINCT r.canonical) FROM {_NOW} WHERE is_table = 1 AND r.canonical NOT IN (SELECT canonical FROM dataset)"
    assert [(tiles["locations never opened"],)] == sql(world, never)
    listed = figures(report_directories, "freshness", "Namespaces by what their listing proved")
    assert (
        sum(row["namespaces"] for row in listed)
        == sql(world, f"SELECT count(*) FROM {_NOW.replace('record r', 'coverage r')}")[0][0]
    )
    kinds = figures(report_directories, "freshness", "Runs that ended in the last 30 days")
    assert {(r["kind"], r["state"], r["runs"]) for r in kinds if r["kind"] == "sync"} == {("sync", "ok", 2)}
    opened = figures(report_directories, "freshness", "When locations were last opened")
    assert (
        sum(row["locations"] for row in opened)
        == sql(world, f"SELECT count(DISTINCT r.canonical) FROM {_NOW} WHERE is_table = 1")[0][0]
    )


def test_growth(world: World, report_directories: dict[str, Path]) -> None:
    details = pq.read_table(report_directories["growth"] / "growth.parquet").to_pylist()
    today = datetime.now(UTC).date()
    for source in ("x", "y"):
        mine = {row["day"]: row for row in details if row["source"] == source}
        first = min(map(date.fromisoformat, mine))
        assert set(mine) >= {str(first + timedelta(days=n)) for n in range((today - first).days)}
        (horizon,) = sql(world, f"SELECT horizon FROM source WHERE name = '{source}'")[0]
        # The days of the revisions that are left, and those in between: what the intervals say of each.
        for day, row in mine.items():
            end = (date.fromisoformat(day) + timedelta(days=1) - date(1970, 1, 1)).days * _DAY
            revision = f"(SELECT max(number) FROM revision WHERE source = '{source}' AND published_at < {end})"
            at = f"FROM record WHERE source = '{source}' AND is_table = 1 AND valid_from <= {revision}"
            assert [(row["tables"],)] == sql(world, f"SELECT count(*) {at} AND (valid_to IS NULL OR valid_to > {revision})")
        revisions = sql(
            world, f"SELECT number, published_at FROM revision WHERE source = '{source}' AND number > {horizon} ORDER BY 1"
        )
        for number, published in revisions:
            row = mine[datetime.fromtimestamp(published, UTC).date().isoformat()]
            opened = f"SELECT path FROM record WHERE source = '{source}' AND is_table = 1 AND valid_from = {number}"
            closed = f"SELECT path FROM record WHERE source = '{source}' AND is_table = 1 AND valid_to = {number}"
            new, old = ({path for (path,) in sql(world, query)} for query in (opened, closed))
            assert (row["added"], row["removed"], row["changed"]) == (len(new - old), len(old - new), len(new & old))
    (tiles,) = figures(report_directories, "growth")
    assert tiles["tables now"] == sql(world, f"SELECT sum(is_table) FROM {_NOW}")[0][0]


def test_access(world: World, report_directories: dict[str, Path]) -> None:
    rows = pq.read_table(report_directories["access"] / "access.parquet", columns=["seq"])["seq"].to_pylist()
    assert rows == list(range(1, len(rows) + 1))
    sealed = f"FROM audit_event WHERE seq <= {len(rows)}"
    actors = sql(world, f"SELECT actor, count(*), count(DISTINCT run_id) {sealed} GROUP BY 1 ORDER BY 2 DESC, 1")
    assert [(r["actor"], r["events"], r["runs"]) for r in figures(report_directories, "access", "Events by actor")] == actors
    token_rows = {
        (row["token"], row["role"], row["scopes"], row["state"])
        for row in figures(report_directories, "access", "Who may do what")
    }
    assert token_rows == {("ci", "operator", "a$sales", "works"), ("old", "viewer", "*", "revoked by ben")}
    digests = [digest for (digest,) in sql(world, "SELECT digest FROM token")]
    assert not any(
        digest in file.read_text(errors="replace") for digest in digests for file in report_directories["access"].iterdir()
    )


class _Page(HTMLParser):
    """Whether a page stands alone: what it loads, and what scripts it has."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "srcset", "action")]
        if tag in ("script", "link", "iframe", "img"):
            self.loads.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("kind", REPORT_KINDS)
def test_a_page_loads_no_other_file_and_runs_no_script(report_directories: dict[str, Path], kind: str) -> None:
    html = (report_directories[kind] / "report.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(html)
    assert (page.loads, "url(" in html, "@import" in html) == ([], False, False)
    sections = json.loads((report_directories[kind] / "report.json").read_text())["sections"]
    for section in sections[1:]:
        assert section["title"] in page.text


def test_a_page_shows_what_is_odd_as_it_is(report_directories: dict[str, Path]) -> None:
    page = _Page()
    page.feed((report_directories["inventory"] / "report.html").read_text(encoding="utf-8"))
    assert _ODD in page.text


def test_reports_are_kept_as_long_as_they_are_wanted(world: World, report_directories: dict[str, Path]) -> None:
    from federator.store import reports

    wanted = ReportSpec("weekly", ReportSettings(kind="drift", formats=("csv",), keep=1))
    first, second = (world.federator.make_report(wanted).reports[0] for _ in range(2))
    with world.read() as connection:
        assert [report.id for report in reports.list_reports(connection, name="weekly")] == [second.id]
        assert {report.kind for report in reports.list_reports(connection)} == set(REPORT_KINDS)
    assert [file.name for file in second.files] == ["drift.csv"]
    assert not Path(first.directory).exists()
    with pytest.raises(ConfigError, match="unknown report: 'nothing'"):
        ReportSpec.from_settings(world.settings, "nothing")
