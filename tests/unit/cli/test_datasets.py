"""``datasets`` and ``drift``: locations and their differences, as a table and as JSON."""

from __future__ import annotations

import pytest

from federator.lance.inspection import Inspection
from federator.store import Index, drift_detection, verifications
from federator.store import tables as t
from tests.unit.cli.conftest import Shell


def test_each_dataset_is_listed_once_with_all_its_declarations(filled: Shell) -> None:
    lines = filled.run("datasets").stdout.splitlines()
    assert lines[0].split() == ["location", "state", "declared", "as", "note"]
    assert len(lines) == 1 + 11
    line = next(line for line in lines if "orders.lance" in line)
    assert line.split() == ["s3://lake/orders.lance", "unverified", "copy$sales$orders,", "lake$sales$orders"]
    assert filled.run("datasets", "--declared-in", "copy").stdout.splitlines()[1:] == [
        "s3://lake/orders.lance  unverified  copy$sales$orders, lake$sales$orders"
    ]
    assert "there are more" in filled.run("datasets", "--limit", "1").stderr


def test_control_characters_in_names_do_not_reach_the_terminal(filled: Shell) -> None:
    assert "\x1b" not in filled.run("datasets").stdout


def test_a_dataset_is_shown_by_any_spelling_of_its_location(filled: Shell) -> None:
    printed = filled.run("datasets", "s3n://lake/orders.lance/").stdout
    for part in ("s3://lake/orders.lance", "unverified", "2 declarations", "s3a://lake/orders.lance/", "copy$sales$orders"):
        assert part in printed
    result = filled.json("datasets", "s3a://lake/orders.lance")
    assert [declared["id"] for declared in result["declarations"]] == ["copy$sales$orders", "lake$sales$orders"]
    assert (result["disagreements"], result["duplicates"], result["verified"]) == ([], [], None)


def save_missing(index: Index, location: str, *, message: str) -> None:
    with index.write() as connection:
        inspection = Inspection("missing", message)
        verifications.save_inspection(connection, inspection, canonical=location, location=location, through="lake", access="")


def test_datasets_are_filtered_by_state_and_conflicts(filled: Shell) -> None:
    index = filled.index()
    save_missing(index, "s3://lake/orders.lance", message="no such place")
    index.close()
    assert [result["location"] for result in filled.json("datasets", "--state", "missing")["datasets"]] == [
        "s3://lake/orders.lance"
    ]
    assert len(filled.json("datasets", "--state", "unverified")["datasets"]) == 10
    assert filled.json("datasets", "--conflicts") == {"datasets": [], "more": False}
    assert "no such place" in filled.run("datasets", "s3://lake/orders.lance").stdout
    assert "no dataset matches" in filled.run("datasets", "--conflicts").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["datasets", "--state", "odd"], "'odd' is not a verification state"),
        (["drift", "--source", "nope"], "no source 'nope' is in the index"),
        (["datasets", "--declared-in", "nope"], "no source 'nope' is in the index"),
        (["diff", "--source", "nope"], "no source 'nope' is in the index"),
        (["diff", "--path", "nope$sales"], "no source 'nope' is in the index"),
        (["tree", "nope"], "no source 'nope' is in the index"),
        (["ls", "nope"], "no source 'nope' is in the index"),
        (["show", "nope"], "no source 'nope' is in the index"),
        (["show", "nope$sales$orders"], "no source 'nope' is in the index"),
        (["explain", "nope$sales$orders"], "no source 'nope' is in the index"),
        (["crawl", "nope"], "no source is called 'nope'"),
        (["sources", "confirm", "nope"], "no source is called 'nope'"),
    ],
)
def test_a_name_that_does_not_exist_is_one_mistake_in_every_command(filled: Shell, words: list[str], message: str) -> None:
    result = filled.run(*words)
    assert (result.exit_code, result.stdout) == (64, ""), result.stderr
    assert result.stderr.startswith(f"error: {message}\nhint: ")


def test_a_location_without_a_declaration_is_one_line(filled: Shell) -> None:
    result = filled.run("datasets", "s3://lake/nothing")
    assert (result.exit_code, result.stdout) == (64, "")
    assert result.stderr.startswith("error: no table is declared at s3://lake/nothing\nhint: ")


def test_drift_is_listed_filtered_and_an_empty_list_is_reported(filled: Shell) -> None:
    assert "no drift" in filled.run("drift").stderr
    assert filled.json("drift") == {"drift": [], "more": False}
    index = filled.index()
    save_missing(index, "s3://lake/orders.lance", message="x")
    drift_detection.refresh_drift(index, {})
    index.close()
    lines = filled.run("drift").stdout.splitlines()
    assert lines[1].split()[:4] == ["high", "missing", "copy$sales$orders", "s3://lake/orders.lance"]
    assert len(lines) == 3
    (observed,) = filled.json("drift", "--kind", "missing", "--severity", "high", "--source", "lake")["drift"]
    assert (observed["subject"], observed["detail"], observed["resolved_at"]) == (
        "lake$sales$orders",
        "nothing is at its location",
        None,
    )
    assert filled.json("drift", "--limit", "1")["more"] is True
    index = filled.index()
    least = {"kind": "duplicate", "severity": "low", "source": "lake", "subject": "lake$a", "other": "lake$b", "detail": ""}
    with index.write() as connection:
        connection.execute(t.drift.insert(), [{**least, "first_seen": 1.0, "last_seen": 1.0}])
    index.close()
    assert [line.split()[0] for line in filled.run("drift").stdout.splitlines()[1:]] == ["high", "high", "low"]
    assert filled.json("drift", "--limit", "1")["drift"][0]["severity"] == "high"
    assert filled.json("drift", "--kind", "orphan")["drift"] == filled.json("drift", "--resolved")["drift"] == []
    assert filled.run("drift", "--kind", "odd").exit_code == 64
