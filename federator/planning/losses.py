"""Losses: revisions of a source that look like another catalog's, with or without an identity. Pure.

A source that loses or moves more than half of its tables at once, or whose feed of changes has another past, may be a restored or an
empty catalog. A plan that is made from such a revision waits for an approval, once for each mirror.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from federator.planning.holds import Binds, Hold, LiftedBy

# Below this many tables a share means nothing.
MINIMUM_TABLES = 2

HALF_GONE, FEED_WENT_BACK = "half_gone", "feed_went_back"


@dataclass(frozen=True, slots=True)
class Loss:
    """What one published crawl changed: of ``tables`` in the revision before, how many are absent (``gone``) or have another location
    (``moved``). ``went_back`` is the reason why the feed's past is another one; None where it is not."""

    source: str
    revision: int
    tables: int
    gone: int
    moved: int
    went_back: str | None = None

    @property
    def half(self) -> bool:
        return self.tables >= MINIMUM_TABLES and 2 * (self.gone + self.moved) > self.tables


def loss_holds(losses: Iterable[Loss]) -> list[Hold]:
    """List the holds of a plan that was made from these revisions, none of which was approved for its mirror."""
    holds: list[Hold] = []
    for loss in losses:
        if loss.went_back is not None:
            detail = f"{loss.source}, revision {loss.revision}: {loss.went_back}"
            holds.append(Hold(FEED_WENT_BACK, detail, Binds.ALL, LiftedBy.ITS_APPROVAL))
        if loss.half:
            counts = f"{loss.gone} of {loss.tables} tables absent and {loss.moved} moved at once"
            detail = f"{loss.source}, revision {loss.revision}: {counts}"
            holds.append(Hold(HALF_GONE, detail, Binds.ALL, LiftedBy.ITS_APPROVAL))
    return holds
