"""``tree``, ``ls``, ``show`` and ``search``: output of the index, with unsafe characters escaped."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

import pytest

from federator.connector import ConfigError
from federator.model import NamespaceRecord, TableRecord
from federator.store import tables as t
from tests.unit.cli.conftest import CONFIG, COPY, ODD, Fill, Shell, sample


def test_tree_shows_sources_namespaces_and_tables(filled: Shell) -> None:
    lines = filled.run("tree").stdout.splitlines()
    assert lines[:3] == ["copy", "└── sales", "    └── orders  s3a://lake/orders.lance/"]
    assert "├── empty" in lines
    assert "    └── orders  s3://lake/orders.lance" in lines


def test_tree_stops_at_a_depth_and_starts_at_a_path(filled: Shell) -> None:
    assert filled.run("tree", "--depth", "1").stdout.splitlines() == ["copy", "lake"]
    assert filled.run("tree", "lake$sales").stdout == filled.run("tree", "lake/sales").stdout
    assert filled.run("tree", "lake/sales").stdout.splitlines() == [
        "lake$sales",
        "├── items  s3://lake/items.lance",
        "└── orders  s3://lake/orders.lance",
    ]


def test_tree_says_how_many_children_it_leaves_out(filled: Shell) -> None:
    assert filled.run("tree", "lake/sales", "--limit", "1").stdout.splitlines() == [
        "lake$sales",
        "├── items  s3://lake/items.lance",
        "└── … 1 more: --limit 2",
    ]
    merged = filled.run("tree", "sales", "--view", "merged", "--limit", "1").stdout.splitlines()
    assert merged[-1] == "└── … 1 more: --limit 2"
    assert "more" not in filled.run("tree", "--limit", "20").stdout


@pytest.mark.parametrize("command", [["tree"], ["ls", "lake/odd"], ["ls", "-l", "lake/odd"], ["search", "lake"]])
def test_names_print_as_they_are_and_steer_nothing(filled: Shell, command: list[str]) -> None:
    printed = filled.run(*command).stdout
    for name in ("[red]x[/red]", ":smile:", "🦆", "a.b c", "\\x1b[31mred", "two\\nlines", "l" * 500):
        assert name in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize("command", [["tree"], ["ls", "-l"], ["show", "copy"]])
def test_an_error_with_a_hint_is_one_line(filled: Shell, command: list[str]) -> None:
    error = ConfigError("/copy: the directory does not exist", hint="create or mount it")
    with closing(filled.index()) as index, index.write() as connection:
        connection.execute(t.source.update().where(t.source.c.name == "copy").values(state="failed", message=str(error)))
    printed = filled.run(*command).stdout
    assert "/copy: the directory does not exist; create or mount it" in printed
    assert "\\n" not in printed.replace("two\\nlines", "")


def test_tree_merged_is_one_tree_over_all_sources(filled: Shell) -> None:
    lines = filled.run("tree", "--view", "merged").stdout.splitlines()
    assert "sales  (copy, lake)" in lines
    assert "└── orders  s3a://lake/orders.lance/  (copy$sales$orders, lake$sales$orders)" in lines
    (sales,) = filled.json("tree", "sales", "--view", "merged", "--depth", "1")["children"][-1:]
    assert (sales["id"], sales["conflict"], sales["default"]) == ("sales$orders", False, "copy$sales$orders")
    assert (
        filled.json("tree", "sales", "--view", "merged", "--depth", "1", "--as-of", "now")["children"][-1]["id"] == sales["id"]
    )
    assert filled.json("tree", "--view", "merged", "--as-of", "-1d")["children"] == []


def test_paths_that_ls_prints_can_be_typed(filled: Shell) -> None:
    for name in filled.run("ls", "lake$odd").stdout.splitlines():
        if "\\" not in name:
            assert filled.run("show", f"lake$odd${name}").exit_code == 0, name


def test_tree_json_is_nested(filled: Shell) -> None:
    data = filled.json("tree")
    assert [node["id"] for node in data["children"]] == ["copy", "lake"]
    odd = next(node for node in data["children"][1]["children"] if node["name"] == "odd")
    assert [node["name"] for node in odd["children"]] == sorted(ODD)
    assert set(odd["children"][0]) == {"id", "name", "kind", "location", "coverage", "verified", "message"}


def test_tree_json_is_the_same_from_any_index_of_the_same_sources(filled: Shell, fill: Fill) -> None:
    first = filled.run("tree", "--output", "json").stdout_bytes
    for file in filled.folder.glob("federator.db*"):
        file.unlink()
    index = filled.index()
    fill(index, "copy", COPY)
    fill(index, "lake", sample("lake")[::-1][:4])
    fill(index, "lake", sample("lake")[::-1])
    index.close()
    assert filled.run("tree", "--output", "json").stdout_bytes == first


def test_tree_json_is_the_same_from_sqlite_and_postgresql(
    filled: Shell, fill: Fill, postgres_database: Callable[[], str]
) -> None:
    first = filled.run("tree", "--output", "json").stdout_bytes
    url = postgres_database()
    (filled.folder / "federator.toml").write_text(CONFIG.format(folder=filled.folder, index=url))
    index = filled.index(url)
    fill(index, "lake", sample("lake"))
    fill(index, "copy", COPY)
    index.close()
    assert filled.run("tree", "--output", "json").stdout_bytes == first
    checked = filled.run("db", "check").stdout
    assert "postgresql+psycopg://" in checked
    assert "up to date" in checked


def test_json_is_one_document_in_utf8(filled: Shell) -> None:
    raw = filled.run("tree", "--output", "json").stdout_bytes
    assert "🦆".encode() in raw
    json.loads(raw)


def test_ls_marks_what_holds_others(filled: Shell) -> None:
    assert filled.run("ls").stdout.splitlines() == ["copy$", "lake$"]
    assert filled.run("ls", "lake").stdout.splitlines() == ["empty$", "odd$", "sales$"]
    assert filled.run("ls", "lake/sales").stdout.splitlines() == ["items", "orders"]
    assert filled.run("ls", "lake/sales/items").stdout.splitlines() == ["items"]


def test_show_has_everything(filled: Shell) -> None:
    printed = filled.run("show", "lake/sales/orders").stdout
    for part in ("s3://lake/orders.lance", "All orders", "anna", "[bold]eu[/bold]", "copy$sales$orders", "not opened yet"):
        assert part in printed
    data = filled.json("show", "lake$sales$orders")
    assert data["also_declared"] == ["copy$sales$orders"]
    assert data["not_mirrored"] == []


def test_show_of_a_source(filled: Shell) -> None:
    assert filled.json("show", "lake")["tables"] == len(ODD) + 2
    assert "namespaces" in filled.run("show", "lake").stdout


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        (["show", "lake/sales/nothing"], "there is no table lake$sales$nothing", "federator search nothing"),
        (["show", "lake/sales"], "lake$sales is a namespace, not a table", "federator ls 'lake$sales'"),
        (["ls", "lake/nothing"], "there is no namespace lake$nothing", "federator tree lists the namespaces"),
    ],
)
def test_what_is_not_there_is_one_line_and_a_hint(filled: Shell, command: list[str], message: str, hint: str) -> None:
    result = filled.run(*command)
    assert (result.exit_code, result.stdout) == (64, "")
    assert result.stderr == f"error: {message}\nhint: {hint}\n"


def test_an_error_as_json(filled: Shell) -> None:
    result = filled.run("--output", "json", "ls", "lake/nothing")
    error = json.loads(result.stderr)["error"]
    assert (error["type"], error["code"]) == ("NamespaceNotFound", 1)
    assert error["hint"]


def test_search_finds_in_every_field_and_says_what_it_left(filled: Shell) -> None:
    expected = ["lake$sales$orders", "s3://lake/orders.lance"]
    assert filled.run("search", "ALL ORD*").stdout.splitlines()[1].split() == expected
    assert filled.run("search", "orders", "--source", "lake", "--namespace", "sales").stdout.splitlines()[1].split() == expected
    counted = json.loads(filled.run("--output", "json", "search", "name:orders", "--facets").stdout)["facets"]
    assert (counted["source"], counted["exact"]) == ([{"value": "copy", "count": 1}, {"value": "lake", "count": 1}], True)
    result = filled.run("search", "lake", "--limit", "2")
    assert len(result.stdout.splitlines()) == 3
    assert "tables match; --limit 8 shows more of them" in result.stderr
    nothing = filled.run("search", "nowhere at all")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "no table matches nowhere at all" in nothing.stderr


@pytest.mark.parametrize("command", [["show"], ["ls"], ["tree"]])
def test_dots_between_levels_are_recognised(filled: Shell, command: list[str]) -> None:
    result = filled.run(*command, "lake.sales.orders")
    assert result.exit_code == 64
    assert result.stderr.endswith("\nhint: did you mean 'lake$sales$orders'?\n")


def test_a_search_finds_similar_names_and_says_so(filled: Shell) -> None:
    result = filled.run("search", "ordres source:copy")
    assert result.stdout.splitlines()[1].split()[0] == "copy$sales$orders"
    assert "no table matches ordres source:copy; these have similar names: orders source:copy" in result.stderr
    body = json.loads(filled.run("--output", "json", "search", "ordres source:copy").stdout)
    (node,) = body["nodes"]
    assert node["match"] == {
        "kind": "typo",
        "parts": [
            {"field": "name", "text": "orders", "ranges": [[0, 6]], "key": None},
            {"field": "namespace", "text": "copy", "ranges": [[0, 4]], "key": "copy"},
        ],
    }
    assert (body["total"], body["did_you_mean"]) == ({"count": 1, "exact": True}, ["orders source:copy"])


def test_a_query_that_cannot_be_understood_is_a_usage_error(filled: Shell) -> None:
    result = filled.run("search", "ownr:ana")
    assert (result.exit_code, result.stdout) == (64, "")
    assert result.stderr.startswith("error: 'ownr' is not a field of the search; did you mean 'owner'?\nhint: fields: name, ")
    error = json.loads(filled.run("--output", "json", "search", "--state", "nonsense").stderr)["error"]
    assert error["message"] == "'nonsense' is not a verification state"


def test_a_search_leaves_out_what_a_negated_term_matches(filled: Shell) -> None:
    every, rest = (
        filled.run("--output", "json", "search", text).stdout for text in ("name:orders", "name:orders NOT source:copy")
    )
    assert [node["id"] for node in json.loads(every)["nodes"]] == ["copy$sales$orders", "lake$sales$orders"]
    assert [node["id"] for node in json.loads(rest)["nodes"]] == ["lake$sales$orders"]


def test_no_command_prints_a_secret_that_a_catalog_repeats(shell: Shell, fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_KEY", "planted-key-of-the-lake")
    file = shell.folder / "federator.toml"
    file.write_text(file.read_text() + '[sources.copy.storage]\nconnection_string = "${LAKE_KEY}"\n')
    properties = {"note": "has planted-key-of-the-lake", "password": "planted", "url": "https://u:planted@host", "kept": "yes"}
    doc = "see planted-key-of-the-lake"
    record = TableRecord("lake", ("sales", "orders"), "s3://u:planted@b/orders.lance", properties, doc=doc)
    with closing(shell.index()) as index:
        fill(index, "lake", [NamespaceRecord("lake", ("sales",)), record])
    for command in (
        "show lake$sales$orders", "show lake$sales$orders --as-of now", "search orders", "ls -l lake$sales", "tree", "datasets",
        "diff --from 2020-01-01 --to now", "explain lake$sales$orders", "tree --view merged",
    ):  # fmt: skip
        for more in ((), ("--output", "json")):
            result = shell.run(*command.split(), *more)
            assert result.exit_code == 0, (command, result.output)
            assert "planted" not in result.output, (command, more)
    shown = shell.json("show", "lake$sales$orders")["properties"]
    assert shown == {"kept": "yes", "note": "has (masked)", "password": "(masked)", "url": "https://(masked)@host"}
