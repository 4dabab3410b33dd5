"""Detecting drift in the dirty set finds the same drift as detection over everything."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from federator.model import LocationAliases, TableRecord
from federator.planning.rule import LocationReplacement, MirrorRule
from federator.store import Index, drift_detection, drift_dirty_set, ledger, roots, verifications
from federator.store.roots import ScanGap, ScanResult
from federator.views import drift
from tests.fixtures.index import new_index
from tests.fixtures.index_content import fill, owned, table

NAMES = ("a", "b", "B", "c", "d")
LOCATIONS = ("s3://b/1", "s3://b/2", "s3://ap/1", "s3://b/3", "s3://b/4")
COLUMNS = (None, '[{"name":"id","type":"bigint"}]', '[{"name":"id","type":"string"}]', '[{"name":"old","type":"int"}]')


class World:
    """An index that anything may happen to."""

    def __init__(self, index: Index, seed: int) -> None:
        self.index = index
        self.random = random.Random(seed)
        self.rules = {"m": MirrorRule(name="m", origin="lake", target="copy")}
        self.names = ["disk"]

    def step(self) -> None:
        steps = [
            self.publish, self.publish, self.remove, self.mirror, self.forget, self.open, self.scan, self.alias, self.rule,
            self.no_root,
        ]  # fmt: skip
        self.random.choice(steps)()

    def publish(self) -> None:
        source = self.source()
        fill(self.index, source, *(self.table(source) for _ in range(self.random.randint(1, 3))), run="r")

    def remove(self) -> None:
        fill(self.index, self.source(), gone=[("s", self.random.choice(NAMES))], run="r")

    def mirror(self) -> None:
        path = f"s${self.random.choice(NAMES)}"
        with self.index.write() as connection:
            ledger.upsert_entry(connection, owned("lake", path, "copy"))

    def forget(self) -> None:
        with self.index.write() as connection:
            ledger.delete_target_entries(connection, "copy", f"s${self.random.choice(NAMES)}", is_table=True, mirror="m")

    def open(self) -> None:
        location, state = self.random.choice(LOCATIONS), self.random.choice(("valid", "missing"))
        row = dict.fromkeys(("message", "version", "rows", "fragments")) | {
            "canonical": location, "location": location, "state": state, "checked_at": time.time(), "checked_through": "lake",
            "access": "",
            "schema": '[{"name":"id","type":"int64"}]' if state == "valid" else None,
        }  # fmt: skip
        with self.index.write() as connection:
            verifications.save_verifications(connection, [row])

    def scan(self) -> None:
        found = self.random.sample(LOCATIONS, 2)
        gaps = [ScanGap("s3://b", "denied", "no")] if self.random.random() < 0.3 else []
        scanned = ScanResult("disk", "s3://b", "partial" if gaps else "complete", None, time.time(), 1, len(found), len(gaps))
        with self.index.write() as connection:
            roots.save_scan(connection, scanned, found, gaps, LocationAliases.from_prefixes({}))

    def alias(self) -> None:
        with self.index.write() as connection:
            verifications.refresh_location_aliases(
                connection, LocationAliases.from_prefixes({"s3://ap": "s3://b"} if self.random.random() < 0.5 else {})
            )

    def rule(self) -> None:
        move = (LocationReplacement("s3://b", "s3://c"),) if self.random.random() < 0.5 else ()
        self.rules = {"m": MirrorRule(name="m", origin="lake", target="copy", location=move)}

    def no_root(self) -> None:
        self.names = ["disk"] if self.random.random() < 0.7 else []

    def source(self) -> str:
        return str(self.random.choice(("lake", "copy")))

    def table(self, source: str) -> TableRecord:
        choose = self.random.choice
        return table(
            source, "s", choose(NAMES), location=choose(LOCATIONS), schema=choose(COLUMNS), doc=choose((None, "x", "y")),
            properties=choose(({}, {"team": "eu"}, {"team": "us"})),
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_what_was_touched_is_all_that_can_have_drifted(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # What was written a moment ago is looked at again by its time alone: here everything would be.
    monkeypatch.setattr(drift_dirty_set, "_CLOCK_SKEW_SECONDS", 0.0)
    index = new_index(tmp_path)
    world = World(index, seed)
    for _ in range(30):
        world.step()
        drift_detection.refresh_drift(index, world.rules, world.names)
        with index.read() as connection:
            everything = {each.key: each.detail for each in drift_detection.detect_drift(connection, world.rules)}
        assert {seen.key: seen.detail for seen in drift.list_drift(index, limit=1000)} == everything
    index.close()


def test_too_much_to_look_at_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift_dirty_set, "MAX_DIRTY_OBJECTS", 1)
    index = new_index(tmp_path)
    drift_detection.refresh_drift(index, {})
    fill(index, "lake", *(table("lake", "s", name, location="s3://b/1") for name in ("a", "b", "c")))
    drift_detection.refresh_drift(index, {})
    assert [seen.key[1] for seen in drift.list_drift(index)] == ["lake$s$b", "lake$s$c"]
    index.close()
