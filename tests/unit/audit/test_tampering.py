"""Tampering: an owner of the database can bypass its triggers, but verification detects each change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select, update

from federator.audit.export import COLUMNS, export, verify_export
from federator.audit.keys import Signer, generate_key_pair, load_public_keys, load_signer
from federator.audit.sealing import seal_event
from federator.connector import StateError
from federator.model import canonical_json
from federator.store import DatabaseError, Index, audit_log
from federator.store import tables as t
from tests.unit.audit.conftest import Log

Row = dict[str, Any]
COUNT = 9
# Three seals, with a head each.
SEALS = (("a", "b", "c"), ("d", "e"), ("f", "g", "h", "i"))

EDITS: dict[str, Row] = {
    "number": {"seq": 99},
    "subject": {"subject": "other"},
    "actor": {"actor": "eve"},
    "time": {"at": 1.0},
    "kind": {"kind": "x"},
    "run": {"run_id": None},
    "digest": {"digest": "0"},
    "previous": {"previous": "0"},
    "emptied": {"event": "{}"},
    "no JSON": {"event": "no"},
}


@pytest.fixture
def sealed(log: Log) -> Log:
    for subjects in SEALS:
        log.add(*subjects)
    proof = log.prove()
    assert (proof.finding, proof.first, proof.last, proof.signed, proof.anchored) == (None, 1, COUNT, COUNT, COUNT)
    assert proof.tail == "proven"
    return log


class Rewriting:
    """Rewrites the log as its owner, and rolls it back after the look."""

    def __init__(self, log: Log) -> None:
        self.log = log
        with log.index.read() as connection:
            self.rows: list[Row] = [dict(row) for row in connection.execute(select(t.audit_event)).mappings()]

    def finds(self, rows: Sequence[Mapping[str, Any]], **how: bool) -> int | None:
        """Puts rows in place of the log; returns the first bad event that is found."""
        self._put(rows)
        try:
            return self.log.bad(**how)
        finally:
            self._put(self.rows)

    def _put(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with self.log.index.write() as connection, audit_log.deletion_allowed(connection):
            connection.execute(delete(t.audit_event))
            if rows:
                connection.execute(insert(t.audit_event), [dict(row) for row in rows])


def without(rows: Sequence[Row], seq: int) -> list[Row]:
    return [row for row in rows if row["seq"] != seq]


def edited(rows: Sequence[Row], seq: int, values: Mapping[str, Any]) -> list[Row]:
    return [{**row, **values} if row["seq"] == seq else row for row in rows]


def swapped(rows: Sequence[Row], seq: int) -> list[Row]:
    """Two neighbours with each other's numbers."""
    turned = {seq: seq + 1, seq + 1: seq}
    return sorted(({**row, "seq": turned.get(row["seq"], row["seq"])} for row in rows), key=lambda row: row["seq"])


def inserted(rows: Sequence[Row], seq: int) -> list[Row]:
    """One more event at a number, those after it moved up."""
    made = asdict(seal_event(seq, event("forged"), rows[seq - 1]["previous"]))
    return [*rows[: seq - 1], made, *({**row, "seq": row["seq"] + 1} for row in rows[seq - 1 :])]


def event(subject: str) -> str:
    return canonical_json({"at": 1.0, "kind": "write", "actor": "eve", "run_id": "r", "subject": subject, "detail": {}})


def chained(texts: Sequence[str]) -> list[Row]:
    """A chain that holds in itself: what somebody makes who knows the code and has no key."""
    rows: list[Row] = []
    for seq, text in enumerate(texts, 1):
        rows.append(asdict(seal_event(seq, text, rows[-1]["digest"] if rows else "")))
    return rows


def test_every_position_of_a_real_chain(sealed: Log) -> None:
    owner = Rewriting(sealed)
    rows, how = owner.rows, {"anchored": False, "signed": False}
    for seq in range(1, COUNT + 1):
        for name, values in EDITS.items():
            if name != "number":
                assert owner.finds(edited(rows, seq, values), **how) == seq, (name, seq)
        assert owner.finds(without(rows, seq), **how) == seq
        # Where a head stands, it tells that one since the head before is forged, and not which.
        assert owner.finds(inserted(rows, seq), **how) == {3: 1, 5: 4, 9: 6}.get(seq, seq + 1)
        if seq < COUNT:
            assert owner.finds(swapped(rows, seq), **how) == seq
        # A tail that is cut off, or a log that is emptied: the recorded heads know.
        assert owner.finds(rows[: seq - 1], **how) == seq
    assert sealed.bad() is None


