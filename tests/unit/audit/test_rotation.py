"""Rotation: old events are removed only after an export, and a signed checkpoint replaces them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, make_url, update

from federator.audit.export import iter_exported_events, verify_export
from federator.audit.rotation import rotate_events
from federator.connector import StateError
from federator.model.audit_kinds import AuditKind
from federator.store import DatabaseError, Index, audit_log, open_index
from federator.store import tables as t
from tests.unit.audit.conftest import Log


def rotate(log: Log, through: int, target: Path) -> int:
    removed = rotate_events(log.index, target, through=through, signer=log.signer, actor="ann")
    log.publish()
    return removed


def list_kept_seqs(log: Log) -> list[int]:
    return [event.seq for event in audit_log.iter_events(log.index)]


@pytest.fixture
def rotated(log: Log, tmp_path: Path) -> Log:
    log.add("a", "b", "c")
    log.add("d", "e")
    assert rotate(log, 4, tmp_path / "old") == 4
    return log


def test_what_is_left_is_proven_from_the_checkpoint_on(rotated: Log, tmp_path: Path) -> None:
    proof = rotated.prove()
    assert (proof.finding, proof.first, proof.last, proof.tail) == (None, 5, 6, "proven")
    (checkpoint,) = [row for row in audit_log.iter_events(rotated.index) if row.kind == AuditKind.CHECKPOINT]
    assert checkpoint.seq == 6
    old = verify_export(tmp_path / "old", keys={rotated.signer.id: rotated.signer.public})
    assert (old.finding, old.first, old.last) == (None, 1, 4)
    assert [event.subject for event in iter_exported_events(tmp_path / "old" / "events.parquet")] == ["a", "b", "c", "d"]


def test_what_was_rotated_is_found_after_a_power_failure(log: Log, tmp_path: Path, flushed: list[str]) -> None:
    log.add("a", "b")
    flushed.clear()
    assert rotate(log, 2, tmp_path / "old") == 2
    assert {str(tmp_path / "old"), str(tmp_path)} <= set(flushed)


def test_goes_on_and_rotates_again(rotated: Log, tmp_path: Path) -> None:
    rotated.add("f", "g")
    # The old checkpoint leaves, too; the new one stands for it.
    assert rotate(rotated, 7, tmp_path / "older") == 3
    assert list_kept_seqs(rotated) == [8, 9]
    assert rotated.prove().tail == "proven"
    old = verify_export(tmp_path / "older", keys={rotated.signer.id: rotated.signer.public})
    assert (old.finding, old.first, old.last) == (None, 5, 7)


def test_every_event_may_leave_but_the_checkpoint_stays(log: Log, tmp_path: Path) -> None:
    log.add("a")
    assert rotate(log, 1, tmp_path / "old") == 1
    assert list_kept_seqs(log) == [2]
    assert log.prove().finding is None


@pytest.mark.parametrize("forging", ["none", "edited", "of another event"])
def test_more_than_the_checkpoint_stands_for_is_missed(rotated: Log, forging: str) -> None:
    """The owner removes one event more, and forges the checkpoint as well as can be done without the key."""
    with rotated.index.write() as connection, audit_log.deletion_allowed(connection):
        digest = audit_log.find_digest(connection, 5)
        connection.execute(delete(t.audit_event).where(t.audit_event.c.seq == 5))
        connection.execute(delete(t.audit_head))
        if forging != "none":
            rows: list[dict[str, Any]] = [dict(row) for row in connection.execute(t.audit_event.select()).mappings()]
            from federator.audit.sealing import seal_event

            text = rows[0]["event"].replace('"seq":4', '"seq":5')
            if forging == "of another event":
                text = text.replace(rows[0]["previous"], "0")
            connection.execute(delete(t.audit_event))
            connection.execute(t.audit_event.insert(), [asdict(seal_event(6, text, digest or ""))])
    assert rotated.bad(anchored=False) in (1, 5)
    # The anchor knows the checkpoint that was sealed.
    assert rotated.bad() == (6 if forging != "none" else 5)


def test_a_log_that_is_not_intact_is_kept(log: Log, tmp_path: Path) -> None:
    log.add("a", "b", "c")
    with log.index.write() as connection, audit_log.deletion_allowed(connection):
        connection.execute(update(t.audit_event).where(t.audit_event.c.seq == 2).values(actor="eve"))
    with pytest.raises(StateError, match=r"not intact.*event 2 was altered"):
        rotate(log, 2, tmp_path / "old")
    assert list_kept_seqs(log) == [1, 2, 3]
    assert not (tmp_path / "old").exists()


def test_an_export_that_is_there_is_not_overwritten(log: Log, tmp_path: Path) -> None:
    log.add("a")
    (tmp_path / "old").mkdir()
    with pytest.raises(StateError, match="already exists"):
        rotate(log, 1, tmp_path / "old")
    assert list_kept_seqs(log) == [1]


def test_nothing_to_rotate(log: Log, tmp_path: Path) -> None:
    log.add("a")
    with pytest.raises(StateError, match="no sealed events from 1 to 5"):
        rotate(log, 5, tmp_path / "old")


def test_the_guard_stands_again(rotated: Log) -> None:
    with pytest.raises(DatabaseError, match="neither changed nor deleted"), rotated.index.write() as connection:
        connection.execute(delete(t.audit_event))


def test_only_the_owner_of_the_tables_rotates(
    postgres_index: Callable[[], Index], make_log: Callable[[Index], Log], tmp_path: Path
) -> None:
    log = make_log(postgres_index())
    log.add("a", "b")
    role = "plain_" + make_url(str(log.index.engine.url)).database[:20]  # type: ignore[index]  # it has one
    with log.index.write() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN")
        connection.exec_driver_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
        connection.exec_driver_sql(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}")
    plain = Log(
        open_index(log.index.engine.url.set(username=role).render_as_string(hide_password=False)), log.signer, log.anchor
    )
    try:
        plain.add("c")
        with pytest.raises(StateError, match="only the owner"):
            rotate(plain, 1, tmp_path / "old")
        with pytest.raises(DatabaseError, match="neither changed nor deleted"), plain.index.write() as connection:
            connection.execute(delete(t.audit_event))
    finally:
        plain.index.close()
        with log.index.write() as connection:
            connection.exec_driver_sql(f"DROP OWNED BY {role}")
            connection.exec_driver_sql(f"DROP ROLE {role}")
    assert list_kept_seqs(log) == [1, 2, 3]
