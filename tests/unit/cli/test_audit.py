"""``audit``: keys, verification, export, and verification of an export without the index."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from federator.store import audit_log
from federator.store import tables as t
from tests.unit.cli.conftest import Shell


@pytest.fixture
def log(shell: Shell) -> Shell:
    """A shell with a key, an anchor and four events."""
    assert shell.run("audit", "keygen", str(shell.folder / "k.pem")).exit_code == 0
    with (shell.folder / "federator.toml").open("a") as file:
        file.write(f'[audit]\nkey = "file:{shell.folder}/k.pem"\nanchor = "file://{shell.folder}/anchors.jsonl"\n')
    index = shell.index()
    with index.write() as connection:
        for number in range(4):
            detail = {"action": "declare_table", "state": "done", "n": number}
            audit_log.append_event(connection, "write", actor="ann", run_id="r1", subject=f"copy$s{number}", detail=detail)
    index.close()
    return shell


def test_from_key_to_proof(log: Shell) -> None:
    assert log.json("audit", "export", "-o", str(log.folder / "out"))["through"] == 4
    proof = log.json("audit", "verify")
    assert (proof["intact"], proof["events"], proof["signed"], proof["anchored"], proof["tail"]) == (True, 4, 4, 4, "proven")
    message = log.run("audit", "verify").stdout
    assert message.startswith("intact: 4 events, head ")
    assert "the tail is proven" in message


def test_a_log_that_is_behind_its_anchor_is_partial(log: Shell) -> None:
    log.run("audit", "export", "-o", str(log.folder / "out"))
    index = log.index()
    with index.write() as connection:
        audit_log.append_event(connection, "write", actor="ann", run_id=None, subject="s", detail={})
    from federator import audit

    audit.seal_pending(index)
    index.close()
    result = log.run("audit", "verify")
    assert (result.exit_code, "signed up to event 4; the tail is unproven: anchored up to event 4" in result.stdout) == (
        3,
        True,
    )


def test_names_the_first_bad_event(log: Shell) -> None:
    log.run("audit", "export", "-o", str(log.folder / "out"))
    index = log.index()
    with index.write() as connection, audit_log.deletion_allowed(connection):
        connection.execute(update(t.audit_event).where(t.audit_event.c.seq == 2).values(actor="eve"))
    result = log.run("audit", "verify")
    assert (result.exit_code, result.stderr) == (1, "error: first bad event 2: event 2 was altered\n")
    with index.write() as connection, audit_log.deletion_allowed(connection):
        connection.execute(delete(t.audit_event))
        connection.execute(delete(t.audit_head))
    index.close()
    assert "first bad event 1: event 1 is missing, and all up to 4, which was anchored" in log.run("audit", "verify").stderr


def test_an_export_is_verified_without_configuration_or_index(log: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = log.folder / "out"
    log.run("audit", "export", "-o", str(out), "--from", "2")
    elsewhere = Shell(tmp_path_factory.mktemp("elsewhere"))
    words = ("audit", "verify", "--file", str(out), "--public-key", str(log.folder / "k.pem.pub"))
    proof = elsewhere.json(*words)
    assert (proof["intact"], proof["first"], proof["last"], proof["signed"]) == (True, 2, 4, 4)
    lines = (out / "events.jsonl").read_text().splitlines(keepends=True)
    (out / "events.jsonl").write_text("".join(lines[:-1]))
    assert elsewhere.run(*words).exit_code == 1
    assert "first bad event 4" in elsewhere.run(*words).stderr


@pytest.mark.parametrize("name", ["one.jsonl", "one.parquet"])
def test_an_export_may_be_one_file(log: Shell, name: str) -> None:
    path = log.folder / name
    assert log.run("audit", "export", "-o", str(path)).exit_code == 0
    words = ("audit", "verify", "--file", str(path), "--public-key", str(log.folder / "k.pem.pub"))
    assert log.json(*words)["events"] == 4
    again = log.run("audit", "export", "-o", str(path))
    assert (again.exit_code, "already exists" in again.stderr) == (1, True)


def test_rotate(log: Shell) -> None:
    assert log.json("audit", "rotate", "-o", str(log.folder / "none")) == {"path": None, "removed": 0, "through": 0}
    log.run("audit", "export", "-o", str(log.folder / "out"))
    moved = log.json("audit", "rotate", "-o", str(log.folder / "old"), "--through", "3")
    assert moved == {"path": str(log.folder / "old"), "removed": 3, "through": 3}
    proof = log.json("audit", "verify")
    assert (proof["intact"], proof["first"], proof["last"], proof["tail"]) == (True, 4, 5, "proven")


def test_rotate_wants_a_key(shell: Shell) -> None:
    shell.index().close()
    result = shell.run("audit", "rotate", "-o", str(shell.folder / "old"))
    assert (result.exit_code, "[audit] key is not set, but rotation signs a checkpoint" in result.stderr) == (64, True)


def test_list(log: Shell) -> None:
    index = log.index()
    with index.write() as connection:
        detail = {"role": "viewer", "scopes": ["lake", "copy"], "expires_at": time.time(), "plan": None}
        audit_log.append_event(connection, "token_created", actor="ann", run_id=None, subject="ci", detail=detail)
    index.close()
    log.run("audit", "export", "-o", str(log.folder / "out"))
    result = log.json("audit", "list", "--kind", "write", "--since", "1h", "--limit", "2")["events"]
    assert [(event["seq"], event["subject"], event["detail"]["n"]) for event in result] == [
        (4, "copy$s3", 3),
        (3, "copy$s2", 2),
    ]
    assert log.json("audit", "list", "--subject", "copy$s0")["events"][0]["seq"] == 1
    assert log.json("audit", "list", "--run", "none") == {"events": [], "more": False}
    printed = log.run("audit", "list").stdout
    assert re.search(r"  token_created  ann  ci  expires at [\d: -]+, role viewer, scopes lake copy$", printed, re.MULTILINE)
    # The time leaves room for subject and details in 80 columns.
    assert re.search(r"^ +4  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  write +ann  copy\$s3  declare_table done$", printed, re.MULTILINE)
    assert log.run("audit", "list", "--since", "yesterday").exit_code == 64


def test_no_private_key_is_ever_printed(log: Shell, tmp_path: Path) -> None:
    private = (log.folder / "k.pem").read_text().splitlines()[1]
    for words in (("audit", "export", "-o", str(tmp_path / "x")), ("audit", "verify"), ("audit", "list"), ("validate",)):
        result = log.run(*words)
        assert private not in result.output
    assert json.loads((tmp_path / "x" / "heads.json").read_text())["signature"]
    assert not any(private.encode() in path.read_bytes() for path in (tmp_path / "x").iterdir())