def test_a_rewritten_chain_is_detected_by_signature_and_by_anchor(sealed: Log) -> None:
    owner = Rewriting(sealed)
    texts = [row["event"] for row in owner.rows]
    heads = [3, 5, 9]
    for seq in range(1, COUNT + 1):
        last = max((head for head in heads if head < seq), default=0)
        for forged in (
            chained([*texts[: seq - 1], event("other"), *texts[seq:]]),
            chained([*texts[: seq - 1], *texts[seq:], event("filled up")]),
            chained([*texts[: seq - 1], event("more"), *texts[seq - 1 :]]),
            chained([*texts[: seq - 1], *(event("tail") for _ in range(COUNT))]),
        ):
            # Between two heads nobody can tell which event it was: the first that no head proves is named.
            assert owner.finds(forged, anchored=False) == last + 1
            assert owner.finds(forged, signed=False) == last + 1


def test_heads_that_go_with_the_tail_are_missed_at_the_anchor(sealed: Log) -> None:
    for left in (8, 5, 4, 3, 0):
        with sealed.index.write() as connection, audit_log.deletion_allowed(connection):
            connection.execute(delete(t.audit_event).where(t.audit_event.c.seq > left))
            connection.execute(delete(t.audit_head).where(t.audit_head.c.seq > left))
        assert sealed.bad() == left + 1
    assert sealed.bad(anchored=False) is None


def test_heads_signed_by_another_key_are_found(sealed: Log, tmp_path: Path) -> None:
    generate_key_pair(tmp_path / "eve.pem")
    eve = load_signer(f"file:{tmp_path / 'eve.pem'}", where="key")
    rows = chained([event(str(number)) for number in range(COUNT)])
    with sealed.index.write() as connection, audit_log.deletion_allowed(connection):
        connection.execute(delete(t.audit_event))
        connection.execute(delete(t.audit_head))
        connection.execute(insert(t.audit_event), rows)
    mine = Log(sealed.index, eve, sealed.anchor)
    mine.publish()
    assert mine.bad(anchored=False) is None
    assert sealed.bad(anchored=False) == COUNT
    assert sealed.bad() == 1


def test_an_anchor_that_lost_a_head_is_found(sealed: Log) -> None:
    lines = sealed.anchor.path.read_text().splitlines(keepends=True)
    sealed.anchor.path.write_text("".join(lines[:-1]))
    assert sealed.bad() == COUNT


def test_an_unpublished_tail_is_unproven(sealed: Log) -> None:
    with sealed.index.write() as connection:
        audit_log.append_event(connection, "write", actor="a", run_id=None, subject="s", detail={})
    assert sealed.prove().unsealed == 1
    from federator.audit import seal_pending

    seal_pending(sealed.index)
    proof = sealed.prove()
    assert (proof.finding, proof.last, proof.anchored, proof.tail) == (None, COUNT + 1, COUNT, "unproven")
    sealed.publish()
    assert sealed.prove().tail == "proven"


# The database's own refusal.

STATEMENTS: dict[str, Callable[[Connection], Any]] = {
    "update": lambda c: c.execute(update(t.audit_event).where(t.audit_event.c.seq == 2).values(subject="x")),
    "update of all": lambda c: c.execute(update(t.audit_event).values(actor="eve")),
    "delete": lambda c: c.execute(delete(t.audit_event).where(t.audit_event.c.seq == COUNT)),
    "delete of all": lambda c: c.execute(delete(t.audit_event)),
}
OWN: dict[str, list[str]] = {
    "sqlite": ["INSERT OR REPLACE INTO audit_event SELECT * FROM audit_event WHERE seq = 2"],
    "postgresql": [
        "TRUNCATE audit_event",
        "INSERT INTO audit_event SELECT * FROM audit_event WHERE seq = 2 ON CONFLICT (seq) DO UPDATE SET subject = 'x'",
    ],
}


def test_the_database_refuses_to_change_sealed_events(sealed: Log) -> None:
    own = [lambda c, s=statement: c.exec_driver_sql(s) for statement in OWN[sealed.index.engine.dialect.name]]
    for attempt in (*STATEMENTS.values(), *own):
        with pytest.raises(DatabaseError, match="neither changed nor deleted"), sealed.index.write() as connection:
            attempt(connection)
    assert sealed.bad() is None


