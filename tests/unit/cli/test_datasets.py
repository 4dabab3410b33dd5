"""``datasets`` and ``drift``: locations and their differences, as a table and as JSON."""

from __future__ import annotations

import pytest

from federator.store import drift_detection, verifications
from tests.unit.cli.conftest import Shell


def test_every_dataset_once_with_all_its_declarations(filled: Shell) -> None:
    lines = filled.run("datasets").stdout.splitlines()
    assert lines[0].split() == ["location", "state", "declared", "as", "note"]
    assert len(lines) == 1 + 11
    line = next(line for line in lines if "orders.lance" in line)
    assert line.split() == ["s3://lake/orders.lance", "unverified", "copy$sales$orders,", "lake$sales$orders"]
    assert filled.run("datasets", "--declared-in", "copy").stdout.splitlines()[1:] == [
        "s3://lake/orders.lance  unverified  copy$sales$orders, lake$sales$orders"
    ]
    assert "there are more" in filled.run("datasets", "--limit", "1").stderr


def test_names_steer_nothing(filled: Shell) -> None:
    assert "\x1b" not in filled.run("datasets").stdout


def test_one_dataset_in_any_spelling(filled: Shell) -> None:
    printed = filled.run("datasets", "s3n://lake/orders.lance/").stdout
    for part in ("s3://lake/orders.lance", "unverified", "2 declarations", "s3a://lake/orders.lance/", "copy$sales$orders"):
        assert part in printed
    result = filled.json("datasets", "s3a://lake/orders.lance")
    assert [declared["id"] for declared in result["declarations"]] == ["copy$sales$orders", "lake$sales$orders"]
    assert (result["disagreements"], result["duplicates"], result["verified"]) == ([], [], None)


def test_states_and_conflicts_select(filled: Shell) -> None:
    index = filled.index()
    row = {
        "canonical": "s3://lake/orders.lance", "location": "s3://lake/orders.lance", "state": "missing", "message": "no such place",
        "version": None, "rows": None, "fragments": None, "schema": None, "checked_at": 1.0, "checked_through": "lake",
    }  # fmt: skip
    with index.write() as connection:
        verifications.save_verifications(connection, [row])
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
        (["datasets", "s3://lake/nothing"], "no table is declared at s3://lake/nothing"),
        (["datasets", "--state", "odd"], "'odd' is not a verification state"),
        (["drift", "--source", "nope"], "no source 'nope' is in the index"),
        (["datasets", "--declared-in", "nope"], "no source 'nope' is in the index"),
    ],
)
def test_what_is_not_there_is_one_line(filled: Shell, words: list[str], message: str) -> None:
    result = filled.run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {message}\nhint: ")


def test_drift_is_listed_filtered_and_an_empty_list_is_reported(filled: Shell) -> None:
    assert "no drift" in filled.run("drift").stderr
    assert filled.json("drift") == {"drift": [], "more": False}
    index = filled.index()
    row = {
        "canonical": "s3://lake/orders.lance", "location": "s3://lake/orders.lance", "state": "missing", "message": "x",
        "version": None, "rows": None, "fragments": None, "schema": None, "checked_at": 1.0, "checked_through": "lake",
    }  # fmt: skip
    with index.write() as connection:
        verifications.save_verifications(connection, [row])
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
    assert filled.json("drift", "--kind", "duplicate")["drift"] == filled.json("drift", "--resolved")["drift"] == []
    assert filled.run("drift", "--kind", "odd").exit_code == 64
