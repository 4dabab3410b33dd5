"""Services that die, or freeze, in the middle of a principal's write: the next run or write finds the outcome, and a living one is left
alone. Every service is a process of its own, over SQLite and PostgreSQL, on a catalog in a file and on a real metastore; runs are
commands in this process and its Spark session.

What a lease on PostgreSQL needs is that time passes. The tests let it pass by changing the leases' rows once their process is gone or
frozen.
"""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from federator.connector import SourceSpec
from federator.model import NamespaceRecord
from federator.registry import open_catalog
from federator.store import audit_log, migrations, open_index, records
from federator.store import tables as t
from federator.store.leases import CALL_DEADLINE_SECONDS, LEASE_TTL_SECONDS, WRITER_PREFIX
from federator.testing import MemoryStore
from federator.testing.contract import unique_name
from tests.fixtures.product import Product
from tests.fixtures.waiting import wait_until
from tests.unit.api.service_process import Process

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("spark")]
#: seconds; a bound for a machine that is busy with other things
PATIENCE = 240
CONFIG = """
[index]
url = "{index}"
[serve]
port = 0
[verify]
enabled = false
[sources.lake]
{source}
"""


class Site:
    """A directory with a configuration, an index, and the services that were started there."""

    def __init__(self, directory: Path, url: str, source: str) -> None:
        self.directory = directory
        (directory / "federator.toml").write_text(CONFIG.format(index=url, source=source), encoding="utf-8")
        self.index = open_index(url, base=directory)
        migrations.upgrade_schema(self.index)
        self._started: list[Process] = []

    def start(self) -> tuple[Process, str]:
        """A service without a worker, and its address."""
        self._started.append(Process(self.directory, "api"))
        return self._started[-1], self._started[-1].await_line(r"federator listens on (http://\S+)", PATIENCE)

    def run(self, *arguments: str) -> None:
        done = Product(self.directory).run(*arguments)
        assert done.exit_code == 0, done.output

    def let_leases_last(self) -> None:
        """A machine that is busy with other things takes no time: the leases that are held now last for minutes."""
        self._end_leases(time.time() + LEASE_TTL_SECONDS, self.leases())

    def let_leases_lapse(self, names: Sequence[str] | None = None) -> None:
        """The time passes in which nobody renews some leases, by default all. File locks end with their processes."""
        self._end_leases(time.time() - CALL_DEADLINE_SECONDS - 1, self.leases() if names is None else names)

    def _end_leases(self, at: float, names: Sequence[str]) -> None:
        with self.index.write() as connection:
            held = t.lease.c.name.in_(names) & (t.lease.c.expires_at > 0)
            connection.execute(update(t.lease).where(held).values(expires_at=at))

    def leases(self) -> list[str]:
        with self.index.read() as connection:
            return list(connection.execute(select(t.lease.c.name)).scalars())

    def journal(self) -> list[tuple[str, str, str, str | None]]:
        j = t.journal.c
        with self.index.read() as connection:
            rows = connection.execute(select(j.action, j.target_path, j.state, j.code).order_by(j.intent_at))
            return [tuple(row) for row in rows]

    def events(self) -> list[dict[str, Any]]:
        """The details of the audit events of direct writes."""
        events = audit_log.iter_events(self.index)
        return [{"by": event.actor, **json.loads(event.event)["detail"]} for event in events if event.kind == "own_write"]

    def writers(self) -> list[str]:
        return [name for name in self.leases() if name.startswith(WRITER_PREFIX)]

    def has(self, *path: str) -> bool:
        with self.index.read() as connection:
            return records.find_record(connection, "lake", path, is_table=True) is not None

    def close(self) -> None:
        for process in self._started:
            process.kill()
        self.index.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_database")())
    return f"sqlite:///{tmp_path}/federator.db"


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    created = MemoryStore(str(tmp_path / "lake.json"))
    created.add_table(("sales", "orders"))
    return created


@pytest.fixture
def site(tmp_path: Path, url: str, store: MemoryStore) -> Iterator[Site]:
    created = Site(tmp_path, url, f'impl = "federator.testing:CONNECTOR"\nfile = "{tmp_path}/lake.json"')
    yield created
    created.close()


def send(url: str, call: str, body: dict[str, Any] | None = None) -> threading.Thread:
    """Sends a write, whose response may never come."""

    def post() -> None:
        with suppress(httpx.TransportError):
            httpx.post(f"{url}/v1/{call}", json=body or {}, timeout=900)

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    return thread