def test_the_guard_is_back_after_a_rotation_that_failed(sealed: Log) -> None:
    with pytest.raises(ZeroDivisionError), sealed.index.write() as connection, audit_log.deletion_allowed(connection):
        connection.execute(delete(t.audit_event).where(t.audit_event.c.seq == 1 // 0))
    test_the_database_refuses_to_change_sealed_events(sealed)


# Exports.


@pytest.fixture
def exported(sealed: Log, tmp_path: Path) -> Path:
    export(sealed.index, tmp_path / "export", start=2, signer=sealed.signer)
    return tmp_path / "export"


def keys_of(signer: Signer) -> Mapping[str, Any]:
    return {signer.id: signer.public}


def test_an_export_is_proven_without_the_index(exported: Path, sealed: Log, key: Path) -> None:
    sealed.index.close()
    for path in (exported, exported / "events.jsonl", exported / "events.parquet"):
        if path.is_file():
            (exported / f"{path.name}.heads.json").write_text((exported / "heads.json").read_text())
        proof = verify_export(path, keys=load_public_keys([key.with_name("audit.pem.pub")]))
        assert (proof.finding, proof.first, proof.last, proof.signed) == (None, 2, COUNT, COUNT)


def test_every_position_of_an_exported_file(exported: Path, sealed: Log) -> None:
    rows = [json.loads(line) for line in (exported / "events.jsonl").read_text().splitlines()]
    assert [row["seq"] for row in rows] == list(range(2, COUNT + 1))
    for write, name in ((write_lines, "events.jsonl"), (write_parquet, "events.parquet")):
        path = exported / name
        whole = path.read_bytes()

        def finds(changed: Sequence[Row], path: Path = path, write: Callable[..., None] = write) -> int | None:
            write(path, changed)
            finding = verify_export(exported, keys=keys_of(sealed.signer)).finding
            return finding.seq if finding else None

        assert finds(rows) is None
        for at, row in enumerate(rows):
            seq = row["seq"]
            for name_, values in EDITS.items():
                assert finds([*rows[:at], {**row, **values}, *rows[at + 1 :]]) == seq, (name_, seq)
            assert finds([*rows[:at], *rows[at + 1 :]]) == seq
            assert finds(rows[:at]) == seq
            assert finds([*rows[:at], row, *rows[at:]]) == seq + 1
            if at + 1 < len(rows):
                assert finds([*rows[:at], rows[at + 1], row, *rows[at + 2 :]]) == seq
        path.write_bytes(whole)


def test_what_is_added_to_an_export_is_found(exported: Path, sealed: Log) -> None:
    rows = [json.loads(line) for line in (exported / "events.jsonl").read_text().splitlines()]
    more = asdict(seal_event(COUNT + 1, event("more"), rows[-1]["digest"]))
    write_lines(exported / "events.jsonl", [*rows, more])
    finding = verify_export(exported, keys=keys_of(sealed.signer)).finding
    assert finding is not None
    assert finding.seq == COUNT + 1


def test_an_export_whose_heads_were_cut_to_fit_is_found(exported: Path, sealed: Log) -> None:
    rows = [json.loads(line) for line in (exported / "events.jsonl").read_text().splitlines()]
    heads = json.loads((exported / "heads.json").read_text())
    last = rows[3]
    heads["heads"] = [head for head in heads["heads"] if head["seq"] <= last["seq"]]
    (exported / "heads.json").write_text(json.dumps({**heads, "through": [last["seq"], last["digest"]]}))
    write_lines(exported / "events.jsonl", rows[:4])
    write_parquet(exported / "events.parquet", rows[:4])
    assert verify_export(exported).finding is None
    assert verify_export(exported, keys=keys_of(sealed.signer)).finding is not None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"after": 1}', "no"])
def test_heads_that_are_none_are_refused(exported: Path, content: str) -> None:
    (exported / "heads.json").write_text(content)
    with pytest.raises(StateError, match="altered"):
        verify_export(exported)


def test_a_broken_file_is_refused(exported: Path) -> None:
    (exported / "events.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(StateError, match="Parquet"):
        verify_export(exported)


def write_lines(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(canonical_json(row) + "\n" for row in rows))


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema = parquet.read_schema(path)
    parquet.write_table(pa.Table.from_pylist([{name: row[name] for name in COLUMNS} for row in rows], schema), path)


def test_a_log_that_was_cut_and_given_another_name_is_still_the_one_at_the_anchor(index: Index, log: Log) -> None:
    log.add("a", "b")
    log.add("c")
    with index.write() as connection, audit_log.deletion_allowed(connection):
        connection.execute(update(t.deployment).where(t.deployment.c.key == "audit_chain").values(value="other"))
        connection.execute(delete(t.audit_event).where(t.audit_event.c.seq > 1))
        connection.execute(delete(t.audit_head))
    assert log.bad() == 2
    log.add("d", "e", "f")
    # The first head that is at the anchor was of event 2: what it proves begins with event 1.
    assert log.bad() == 1
