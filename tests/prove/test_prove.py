"""The proof in short, and that it can fail: a product without one of its rules is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prove.__main__ import main
from tests.prove.rules_off import RULES, without
from tests.prove.run import shorten, story_of, tell
from tests.prove.tally import Tally

#: what the oracle must say of a product without a rule
FOUND = {
    "1": {"deregistered without evidence", "deregistered while its origin is there"},
    "2": {"what is not ours was changed"},
    "4": {"guard: an empty source", "guard: too many changes", "guard: too much removed"},
    "5": {"a call on an object that moved", "declared for an origin that was never shown"},
    "6": {"a second name for a location", "a mirror of a mirror was an origin"},
    "origin": {"the origin was not observed last", "deregistered while its origin is there"},
    "leases": {"a write of the journal without its leases"},
    "cascades": {"a cascade took what was hidden"},
    "identity": {"a write while another catalog answers"},
    "half_gone": {"guard: half gone"},
    "feed": {"guard: the feed went back"},
    "confirmation": {"deregistered without evidence"},
    "rows": {"deregistered without evidence", "a second name for a location"},
    "outdated": {"old evidence took the place of a newer look"},
    "undescribed": {"a second name for a location"},
    "misses": {"deregistered without evidence"},
    "removals": {"guard: too much removed"},
}
_WITHIN = 10_000


def test_a_thousand_stories_break_no_rule() -> None:
    tally = Tally()
    for number in range(1_000):
        tally.add(tell(7, number))
    assert tally.violations == []
    assert tally.fewest_steps >= 20
    assert tally.fewest_faults >= 3
    assert tally.writes > tally.runs


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_product_without_a_rule_is_found_out(rule: str) -> None:
    with without(rule):
        for number in range(_WITHIN):
            result = tell(1, number)
            if result.violation is not None and result.violation.rule in FOUND[rule]:
                return
    pytest.fail(f"{_WITHIN} stories without rule {rule}, and nobody noticed")


def test_the_same_number_tells_the_same_story() -> None:
    one, two = tell(3, 11, verbose=True), tell(3, 11, verbose=True)
    assert one.story == two.story
    assert len(one.story) > 30


def test_a_story_that_breaks_a_rule_is_made_shorter() -> None:
    with without("6"):
        number, violation = next((n, result.violation) for n in range(100) if (result := tell(1, n)).violation is not None)
        assert violation is not None
        short = shorten(1, number, violation)
        result = tell(1, number, story=short)
    assert result.violation is not None
    assert result.violation.rule == violation.rule
    assert len(short) < len(story_of(1, number)[1])


def test_progress_is_kept_and_taken_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--jobs", "1", "--partial", "--checkpoint", str(tmp_path / "progress"), "--out", str(tmp_path / "result.txt")]
    assert main(["--runs", "20", *arguments]) == 0
    first = (tmp_path / "result.txt").read_text(encoding="utf-8")
    assert "violations  0" in first
    assert main(["--runs", "20", *arguments]) == 0
    assert len((tmp_path / "progress").read_text(encoding="utf-8").splitlines()) == 1
    counts = [line for line in first.splitlines() if line.startswith(("runs", "faults", "writes"))]
    assert all(line in capsys.readouterr().out or line in first for line in counts)


def test_what_breaks_a_rule_is_kept_and_ends_with_1(tmp_path: Path) -> None:
    assert main(["--runs", "40", "--jobs", "1", "--without-rule", "6", "--keep", str(tmp_path)]) == 1
    kept = sorted(tmp_path.glob("1-*.txt"))
    assert kept
    text = kept[0].read_text(encoding="utf-8")
    assert text.startswith("python -m tests.prove --seed 1 --run ")
    assert "✗" in text
