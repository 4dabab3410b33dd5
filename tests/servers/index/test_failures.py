"""A full disk, a read-only index and a changed instance id: real databases refuse, and users read the remedy."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event, text

from federator.connector import StateError
from federator.connector.errors import split_hint
from federator.service import Federator
from federator.settings import InstanceSettings, parse_settings
from federator.store import DatabaseError, Index, deployment, notices, open_index
from federator.store.failures import describe_failure
from tests.unit.cli.conftest import CONFIG, Shell
from tests.unit.notify.conftest import MEMORY

_FILL = text("INSERT INTO deployment (key, value) VALUES (:key, :value)")


def fill(index: Index) -> None:
    """Write until the database refuses."""
    for number in range(1000):
        with index.write() as connection:
            connection.execute(_FILL, {"key": f"filler {number}", "value": "x" * 4000})


def failure_of(write: Callable[[], None]) -> StateError:
    with pytest.raises(DatabaseError) as caught:
        write()
    return describe_failure(caught.value)


def test_a_full_disk_has_a_remedy(sqlite_index: Index) -> None:
    @event.listens_for(sqlite_index.engine, "begin")
    def limit(connection: object) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 400")  # type: ignore[attr-defined]

    failure = failure_of(lambda: fill(sqlite_index))
    assert "its disk is full: database or disk is full" in failure.message
    assert failure.hint is not None
    assert "free space" in failure.hint
    assert "rolled back" in failure.hint
    with sqlite_index.read() as connection:
        written = connection.execute(text("SELECT count(*) FROM deployment WHERE key LIKE 'filler%'")).scalar_one()
    assert 0 < written < 1000


_READER = """
import resource, sys
from sqlalchemy import text
from federator.store import DatabaseError, open_index
from federator.store.failures import describe_failure
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    with open_index(sys.argv[1]).read() as connection:
        connection.execute(text("SELECT * FROM run"))
except DatabaseError as error:
    print(describe_failure(error).message)
"""


def test_a_disk_without_room_for_the_first_reader_is_full(sqlite_index: Index) -> None:
    """A reader, too, makes a file beside the database. SQLite calls it an I/O error."""
    sqlite_index.close()
    command = [sys.executable, "-c", _READER, f"sqlite:///{sqlite_index.file}"]
    assert "its disk is full: disk I/O error" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_database_that_cannot_be_written_to_has_a_remedy(sqlite_index: Index) -> None:
    @event.listens_for(sqlite_index.engine, "begin")
    def protect(connection: object) -> None:
        connection.exec_driver_sql("PRAGMA query_only = ON")  # type: ignore[attr-defined]

    failure = failure_of(lambda: fill(sqlite_index))
    assert "it cannot be written to: attempt to write a readonly database" in failure.message
    assert "write access" in (failure.hint or "")


def test_a_read_only_postgresql_ends_a_command_with_a_remedy(postgres_index: Callable[..., Index], tmp_path: Path) -> None:
    index = postgres_index()
    url = index.engine.url.render_as_string(hide_password=False)
    with index.write() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{index.engine.url.database}" SET default_transaction_read_only = on')
    index.close()
    (tmp_path / "federator.toml").write_text(CONFIG.format(folder=tmp_path, index=url))
    shell = Shell(tmp_path)
    plain = shell.run("token", "create", "ann", "--role", "viewer", "--scope", "lake")
    assert plain.exit_code == 1
    assert "it cannot be written to: cannot execute INSERT in a read-only transaction" in plain.stderr
    assert "hint: give the service's user write access" in plain.stderr
    machine = shell.run("token", "create", "ann", "--role", "viewer", "--scope", "lake", "--output", "json")
    assert json.loads(machine.stderr)["error"]["type"] == "StateError"
    checks = json.loads(shell.run("doctor", "--output", "json").stdout)["checks"]
    found = next(check for check in checks if check["name"] == "index")
    assert (found["state"], "write access" in found["hint"]) == ("fail", True)


def test_a_database_that_cannot_be_connected_to_has_a_remedy(postgres_index: Callable[..., Index]) -> None:
    existing = postgres_index()
    for part, message in (
        ({"port": 1}, "connection to server at"), ({"database": "absent"}, 'database "absent" does not exist'),
        ({"host": "absent.invalid"}, "failed to resolve host 'absent.invalid'"),
    ):  # fmt: skip
        index = open_index(existing.engine.url.set(**part).render_as_string(hide_password=False))
        failure = failure_of(functools.partial(fill, index))
        assert failure.message.startswith("the index cannot be opened: ")
        assert message in failure.message
        assert "check host, port, user, password and database of [index] url" in (failure.hint or "")


def test_the_error_of_a_run_has_a_remedy_and_no_statement(either_index: Index, tmp_path: Path) -> None:
    raw = {"notify": {"ops": {"kind": "webhook", "url": "http://127.0.0.1:9"}}, "sources": {"lake": {"impl": MEMORY}}}
    federator = Federator(parse_settings(raw, tmp_path / "federator.toml"), either_index)
    with either_index.write() as connection:
        connection.execute(text("ALTER TABLE dataset_past RENAME TO another"))
    with pytest.raises(DatabaseError):
        federator.prune(keep_days=1)
    with either_index.read() as connection:
        error = connection.execute(text("SELECT error FROM run")).scalar_one()
        (notice,) = notices.list_pending_notices(connection)
    message, hint = split_hint(error)
    assert message.startswith("the index failed: ")
    assert "dataset_past" in message
    assert (len(message.splitlines()), hint, notice.notice.message) == (1, "federator doctor checks the index", error)


def test_no_error_has_the_values_of_a_statement(either_index: Index) -> None:
    insert = text("INSERT INTO absent (key) VALUES (:key)")
    with pytest.raises(DatabaseError) as caught, either_index.write() as connection:
        connection.execute(insert, {"key": "planted-secret-of-a-table"})
    assert "planted" not in str(caught.value)


@pytest.fixture
def claimed(either_index: Index) -> Index:
    deployment.claim_site(either_index, InstanceSettings(id="prod"))
    return either_index


def test_a_changed_instance_id_is_refused_until_it_is_confirmed(claimed: Index) -> None:
    prod, other = InstanceSettings(id="prod"), InstanceSettings(id="prod-eu")
    deployment.check_instance_id(claimed, prod)
    # A later run does not adopt the new id by itself.
    deployment.claim_site(claimed, other)
    for check in (deployment.require_original, deployment.check_instance_id):
        with pytest.raises(StateError, match=r"id is 'prod-eu'.*are marked 'prod'") as caught:
            check(claimed, other)
        assert "set [instance] id back to 'prod'" in (caught.value.hint or "")
    deployment.confirm_site(claimed, other, actor="ann")
    deployment.require_original(claimed, other)
    with pytest.raises(StateError, match="are marked 'prod-eu'"):
        deployment.require_original(claimed, prod)


def test_a_rotated_index_takes_its_new_id_at_the_next_run(claimed: Index) -> None:
    deployment.rotate_fingerprint(claimed, InstanceSettings(id="prod"), actor="ann")
    staging = InstanceSettings(id="staging")
    deployment.require_original(claimed, staging)
    deployment.claim_site(claimed, staging)
    with pytest.raises(StateError, match="are marked 'staging'"):
        deployment.require_original(claimed, InstanceSettings(id="other"))
