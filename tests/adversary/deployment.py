"""One deployment of Lance Federator between two real catalogs, run by real commands, and what must hold when it has come to rest."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sqlalchemy import select

from federator import audit
from federator.apply import plan_decisions
from federator.connector import StateError
from federator.demo.servers import hive, process
from federator.planning.plan import Plan
from federator.service import Federator
from federator.settings import Settings, load_settings
from federator.stages.result import RunResult
from federator.store import Index, audit_log, journal, open_index, plans
from federator.store import tables as t
from tests.adversary.books import GlueRecorder, HiveRecorder, Writes, violations
from tests.adversary.churn import Churn
from tests.adversary.clients import GlueClient, HiveClient
from tests.adversary.killing import Orders
from tests.fixtures.glue import SERVER, GlueAccount, account
from tests.fixtures.hive import Metastore

FORWARD, BACK = "forward", "back"
#: what is left as it is where people meddled at the target, and nothing else
PEOPLE = {"not_ours", "name_taken", "location_declared"}
_ROUNDS = 12
_PATIENCE = 120.0


@contextmanager
def real_servers(directory: Path, version: str = hive.HIVE3) -> Iterator[tuple[Metastore, GlueAccount]]:
    """A Hive metastore and Glue, both on loopback."""
    with ExitStack() as running:
        metastore = hive.start(version, directory / "metastore")
        running.callback(metastore.stop)
        glue = process.start(SERVER, directory / "glue", timeout=60)
        running.callback(glue.stop)
        (data := directory / "data").mkdir()
        levels = 1 if version == hive.HIVE2 else 2
        yield Metastore(metastore.uri, levels, ("hive",) * (levels - 1), data, int(version[0])), account(glue.uri)


@dataclass
class Deployment:
    """Mirrors in both directions between ``metastore`` and ``account``, each over a database of its own, behind recording proxies.

    ``url``: the index, by default SQLite in ``directory``. ``schedule``: of the mirrors, for ``serve``. ``back``: whether there is a
    mirror from Glue to Hive. ``policy``: more lines of each mirror. ``through``: adds a proxy before a server, and returns its URL.
    """

    directory: Path
    metastore: Metastore
    account: GlueAccount
    url: str = ""
    schedule: str = "@every 2s"
    back: bool = True
    min_miss_interval: str = "1s"
    policy: str = ""
    through: Callable[[str, str], str] = lambda _, url: url
    environment: dict[str, str] = field(default_factory=dict)
    writes: Writes = field(default_factory=Writes)

    def __post_init__(self) -> None:
        self.directory.mkdir(exist_ok=True)
        self.glue = GlueRecorder(self.account.url, self.writes)
        self.hive = HiveRecorder(self.metastore.uri, self.writes)
        self.name = f"k{random.SystemRandom().randrange(16**6):06x}"
        self.url = self.url or f"sqlite:///{self.directory}/federator.db"
        self.log = self.directory / "moments.jsonl"
        self.config = self.directory / "federator.toml"
        self.config.write_text(self._configuration(), encoding="utf-8")
        self.config.chmod(0o600)

    def close(self) -> None:
        self.glue.close()
        self.hive.close()

    def database(self, mirror: str) -> str:
        return f"{self.name}_{mirror}"

    def churn(self, mirror: str, seed: int, size: int) -> Churn:
        """Churn at one mirror's origin; the target has what the mirror declares."""
        ends = HiveClient(self.metastore, self.database(mirror)), GlueClient(self.account, self.database(mirror))
        origin, target = ends if mirror == FORWARD else reversed(ends)
        return Churn(origin, target, f"file:{self.metastore.directory}/{self.database(mirror)}_data", seed, size)

    @property
    def settings(self) -> Settings:
        return load_settings(self.config)

    @contextmanager
    def index(self) -> Iterator[Index]:
        index = open_index(self.url)
        try:
            yield index
        finally:
            index.close()

    def _configuration(self) -> str:
        impl, above = ("hive3", "hive$") if self.metastore.levels == 2 else ("hive2", "")
        hive_lines = {**self.metastore.properties, "uri": self.through("hive", self.hive.uri), "client.timeout": "20"}
        glue_lines = {**self.account.properties, "endpoint": self.through("glue", self.glue.url)}
        for key in ("access_key_id", "secret_access_key", "session_token"):
            (secret := self.directory / key).write_text(glue_lines[key], encoding="utf-8")
            glue_lines[key] = f"file:{secret}"
        return "\n".join([
            f'[instance]\nid = "adversary"\n[index]\nurl = "{self.url}"\n[spark]\nmaster = "local[2,4]"\n[verify]\nenabled = false',
            f'[sources.lake]\nimpl = "{impl}"', *(f'{impl}.{key} = "{value}"' for key, value in hive_lines.items()),
            '[sources.aws]\nimpl = "glue"', *(f'glue.{key} = "{value}"' for key, value in glue_lines.items()),
            self._mirror(FORWARD, "lake", "aws", ""), self._mirror(BACK, "aws", "lake", above) if self.back else "", "",
        ])  # fmt: skip

    def _mirror(self, name: str, origin: str, target: str, above: str) -> str:
        return (
            f'[mirrors.{name}]\nfrom = "{origin}"\nto = "{target}"\nnamespace = "{above}{{database}}"\n'
            f'include = ["*{self.database(name)}$*"]\nmax_delete_percent = 100\non_missing = "recreate"\n'
            f'min_miss_interval = "{self.min_miss_interval}"\n{self.policy}\n'
            + (f'schedule = "{self.schedule}"\n' if self.schedule else "")
        )

    # Commands.

    def command(self, *arguments: str, orders: Orders | None = None) -> subprocess.Popen[bytes]:
        """A process of its own session: the leader is ``federator``, the others are its Spark."""
        line = [json.dumps(asdict(orders or Orders())), str(self.log), "--config", str(self.config), *arguments]
        with (self.directory / "commands.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.adversary.command", *line], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True, env={**os.environ, **self.environment}, cwd=Path(__file__).parents[2],
            )  # fmt: skip

    def runs(self) -> int:
        with self.index() as index, index.read() as connection:
            return len(connection.execute(select(t.run.c.id)).all())

    def sync(self) -> RunResult:
        """One sync in this process."""
        federator = Federator.open(self.settings)
        try:
            return federator.sync()
        finally:
            federator.index.close()

    def approve_held(self) -> None:
        """Approve what is held, as a person would; plans that were created again meanwhile are outdated."""
        with self.index() as index:
            with index.read() as connection:
                held = [row.digest for row in plans.list_recent_plans(connection, state="held")]
            for digest in held:
                with suppress(StateError):
                    plan_decisions.decide_plan(index, digest, "approved", actor="a person")

    @contextmanager
    def approving(self) -> Iterator[None]:
        """A person approves whatever is held: on a slow machine half of an origin changes between two syncs."""
        ending = threading.Event()

        def go_on() -> None:
            while not ending.wait(1.0):
                self.approve_held()

        with ThreadPoolExecutor(1, thread_name_prefix="person") as pool:
            person = pool.submit(go_on)
            try:
                yield
            finally:
                ending.set()
            person.result()

    # The end.

    def come_to_rest(self) -> tuple[RunResult, int]:
        """Sync until a sync plans nothing, and approve what is held, as a person would. Return the last result and the rounds."""
        for number in range(1, _ROUNDS + 1):
            result = self.sync()
            if result.state == "ok" and not any(plan.changes for plan in result.plans) and not _waiting(result.plans):
                return result, number
            self.approve_held()
            time.sleep(1.1)
        left = [(change.action.value, change.target_path) for plan in result.plans for change in plan.changes]
        outcomes = Counter(
            (outcome.state.value, outcome.code_text, outcome.message) for outcome in result.outcomes
        ).most_common(5)
        read = {name: published.state for name, published in result.sources.items()}
        raise AssertionError(
            f"{_ROUNDS} syncs did not come to rest: {result.state}, {result.errors}, {read}, {left[:5]}, {outcomes}"
        )

    def disagreements(self, result: RunResult, mirror: str, churn: Churn) -> list[str]:
        """What is wrong after ``come_to_rest``: ledger, target, journal, audit, and the writes that the oracle does not allow."""
        plan = next(plan for plan in result.plans if plan.mirror == mirror)
        refused = {_name(refusal.target_path or refusal.origin_path): refusal.reason.value for refusal in plan.refusals}
        found = [
            f"{refusal.target_path} of {refusal.origin_path} is refused: {refusal.reason}: {refusal.detail}"
            for refusal in plan.refusals
            if refusal.reason.value not in PEOPLE
        ]
        origin = {name: location for name, (location, _) in churn.origin.tables().items()}
        if origin != churn.book.locations:
            found.append(f"the test's own book is wrong: {set(origin.items()) ^ set(churn.book.locations.items())}")
        there = churn.target.tables()
        found += [
            f"{name}: the origin is at {location}, the copy is {there.get(name)}"
            for name, location in origin.items()
            if name not in refused
            and (name not in there or there[name][0].removeprefix("file:") != location.removeprefix("file:"))
        ]
        found += violations(self.writes.of(self.database(mirror)), churn.book, churn.people)
        return found + self._of_index(mirror, refused, there)

    def _of_index(self, mirror: str, refused: dict[str, str], copies: dict[str, tuple[str, dict[str, str]]]) -> list[str]:
        with self.index() as index, index.read() as connection:
            query = select(t.ledger).where(t.ledger.c.mirror == mirror, t.ledger.c.is_table == 1)
            owned = {_name(row["target_path"]): row["op_id"] for row in connection.execute(query).mappings()}
            found = [f"open intent: {intent.target_path}" for intent in journal.list_open_intents(connection, mirror)]
        marked = {name: properties.get("federator.op") for name, (_, properties) in copies.items()}
        names = {name for name in owned.keys() | marked.keys() if name not in refused}
        found += [
            f"{name}: ledger {owned.get(name)}, mark {marked.get(name)}"
            for name in names
            if owned.get(name) != marked.get(name)
        ]
        return found

    def audited(self) -> list[str]:
        """What ``federator audit verify`` finds, and journal lines whose state is not that of their last audit event."""
        process = self.command("audit", "verify")
        found = [] if process.wait(_PATIENCE) == 0 else ["federator audit verify failed"]
        with self.index() as index:
            if audit.verify_log(index).finding is not None or audit_log.count_unsealed(index):
                found.append("the audit chain is not whole")
            events = [
                json.loads(row.event)["detail"] for row in audit_log.list_events(index, limit=100_000) if row.kind == "write"
            ]
            with index.read() as connection:
                rows = connection.execute(select(t.journal.c.op_id, t.journal.c.state)).all()
        # A call that took effect after its outcome has two events: the last one counts.
        if sorted({event["op_id"]: event["state"] for event in events}.items()) != sorted(tuple(row) for row in rows):
            found.append("journal and audit differ")
        return found


def end(process: subprocess.Popen[bytes], sign: int = signal.SIGTERM) -> int:
    """Signal the leader, wait for it, and kill what is left of its session. Return its exit code."""
    process.send_signal(sign)
    try:
        return process.wait(_PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _waiting(plans: Sequence[Plan]) -> bool:
    """Whether a plan has refusals that only time ends."""
    return any(
        refusal.reason.value in ("misses", "rename_pending", "not_covered") for plan in plans for refusal in plan.refusals
    )


def _name(path: str | None) -> str:
    return (path or "").rpartition("$")[2]
