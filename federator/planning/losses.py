"""Losses: revisions of a source that may come from another catalog, with or without an identity. Pure.

A source may be a restored or an empty catalog if it loses or moves more than half of its tables at once, or if its change feed has
another past. A plan that is made from such a revision waits for an approval, once for each mirror.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from federator.planning.holds import Binds, Hold, LiftedBy
from federator.planning.rule import MirrorRule

# With fewer tables a share is meaningless.
MINIMUM_TABLES = 2

HALF_GONE, FEED_WENT_BACK = "half_gone", "feed_went_back"
#: states of plans that were accepted with the revisions that they were made from
ACCEPTED_STATES = ("approved", "applied")


@dataclass(frozen=True, slots=True)
class Loss:
    """The changes of one published crawl that may be a loss.

    Of ``tables`` in the revision before, ``gone`` are absent and ``moved`` have another location. ``went_back`` is the reason why
    the feed's past is another one. None if it is not.
    """

    source: str
    revision: int
    tables: int
    gone: int
    moved: int
    went_back: str | None = None

    @property
    def exceeds_half(self) -> bool:
        """Whether more than half of the tables are absent or moved."""
        return self.tables >= MINIMUM_TABLES and 2 * (self.gone + self.moved) > self.tables


def known_revisions(
    sources: Iterable[tuple[str, str]], origin_revision: int, target_revision: int
) -> dict[tuple[str, str], int]:
    """Return the revisions that a plan was made from, by source and side.

    ``sources`` are the origin and the target of each change, because the configuration may have named other sources then.
    """
    sides = {(origin, target) for origin, target in sources}
    known = {(origin, "origin"): origin_revision for origin, _ in sides}
    return known | {(target, "target"): target_revision for _, target in sides}


def weighed_since(
    known: Mapping[tuple[str, str], int], origin: str, target: str, declared: Collection[tuple[str, str]]
) -> dict[str, int]:
    """Return, by source of a mirror, the revision after which losses hold the mirror's plans.

    ``known`` are the revisions of the mirror's last plan that was approved or applied. For a source that this plan does not name,
    all revisions count if the mirror has ``declared`` tables of it on this side: its configuration was changed back, or its ledger
    was rebuilt. Otherwise the mirror has not declared anything of it yet, and its past does not matter.
    """
    sides = ((origin, "origin"), (target, "target"))
    return {side[0]: known.get(side, 0) for side in sides if side in known or side in declared}


def list_unapproved(
    rule: MirrorRule,
    known: Mapping[tuple[str, str], int],
    declared: Collection[tuple[str, str]],
    find_losses: Callable[[str, int], Iterable[Loss]],
) -> list[Loss]:
    """Return the losses of a mirror's two sources for which no plan was approved or applied (``weighed_since``).

    ``declared`` are the sources of the mirror's ledger, each with its side. ``find_losses`` returns a source's losses after a revision.
    """
    since = weighed_since(known, rule.origin, rule.target, declared)
    return [loss for source, revision in since.items() for loss in find_losses(source, revision)]


def loss_holds(losses: Iterable[Loss]) -> list[Hold]:
    """Return the holds of a plan for losses that were not approved for its mirror."""
    holds: list[Hold] = []
    for loss in losses:
        if loss.went_back is not None:
            detail = f"{loss.source}, revision {loss.revision}: {loss.went_back}"
            holds.append(Hold(FEED_WENT_BACK, detail, Binds.ALL, LiftedBy.ITS_APPROVAL))
        if loss.exceeds_half:
            counts = f"{loss.gone} of {loss.tables} tables absent and {loss.moved} moved at once"
            detail = f"{loss.source}, revision {loss.revision}: {counts}"
            holds.append(Hold(HALF_GONE, detail, Binds.ALL, LiftedBy.ITS_APPROVAL))
    return holds
