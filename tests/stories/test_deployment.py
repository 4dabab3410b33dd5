"""Deployments: resumption of killed runs, and clones of an index, which must not write to targets."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from federator.connector import ConfigError, StateError
from federator.settings import InstanceSettings
from federator.store import Index, audit_log, deployment, migrations, open_index, runs
from federator.store import tables as t
from tests.fixtures.waiting import wait_until
from tests.unit.api.service_process import Process

PROD = InstanceSettings(id="prod")
_CHILD = """
import sys, time
from federator.store import leases, open_index, runs
leases.LEASE_TTL_SECONDS = 3.0
index = open_index(sys.argv[1])
with runs.run_lifetime(index, "sync", actor="ann") as run:
    print(run.id, flush=True)
    time.sleep(120)
"""

Fresh = Callable[..., Index]


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    """Opens an index on a database of its own."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_index")  # type: ignore[no-any-return]

    def make() -> Index:
        index = open_index("sqlite:///index.db", base=tmp_path)
        migrations.upgrade_schema(index)
        return index

    return make


@pytest.fixture
def index(fresh: Fresh) -> Iterator[Index]:
    opened = fresh()
    yield opened
    opened.close()


def url_of(index: Index) -> str:
    return index.engine.url.render_as_string(hide_password=False)


def waiting(index: Index, kind: str) -> list[dict[str, object]]:
    """Events of a kind that nobody has sealed yet."""
    with index.read() as connection:
        found = [json.loads(text) for _, text in audit_log.list_unsealed(connection)]
    return [event for event in found if event["kind"] == kind]


