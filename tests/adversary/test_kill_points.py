"""A process is killed at every moment of a run, and in the resumption of that run: the end is as if nobody had been killed.

The moments are those that a run reaches which nobody kills. Real servers: a Hive metastore, and Glue over HTTP; and the catalog in
memory, where a table is declared again because its catalog says that all of it comes back.
"""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from federator.connector import SourceSpec
from tests.adversary.killing import SUBJECTS, TARGET, Orders, Site, World, workers
from tests.fixtures.index import new_index

pytestmark = pytest.mark.timeout(900)

KILLED = -signal.SIGKILL

#: the writes of each subject
CALLS = {
    "deregister": ["deregister_table s$gone"],
    "create": ["create_namespace fresh", "declare_table fresh$t"],
    "rename": ["deregister_table s$old", "declare_table s$new"],
    "update": ["update_table s$changed"],
    "recreate": ["deregister_table s$again", "declare_table s$again"],
    "adopt": ["update_table s$theirs"],
    "declare": ["declare_table s$made"],
    "drop": ["drop_namespace empty"],
}


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with workers(4) as started:
        yield started


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """Room on the server that the parameter names."""
    directory = tmp_path / f"k{secrets.token_hex(3)}"
    directory.mkdir()
    index = new_index(directory, "template.db")
    index.close()
    template = directory / "template.db"
    if request.param == "memory":
        return Site(directory, SourceSpec(TARGET, "federator.testing:CONNECTOR", {}), "s3://bucket", template=template)
    if request.param == "glue":
        account = request.getfixturevalue("glue_account")
        return Site(
            directory, SourceSpec(TARGET, "glue", account.properties), "s3://bucket", account.account_id, template=template
        )
    properties = {"uri": request.getfixturevalue("hive2_uri"), "root": f"file:{tmp_path}", "client.pool-size": "1"}
    return Site(directory, SourceSpec(TARGET, "hive2", properties), f"file:{tmp_path}", template=template)


@pytest.mark.parametrize("site", ["memory", "hive2", "glue"], indirect=True)
def test_a_run_killed_at_any_moment_ends_as_one_that_was_not(site: Site, pool: ProcessPoolExecutor) -> None:
    calm = dict(zip(SUBJECTS, pool.map(_calmly, [site] * len(SUBJECTS), SUBJECTS), strict=True))
    for subject, (wanted, moments) in calm.items():
        assert [what.removeprefix("before call ") for what in moments if what.startswith("before call")] == CALLS[subject]
        # Two moments of each call, and four of the journal for each Change; a recreation is one Change of two calls.
        assert len(moments) == 2 * len(CALLS[subject]) + 4 * (1 if subject == "recreate" else len(CALLS[subject]))
        assert (wanted["orphans"], wanted["strangers"], wanted["open"], wanted["unfinished"]) == ([], [], [], [])
        assert wanted["locations"] == len(wanted["tables"])
    points = [(subject, at, wanted) for subject, (wanted, moments) in calm.items() for at in range(len(moments))]
    futures = [pool.submit(_killed, site, *point) for point in points]
    lines = [line for future in futures for line in future.result()]
    assert [line for line in lines if not line.endswith(" well")] == []
    # Every moment of the first run; and of what resumes after a call that was not made, or made and not recorded.
    assert len(lines) >= len(points) + 4 * sum(map(len, CALLS.values()))


@pytest.mark.parametrize("site", ["memory", "hive2", "glue"], indirect=True)
def test_the_rest_of_a_plan_is_carried_out_after_a_death(site: Site, pool: ProcessPoolExecutor) -> None:
    expected, moments = pool.submit(_calmly, site, *SUBJECTS).result()
    tables = {
        "fresh$t": ("t", "1"), "s$again": ("again", "2"), "s$changed": ("changed", "2"), "s$last": ("last", "1"),
        "s$made": ("made", "1"), "s$new": ("old", "1"), "s$theirs": ("theirs", "2"),
    }  # fmt: skip
    assert {key: (location.split("/")[-1], v) for key, (location, v) in expected["tables"].items()} == tables
    assert (expected["namespaces"], expected["deleted"]) == (["s", "fresh"], ["s$again", "s$gone"])
    made = [at for at, what in enumerate(moments) if what.startswith("after call")]
    futures = [pool.submit(_killed, site, "all", at, expected, twice=False) for at in made]
    assert [line for future in futures for line in future.result() if not line.endswith(" well")] == []
    assert len(made) == sum(map(len, CALLS.values()))


def _calmly(site: Site, *subjects: str) -> tuple[dict[str, Any], list[str]]:
    """The end of a run that nobody kills, and its moments but for those of the bystander."""
    world = site.world(f"calm{len(subjects)}{subjects[0]}", *subjects)
    assert world.run() == 0
    wanted = world.state()
    moments = [moment["what"] for moment in world.moments()]
    # The same plan again changes nothing, and counts nothing twice.
    assert world.run() == 0
    assert world.state() == wanted
    return wanted, [what for what in moments if not what.endswith("s$last")]


def _killed(site: Site, subject: str, at: int, expected: dict[str, Any], *, twice: bool = True) -> list[str]:
    """What became of a world whose process was killed at that moment, and of those whose next process was killed, too."""
    subjects = SUBJECTS if subject == "all" else (subject,)
    world = site.world(f"{subject}{at}", *subjects)
    lines = [_describe_end(world, [at], expected)]
    reached = world.moments()
    moment = reached[at]["what"]
    if not twice or not moment.startswith(("before call", "after call")):
        return lines
    resumed = [later["at"] for later in reached[at + 1 :] if later["phase"] == "resume"]
    return lines + [_describe_end(site.world(f"{subject}{at}r{again}", *subjects), [at, again], expected) for again in resumed]


def _describe_end(world: World, kills: list[int], expected: dict[str, Any]) -> str:
    for at in kills:
        code = world.run(Orders(at=at))
        assert code == KILLED, (world.directory.name, at, code)
    code = world.run()
    what = [moment["what"] for moment in world.moments() if moment["at"] in kills][: len(kills)]
    found = world.state()
    wrong = {name: (found[name], value) for name, value in expected.items() if found[name] != value}
    repeated = world.repeated()
    return f"killed at {what}: {f'exit code {code}, {wrong=}, {repeated=}' if code or wrong or repeated else 'all is well'}"