def declare(url: str, table: str) -> httpx.Response:
    return httpx.post(f"{url}/v1/table/lake%24sales%24{table}/declare", json={}, timeout=PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_run_finds_a_write_that_was_made(site: Site, store: MemoryStore, number: int) -> None:
    process, url = site.start()
    store.faults("slow:sales$new")
    send(url, "table/lake%24sales%24new/declare")
    wait_until(lambda: "declare_table sales$new" in store.calls())
    assert site.journal() == [("declare_table", "sales$new", "intent", None)]
    process.end(number)
    store.faults("")
    assert not site.has("sales", "new")
    if number == signal.SIGTERM and not site.index.is_sqlite:
        # The process gave up its lease: only the time of its calls is waited for.
        with site.index.read() as connection:
            expires = connection.execute(select(t.lease.c.expires_at).where(t.lease.c.name == site.writers()[0])).scalar_one()
        assert expires < time.time() + LEASE_TTL_SECONDS / 2
    site.let_leases_lapse()
    site.run("crawl", "lake")
    assert site.journal() == [("declare_table", "sales$new", "done", None)]
    (event,) = site.events()
    assert (event["state"], event["action"], event["requested_by"]) == ("done", "declare_table", "api")
    assert "its process ended before the outcome was recorded" in event["message"]
    assert site.has("sales", "new")
    assert site.writers() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_write_finds_a_write_that_was_not_made(site: Site, store: MemoryStore, number: int) -> None:
    process, url = site.start()
    assert declare(url, "first").status_code == 200
    store.faults("hang:sales")
    send(url, "namespace/lake%24sales/drop", {"behavior": "Cascade"})
    wait_until(lambda: ("drop_namespace", "sales", "intent", None) in site.journal())
    process.end(number)
    store.faults("")
    of_dead = site.leases()
    _, other = site.start()
    if not site.index.is_sqlite:
        site.let_leases_last()
        assert declare(other, "second").status_code == 200
        assert ("drop_namespace", "sales", "intent", None) in site.journal(), "its lease has not ended"
    site.let_leases_lapse(of_dead)
    assert declare(other, "third").status_code == 200
    assert ("drop_namespace", "sales", "failed", "interrupted") in site.journal()
    assert not any("drop" in call or "deregister" in call for call in store.calls())


def test_a_slow_write_of_a_living_process_is_left_alone(site: Site, store: MemoryStore) -> None:
    _, url = site.start()
    store.faults("slow:sales$new")
    sent = send(url, "table/lake%24sales%24new/declare")
    wait_until(lambda: "declare_table sales$new" in store.calls())
    _, other = site.start()
    assert declare(other, "other").status_code == 200
    site.run("crawl", "lake")
    assert ("declare_table", "sales$new", "intent", None) in site.journal()
    assert len(site.writers()) == 2
    store.faults("")
    sent.join(PATIENCE)
    assert ("declare_table", "sales$new", "done", None) in site.journal()
    assert [(event["state"], event["message"]) for event in site.events()] == [("done", None), ("done", None)]


def test_a_frozen_process_that_wakes_does_not_write(site: Site, store: MemoryStore) -> None:
    process, url = site.start()
    assert declare(url, "first").status_code == 200
    store.faults("hang:sales")
    sent = send(url, "namespace/lake%24sales/drop", {"behavior": "Cascade"})
    wait_until(lambda: ("drop_namespace", "sales", "intent", None) in site.journal())
    process.send_signal(signal.SIGSTOP)
    store.faults("")
    _, other = site.start()
    site.let_leases_lapse()
    assert declare(other, "second").status_code == 200
    if site.index.is_sqlite:
        assert ("drop_namespace", "sales", "intent", None) in site.journal(), "a frozen process keeps its file lock"
        process.kill()
        return
    assert ("drop_namespace", "sales", "failed", "interrupted") in site.journal()
    process.send_signal(signal.SIGCONT)
    sent.join(PATIENCE)
    assert not any("drop" in call or "deregister" in call for call in store.calls())
    assert [event["state"] for event in site.events()] == ["done", "failed", "done"]
    assert declare(url, "third").status_code == 200, "the next write takes a new lease"


class Hold:
    """Forwards bytes to a server, and holds every response after a request with a certain text."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("thrift://").partition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        #: the text, and whether a request had it
        self.text: bytes | None = None
        self.met = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for source, sink, asks in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._forward, args=(source, sink, asks), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, asks: bool) -> None:
        with suppress(OSError), source, sink:
            while data := source.recv(1 << 16):
                if asks and self.text is not None and self.text in data:
                    self.met.set()
                if asks or not self.met.is_set():
                    sink.sendall(data)

    def close(self) -> None:
        self._listener.close()


@pytest.mark.parametrize(("text", "state"), [(b"alter_table", "done"), (b"create_table", "failed")])
def test_a_real_metastore_shows_what_a_killed_service_did(tmp_path: Path, hive2_uri: str, text: bytes, state: str) -> None:
    """A declaration is two calls: killed after the second it is found, and after the first its unfinished entry is removed."""
    database, hold = unique_name("dead"), Hold(hive2_uri)
    with open_catalog(SourceSpec("lake", "hive2", {"uri": hive2_uri})) as catalog:
        catalog.create_namespace(NamespaceRecord("lake", (database,), location=f"file://{tmp_path}/{database}"))
        site = Site(tmp_path, f"sqlite:///{tmp_path}/federator.db", f'impl = "hive2"\nhive2.uri = "{hold.uri}"')
        try:
            process, url = site.start()
            hold.text = text
            send(url, f"table/lake%24{database}%24t/declare")
            assert hold.met.wait(PATIENCE)
            wait_until(lambda: not catalog.observe((database, "t")).is_absent)
            if text == b"alter_table":
                wait_until(lambda: catalog.observe((database, "t")).record is not None)
            process.kill()
            hold.text = None
            hold.met.clear()
            site.run("crawl", "lake")
            assert site.journal() == [("declare_table", f"{database}$t", state, None if state == "done" else "interrupted")]
            assert site.has(database, "t") is (state == "done")
            assert catalog.observe((database, "t")).is_absent is (state == "failed")
        finally:
            site.close()
            hold.close()
