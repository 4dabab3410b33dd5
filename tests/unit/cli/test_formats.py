"""The formats for programs: one shape of data in JSON, JSON lines and CSV, and times in ISO 8601."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import json
import pkgutil
from datetime import UTC, datetime
from typing import Any

import pytest

from federator import audit, views
from federator.cli.documents import Output, format_document
from federator.runtime.text import escape_cell
from federator.store import notifications, plans, reports
from federator.store.runs import finish_run, insert_run
from tests.unit.cli.conftest import Shell

#: command → key of its list
LISTS = {
    ("ls",): "nodes", ("ls", "lake/odd"): "nodes", ("search", "source:lake"): "nodes", ("datasets",): "datasets", ("drift",): "drift",
    ("runs",): "runs", ("plans", "list"): "plans", ("mirror", "list"): "mirrors", ("jobs", "list"): "jobs", ("reports",): "reports",
    ("audit", "list"): "events", ("token", "list"): "tokens", ("doctor",): "checks", ("notifications", "list"): "notifications",
}  # fmt: skip


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_list_has_the_same_entries_in_each_format(filled: Shell, words: tuple[str, ...]) -> None:
    document = json.loads(filled.run(*words, "--output", "json").stdout)
    entries = document[LISTS[words]]
    lines = [json.loads(line) for line in filled.run(*words, "--output", "jsonl").stdout.splitlines()]
    rows = list(csv.DictReader(io.StringIO(filled.run(*words, "--output", "csv").stdout, newline="")))
    if words == ("doctor",):
        # How long each check took differs from run to run.
        entries, lines = ([{**entry, "seconds": 0} for entry in listed] for listed in (entries, lines))
    assert lines == entries
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        texts = {key: escape_cell(value) for key, value in entry.items() if isinstance(value, str)}
        assert {key: row[key] for key in texts} == texts
        assert all(row[key] == "" for key, value in entry.items() if value is None)


@pytest.mark.parametrize("words", [("tree",), ("tree", "lake/odd"), ("tree", "--view", "merged")], ids=" ".join)
def test_a_tree_is_nested_in_json_and_one_entry_a_line_elsewhere(filled: Shell, words: tuple[str, ...]) -> None:
    def below(entries: list[dict[str, Any]]) -> list[str]:
        return [name for entry in entries for name in (entry["id"], *below(entry.get("children", [])))]

    document = json.loads(filled.run(*words, "--output", "json").stdout)
    ids = below(document["children"])
    assert len(ids) > 5
    lines = [json.loads(line) for line in filled.run(*words, "--output", "jsonl").stdout.splitlines()]
    assert [line["id"] for line in lines] == ids
    assert not any("children" in line for line in lines)
    rows = list(csv.DictReader(io.StringIO(filled.run(*words, "--output", "csv").stdout, newline="")))
    assert [row["id"] for row in rows] == [escape_cell(name) for name in ids]


#: list → a filter that nothing matches; without one, the list of a fresh index is empty
EMPTY = {
    ("ls",): None, ("search", "source:lake"): ("search", "zzzzzz"), ("datasets",): ("datasets", "--state", "corrupt"),
    ("drift",): ("drift", "--kind", "orphan"), ("runs",): None, ("plans", "list"): ("plans", "list", "--held"),
    ("reports",): None, ("audit", "list"): ("audit", "list", "--subject", "none"), ("token", "list"): None,
    ("notifications", "list"): None,
}  # fmt: skip


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_an_empty_list_has_its_header_in_csv(filled: Shell, words: tuple[str, ...]) -> None:
    entries = filled.json(*words)[LISTS[words]]
    nothing = EMPTY[words] or words
    if EMPTY[words] is None:
        for file in filled.folder.glob("federator.db*"):
            file.unlink()
        filled.index().close()
    (header,) = csv.reader(io.StringIO(filled.run(*nothing, "--output", "csv").stdout))
    assert filled.json(*nothing)[LISTS[words]] == []
    assert len(header) > 3
    if entries:
        assert header == list(entries[0])


def test_one_object_is_one_line(filled: Shell) -> None:
    document = filled.json("show", "lake/sales/orders")
    line = filled.run("show", "lake/sales/orders", "--output", "jsonl").stdout
    assert line.count("\n") == 1
    assert json.loads(line) == document
    (row,) = csv.DictReader(io.StringIO(filled.run("show", "lake/sales/orders", "--output", "csv").stdout))
    assert (row["location"], json.loads(row["properties"])) == (document["location"], document["properties"])


def test_times_are_iso_in_utc(filled: Shell) -> None:
    assert datetime.fromisoformat(filled.json("show", "lake")["crawled_at"]) == datetime.fromtimestamp(1.0, UTC)


def test_an_error_is_json_in_each_format_for_programs(filled: Shell) -> None:
    errors = [filled.run("show", "lake/nothing", "--output", output) for output in ("json", "jsonl", "csv")]
    assert {(error.exit_code, error.stdout) for error in errors} == {(64, "")}
    assert len({json.loads(error.stderr)["error"]["message"] for error in errors}) == 1


def test_a_cut_list_says_so(filled: Shell) -> None:
    result = filled.run("datasets", "--limit", "1", "--output", "jsonl")
    assert len(result.stdout.splitlines()) == 1
    assert "--limit" in result.stderr


_BODY = {"counts": {"source_failed": 1}, "group": {}, "first": []}


def test_each_list_of_what_happened_says_that_there_is_more(filled: Shell) -> None:
    index, body = filled.index(), '{"changes": [], "refusals": [], "held": []}'
    # Each finished run is in the audit log, too.
    for name in ("a", "b"):
        finish_run(index, insert_run(index, "plan"), "ok", summary={})
        with index.write() as connection:
            plans.save_plan(connection, digest=name, mirror="nightly", run_id="run", state="ready", body=body)
            reports.insert_report(connection, reports.StoredReport(name, "drift", name, "ann", 1.0, "/reports", ()))
            notifications.queue_notification(connection, "ops", name, severity="error", events=1, body=_BODY, due_at=0.0)
    audit.seal_pending(index)
    index.close()
    for words in (
        ["runs"],
        ["plans", "list"],
        ["reports"],
        ["audit", "list", "--kind", "run_finished"],
        ["notifications", "list"],
    ):
        cut = filled.run(*words, "--limit", "1")
        assert cut.stderr == "there are more; --limit 4 shows more of them\n", words
        assert len(cut.stdout.splitlines()) == 2, words
        assert filled.run(*words, "--limit", "2").stderr == "", words
        assert [filled.json(*words, "--limit", limit)["more"] for limit in ("1", "2")] == [True, False], words
        for output in ("table", "jsonl", "csv"):
            noted, quiet = (filled.run("--output", output, *options, *words, "--limit", "1") for options in ([], ["--quiet"]))
            assert "there are more; --limit" in noted.stderr, (output, words)
            assert (bool(quiet.stdout), quiet.stderr) == (True, ""), (output, words)


def test_every_time_of_a_view_is_iso_text() -> None:
    """The views mark times by a type, which data for ``--output`` no longer has: their names must be those that are formatted."""
    names = set()
    for module in pkgutil.iter_modules(views.__path__):
        for item in vars(importlib.import_module(f"federator.views.{module.name}")).values():
            if isinstance(item, type) and dataclasses.is_dataclass(item):
                names |= {field.name for field in dataclasses.fields(item) if "Timestamp" in str(field.type)}
    assert {"verified_since", "crawled_at"} <= names
    document = json.loads(format_document(dict.fromkeys(names, 1.5), Output.JSON))
    assert {name for name, value in document.items() if value != "1970-01-01T00:00:01.500000Z"} == set()
