"""Old events leave only through an export, with a signed checkpoint in their place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, make_url, update

from federator.audit.chain import CHECKPOINT
from federator.audit.export import prove_export, read_events
from federator.audit.rotate import rotate
from federator.connector import StateError
from federator.index import DatabaseError, Index, audit_log, open_index
from federator.index import tables as t
from tests.audit.conftest import Log


def turn(log: Log, through: int, target: Path) -> int:
    removed = rotate(log.index, target, through=through, signer=log.signer, actor="ann")
    log.publish()
    return removed


def kept(log: Log) -> list[int]:
    return [row["seq"] for row in audit_log.every_event(log.index)]


@pytest.fixture
def rotated(log: Log, tmp_path: Path) -> Log:
    log.add("a", "b", "c")
    log.add("d", "e")
    assert turn(log, 4, tmp_path / "old") == 4
    return log


def test_what_is_left_is_proven_from_the_checkpoint_on(rotated: Log, tmp_path: Path) -> None:
    proof = rotated.prove()
    assert (proof.finding, proof.first, proof.last, proof.tail) == (None, 5, 6, "proven")
    (checkpoint,) = [row for row in audit_log.every_event(rotated.index) if row["kind"] == CHECKPOINT]
    assert checkpoint["seq"] == 6
    old = prove_export(tmp_path / "old", keys={rotated.signer.id: rotated.signer.public})
    assert (old.finding, old.first, old.last) == (None, 1, 4)
    assert [row["subject"] for row in read_events(tmp_path / "old" / "events.parquet")] == ["a", "b", "c", "d"]


def test_goes_on_and_rotates_again(rotated: Log, tmp_path: Path) -> None:
    rotated.add("f", "g")
    # The old checkpoint leaves, too; the new one stands for it.
    assert turn(rotated, 7, tmp_path / "older") == 3
    assert kept(rotated) == [8, 9]
    assert rotated.prove().tail == "proven"
    old = prove_export(tmp_path / "older", keys={rotated.signer.id: rotated.signer.public})
    assert (old.finding, old.first, old.last) == (None, 5, 7)


def test_every_event_may_leave_but_the_checkpoint_stays(log: Log, tmp_path: Path) -> None:
    log.add("a")
    assert turn(log, 1, tmp_path / "old") == 1
    assert kept(log) == [2]
    assert log.prove().finding is None


@pytest.mark.parametrize("forging", ["none", "edited", "of another event"])
def test_more_than_the_checkpoint_stands_for_is_missed(rotated: Log, forging: str) -> None:
    """The owner removes one event more, and forges the checkpoint as well as can be done without the key."""
    with rotated.index.write() as connection, audit_log.unguarded(connection):
        digest = audit_log.digest_at(connection, 5)
        connection.execute(delete(t.audit_event).where(t.audit_event.c.seq == 5))
        connection.execute(delete(t.audit_head))
        if forging != "none":
            rows: list[dict[str, Any]] = [dict(row) for row in connection.execute(t.audit_event.select()).mappings()]
            from federator.audit.seal import sealed_row

            text = rows[0]["event"].replace('"seq":4', '"seq":5')
            if forging == "of another event":
                text = text.replace(rows[0]["previous"], "0")
            connection.execute(delete(t.audit_event))
            connection.execute(t.audit_event.insert(), [sealed_row(6, text, digest or "")])
    assert rotated.bad(anchored=False) in (1, 5)
    # The anchor knows the checkpoint that was sealed.
    assert rotated.bad() == (6 if forging != "none" else 5)


def test_a_log_that_is_not_intact_is_kept(log: Log, tmp_path: Path) -> None:
    log.add("a", "b", "c")
    with log.index.write() as connection, audit_log.unguarded(connection):
        connection.execute(update(t.audit_event).where(t.audit_event.c.seq == 2).values(actor="eve"))
    with pytest.raises(StateError, match=r"not intact.*event 2 was altered"):
        turn(log, 2, tmp_path / "old")
    assert kept(log) == [1, 2, 3]
    assert not (tmp_path / "old").exists()


def test_an_export_that_is_there_is_not_overwritten(log: Log, tmp_path: Path) -> None:
    log.add("a")
    (tmp_path / "old").mkdir()
    with pytest.raises(StateError, match="is there already"):
        turn(log, 1, tmp_path / "old")
    assert kept(log) == [1]


def test_nothing_to_rotate(log: Log, tmp_path: Path) -> None:
    log.add("a")
    with pytest.raises(StateError, match="no sealed event from 1 up to 5"):
        turn(log, 5, tmp_path / "old")


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
            turn(plain, 1, tmp_path / "old")
        with pytest.raises(DatabaseError, match="neither changed nor deleted"), plain.index.write() as connection:
            connection.execute(delete(t.audit_event))
    finally:
        plain.index.close()
        with log.index.write() as connection:
            connection.exec_driver_sql(f"DROP OWNED BY {role}")
            connection.exec_driver_sql(f"DROP ROLE {role}")
    assert kept(log) == [1, 2, 3]