class TestKilledRuns:
    @pytest.fixture
    def child(self, index: Index) -> Iterator[subprocess.Popen[str]]:
        """A process in the middle of a run, whose id is the first line that it prints."""
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, url_of(index)], stdout=subprocess.PIPE, text=True, env=environment
        )
        yield process
        process.kill()
        process.wait()

    def test_are_interrupted_once_their_process_is_gone(self, index: Index, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        run_id = child.stdout.readline().strip()
        with runs.run_lifetime(index, "crawl") as mine:
            assert runs.finish_interrupted_runs(index) == []
            assert (runs.is_running(index, run_id), runs.is_running(index, mine.id)) == (True, True)
            child.send_signal(signal.SIGKILL)
            child.wait()
            assert self._dead(index) == [run_id]
        row, _, _ = runs.get_run(index, run_id)
        assert (row.state, row.error, row.finished_at is None) == (
            "interrupted",
            "the process of the run ended before the run was finished",
            False,
        )
        assert runs.is_running(index, mine.id)
        assert runs.finish_interrupted_runs(index) == [mine.id]
        ended = {event["run_id"]: (event["actor"], event["detail"]) for event in waiting(index, "run_finished")}
        assert ended[run_id] == ("ann", {"state": "interrupted", "summary": {}, "error": row.error})

    @staticmethod
    def _dead(index: Index) -> list[str]:
        """A lease row outlives its holder by its time, here three seconds."""
        end = time.monotonic() + 60
        while not (dead := runs.finish_interrupted_runs(index)) and time.monotonic() < end:
            time.sleep(0.2)
        return dead

    def test_nothing_is_left_of_a_run_that_ended(self, index: Index) -> None:
        with runs.run_lifetime(index, "crawl") as run:
            runs.finish_run(index, run, "partial", summary={"tables": 3})
            assert runs.finish_interrupted_runs(index) == []
        assert runs.finish_interrupted_runs(index) == []
        assert runs.get_run(index, run.id)[0].state == "partial"
        with index.read() as connection:
            assert connection.execute(select(t.lease.c.name)).scalars().all() == []
        if index.file is not None:
            assert [path.name for path in index.file.parent.glob("*.lock")] == []

    def test_are_shown_as_interrupted_by_the_service_and_by_the_command(
        self, index: Index, child: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        """Without another run, and without a worker."""
        config = tmp_path / "federator.toml"
        config.write_text(f'[index]\nurl = "{url_of(index)}"\n[serve]\nport = 0\n', encoding="utf-8")
        assert child.stdout is not None
        run_id = child.stdout.readline().strip()
        service = Process(tmp_path, "api")
        try:
            api = httpx.Client(base_url=service.url())
            assert api.get(f"/api/v1/runs/{run_id}").json()["state"] == "running"
            child.send_signal(signal.SIGKILL)
            wait_until(lambda: api.get("/api/v1/runs?state=interrupted").json()["runs"], "the service shows it", 30)
            assert 'federator_recent_runs{kind="sync",state="interrupted"} 1' in api.get("/metrics").text
        finally:
            service.kill()
        with suppress(ValueError), runs.run_lifetime(index, "crawl") as failed:
            raise ValueError
        shown = subprocess.run(
            [Path(sys.executable).with_name("federator"), "runs", failed.id],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "interrupted" in shown.stdout
        assert "the process of the run ended before the run was finished" in shown.stdout

    def test_a_run_that_raised_is_no_longer_held(self, index: Index) -> None:
        with pytest.raises(ValueError), runs.run_lifetime(index, "crawl") as run:
            raise ValueError
        assert runs.finish_interrupted_runs(index) == [run.id]


class TestDeployments:
    def test_the_first_run_claims_the_site(self, index: Index) -> None:
        assert deployment.read_deployment(index, PROD).confirmed_site is None
        deployment.require_original(index, PROD)
        deployment.claim_site(index, PROD)
        found = deployment.read_deployment(index, PROD)
        assert (found.is_clone, found.confirmed_site, len(found.fingerprint)) == (False, found.current_site, 32)

    def test_of_first_runs_that_begin_at_once_one_is_the_first(self, index: Index) -> None:
        names = [InstanceSettings(id="prod", fingerprint=f"name {number}") for number in range(8)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda name: deployment.claim_site(index, name), names))
        claimed = [name.fingerprint for name in names if not deployment.read_deployment(index, name).is_clone]
        assert len(claimed) == 1

    def test_restarts_and_replicas_are_no_clones(self, index: Index) -> None:
        deployment.claim_site(index, PROD)
        again = open_index(url_of(index))
        deployment.claim_site(again, PROD)
        deployment.require_original(again, PROD)
        again.close()

    def test_a_clone_does_not_take_the_site_by_itself(self, index: Index, clone: Index) -> None:
        deployment.claim_site(clone, PROD)
        found = deployment.read_deployment(clone, PROD)
        assert (found.is_clone, found.fingerprint) == (True, deployment.read_deployment(index, PROD).fingerprint)
        with pytest.raises(
            StateError, match=r"this index is a clone: it belongs to .*\n.*instance confirm if it moved here"
        ) as error:
            deployment.require_original(clone, PROD)
        assert len(error.value.message.splitlines()) == 1
        deployment.require_original(index, PROD)

    def test_confirmed_it_is_the_one(self, clone: Index) -> None:
        before = deployment.read_deployment(clone, PROD)
        found = deployment.confirm_site(clone, PROD, actor="ann")
        deployment.require_original(clone, PROD)
        assert (found.is_clone, found.fingerprint) == (False, before.fingerprint)
        (event,) = waiting(clone, "instance_confirmed")
        assert (event["actor"], event["subject"]) == ("ann", "prod")
        assert event["detail"] == {
            "before": before.confirmed_site, "place": before.current_site, "was": before.fingerprint, "fingerprint": before.fingerprint,
            "was_instance": "prod",
        }  # fmt: skip

    def test_rotated_it_is_another_and_needs_an_id_of_its_own(self, clone: Index) -> None:
        before = deployment.read_deployment(clone, PROD)
        found = deployment.rotate_fingerprint(clone, PROD, actor="ann")
        assert (found.is_clone, found.released_instance, found.fingerprint != before.fingerprint) == (False, "prod", True)
        with pytest.raises(
            StateError, match=r"'prod' belongs to the index that it was copied from\n.*choose a new \[instance\] id"
        ):
            deployment.require_original(clone, PROD)
        deployment.require_original(clone, InstanceSettings(id="staging"))
        assert [event["detail"]["fingerprint"] for event in waiting(clone, "instance_rotated")] == [found.fingerprint]  # type: ignore[index]

    def test_a_wrong_rotation_is_taken_back_by_confirming(self, clone: Index) -> None:
        deployment.rotate_fingerprint(clone, PROD, actor="ann")
        deployment.confirm_site(clone, PROD, actor="ann")
        deployment.require_original(clone, PROD)

    def test_a_configured_fingerprint_is_the_site(
        self, index: Index, clone_of: Callable[[Index], Index], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = InstanceSettings(id="prod", fingerprint="${DEPLOYMENT}")
        with pytest.raises(ConfigError, match="DEPLOYMENT"):
            deployment.claim_site(index, named)
        monkeypatch.setenv("DEPLOYMENT", "blue")
        deployment.claim_site(index, named)
        moved = clone_of(index)
        deployment.require_original(moved, named)
        monkeypatch.setenv("DEPLOYMENT", "green")
        with pytest.raises(StateError, match="it belongs to the fingerprint blue, but it was opened at the fingerprint green"):
            deployment.require_original(moved, named)
        with pytest.raises(StateError, match="this index is a clone"):
            deployment.require_original(index, PROD)
        monkeypatch.setenv("DEPLOYMENT", " ")
        with pytest.raises(ConfigError, match="is empty"):
            deployment.claim_site(index, named)

    @pytest.fixture
    def clone_of(self, fresh: Fresh, tmp_path: Path) -> Iterator[Callable[[Index], Index]]:
        """Copies an index: the file to another directory, or the rows into another database."""
        made: list[Index] = []

        def copy(index: Index) -> Index:
            if index.file is not None:
                other = tmp_path / "copy"
                other.mkdir()
                for file in index.file.parent.glob("index.db*"):
                    shutil.copy(file, other)
                made.append(open_index("sqlite:///index.db", base=other))
            else:
                made.append(fresh())
                with index.read() as read, made[-1].write() as write:
                    write.execute(t.deployment.delete())
                    write.execute(t.deployment.insert(), [dict(row) for row in read.execute(select(t.deployment)).mappings()])
            return made[-1]

        yield copy
        for index in made:
            index.close()

    @pytest.fixture
    def clone(self, index: Index, clone_of: Callable[[Index], Index]) -> Index:
        deployment.claim_site(index, PROD)
        return clone_of(index)


class TestFiles:
    """What tells one SQLite file from its copy."""

    @pytest.fixture
    def file(self, tmp_path: Path) -> Iterator[Index]:
        index = open_index("sqlite:///index.db", base=tmp_path)
        migrations.upgrade_schema(index)
        yield index
        index.close()

    def test_another_machine_is_another_site(self, file: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        machine = tmp_path / "machine-id"
        monkeypatch.setattr(deployment, "_MACHINE_FILES", (tmp_path / "missing", machine))
        machine.write_text("aaaa\n")
        deployment.claim_site(file, PROD)
        here = deployment.read_deployment(file, PROD).current_site
        assert here.startswith(f"{tmp_path / 'index.db'} on machine ")
        assert "aaaa" not in here
        machine.write_text("bbbb\n")
        assert deployment.read_deployment(file, PROD).is_clone

    @pytest.mark.parametrize("text", ["", "uninitialized\n"])
    def test_without_a_machine_the_file_tells(
        self, file: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        machine = tmp_path / "machine-id"
        machine.write_text(text)
        monkeypatch.setattr(deployment, "_MACHINE_FILES", (machine,))
        deployment.claim_site(file, PROD)
        assert not deployment.read_deployment(file, PROD).is_clone
        file.close()
        shutil.copy(tmp_path / "index.db", tmp_path / "other.db")
        (tmp_path / "other.db").rename(tmp_path / "index.db")
        assert deployment.read_deployment(file, PROD).is_clone
