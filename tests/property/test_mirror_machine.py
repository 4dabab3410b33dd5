"""Mirroring as a state machine: the worlds, steps and oracle of ``tests.prove``, with Hypothesis choosing what happens next."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.prove import worlds
from tests.prove.run import build, live, rest
from tests.prove.steps import OPERATIONS
from tests.prove.world import World

CATALOGS = st.integers(0, 2)
MIRRORS = st.integers(0, 3)
NUMBERS = st.integers(0, 255)
_USERS = (
    "new",
    "drop",
    "rename",
    "alter",
    "unlance",
    "drop_namespace",
    "revoke",
    "restore",
    "change_principal",
    "replace_catalog",
    "put_back",
    "confirm",
    "feed_back",
)
_FAULTS = ("arm_listing", "arm_write", "arm_look", "arm_race", "arm_outage")
_SERVICE = ("crawl", "plan", "apply", "approve", "arm_journal", "tamper", "change_mirror")


class Mirroring(RuleBasedStateMachine):
    """Every step is checked as it happens; what is left when Hypothesis ends must come to rest."""

    world: World | None = None
    steps = 0

    @initialize(
        seed=st.integers(0, 10_000), topology=st.integers(0, len(worlds.TOPOLOGIES) - 1), tables=st.lists(NUMBERS, max_size=4)
    )
    def begin(self, seed: int, topology: int, tables: list[int]) -> None:
        self.world = build(worlds.draw(Random(seed), topology))
        for number in tables:
            self._live("new", number, number, number)
        for mirror in range(2):
            self._synchronise(mirror)

    @rule(what=st.sampled_from(_USERS), catalog=CATALOGS, b=NUMBERS, c=NUMBERS)
    def something_happens(self, what: str, catalog: int, b: int, c: int) -> None:
        self._live(what, catalog, b, c)

    @rule(what=st.sampled_from(_FAULTS), catalog=CATALOGS, b=NUMBERS, c=NUMBERS)
    def a_fault_waits(self, what: str, catalog: int, b: int, c: int) -> None:
        self._live(what, catalog, b, c)

    @rule(what=st.sampled_from(_SERVICE), mirror=MIRRORS, b=NUMBERS, c=NUMBERS)
    def the_service_goes_on(self, what: str, mirror: int, b: int, c: int) -> None:
        self._live(what, mirror, b, c)

    @rule(mirror=MIRRORS)
    def it_synchronises(self, mirror: int) -> None:
        self._synchronise(mirror)

    @rule(how=st.integers(0, 7))
    def time_passes(self, how: int) -> None:
        self._live("clock", how, 0, 0)

    @invariant()
    def the_ledger_is_sound(self) -> None:
        if self.world is not None:
            self.world.check()

    def teardown(self) -> None:
        if self.world is not None:
            rest(self.world)

    def _synchronise(self, mirror: int) -> None:
        for step in (("crawl", 0, 0), ("crawl", 1, 0), ("plan", 1, 0), ("apply", 0, 1)):
            self._live(step[0], mirror, *step[1:])

    def _live(self, what: str, a: int, b: int, c: int) -> None:
        assert self.world is not None
        assert what in OPERATIONS
        live(self.world, (what, a, b, c), self.steps)
        self.steps += 1


TestMirroring = Mirroring.TestCase
TestMirroring.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
