"""The lie matrix, short: one server of each kind; lies that cost time for two. All of it: ``python -m tests.adversary lies``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.adversary import expectations, worlds
from tests.adversary.matrix import LIES, PHASES, Kindof, cell_of
from tests.adversary.worlds import World

_SLOW = {"hang", "drip", "drip forever"}
_SLOW_FOR = {"unity", "hive2"}
WORLDS = ("glue", "unity", "polaris", "iceberg", "rest", "hive2")


@pytest.fixture(scope="module", autouse=True)
def impatient() -> Iterator[None]:
    with worlds.impatient():
        yield


@pytest.fixture(scope="module")
def opened(impatient: None) -> Iterator[tuple[ExitStack, dict[str, World]]]:
    """The worlds that are open, and what closes them at the end of the module."""
    with ExitStack() as stack:
        yield stack, {}


@pytest.fixture
def world(
    request: pytest.FixtureRequest, opened: tuple[ExitStack, dict[str, World]], tmp_path_factory: pytest.TempPathFactory
) -> World:
    """One world a kind. A module's fixture would be made for each lie, because pytest sees each pair as another parameter."""
    stack, made = opened
    name: str = request.param
    if name not in made:
        directory = tmp_path_factory.mktemp("lies")
        made[name] = stack.enter_context(
            {
                "glue": lambda: worlds.glue_world(request.getfixturevalue("glue_url")),
                "unity": worlds.unity_world,
                "polaris": worlds.polaris_world,
                "iceberg": lambda: worlds.iceberg_world(request.getfixturevalue("iceberg_server"), directory),
                "rest": lambda: worlds.rest_world(directory),
                "hive2": lambda: worlds.hive_world(request.getfixturevalue("hive2_uri"), 2, directory),
            }[name]()
        )
    return made[name]


def _cases() -> Iterator[object]:
    for name in WORLDS:
        for lie in LIES:
            if lie.name not in _SLOW or name in _SLOW_FOR:
                yield pytest.param(name, lie, id=f"{name}-{lie.name}")


@pytest.mark.parametrize(("world", "lie"), list(_cases()), indirect=["world"])
def test_a_lie(world: World, lie: Kindof) -> None:
    cells = [cell_of(world, lie, phase) for phase in PHASES]
    assert [(cell.name, cell.observed) for cell in cells if not cell.ok] == [
        (cell.name, cell.expected) for cell in cells if not cell.ok
    ]


def test_every_phase_and_lie_is_met_somewhere() -> None:
    """No lie and no phase is ruled out for all worlds, and no exception of the matrix is about a lie that there is not."""
    names = {lie.name for lie in LIES}
    assert {lie for _, lie, _ in expectations.EXCEPTIONS} <= names
    assert set(expectations.CODES) <= names
