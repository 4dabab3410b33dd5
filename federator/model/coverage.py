"""Coverage: the evidence of a crawl, per namespace.

Presence (the listing of the namespace's children) and detail (what each child says) are kept apart: a table that was listed
but could not be described is present. Only ``complete`` presence can prove that something is absent. ``carried`` evidence was
complete in an earlier revision, and a feed of changes has named nothing of the namespace since: it says what is there, and proves
nothing gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from federator.model.identifiers import Path, path_key


class CoverageState(StrEnum):
    COMPLETE = "complete"
    CARRIED = "carried"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One state with its reason: the error code (Lance spec number) of a failure, or the revision that was carried."""

    state: CoverageState
    reason: str = ""
    code: int | None = None
    revision: int | None = None

    @property
    def complete(self) -> bool:
        return self.state is CoverageState.COMPLETE

    @property
    def holds(self) -> bool:
        """Read whole, in the crawl itself or in the revision that it was carried from."""
        return self.state in (CoverageState.COMPLETE, CoverageState.CARRIED)


COMPLETE = Evidence(CoverageState.COMPLETE)


def failed(code: int, reason: str) -> Evidence:
    return Evidence(CoverageState.FAILED, reason, code)


def skipped(reason: str) -> Evidence:
    return Evidence(CoverageState.SKIPPED, reason)


def carried(revision: int) -> Evidence:
    return Evidence(CoverageState.CARRIED, revision=revision)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What one crawl can prove of one namespace.

    ``records`` counts the child records (namespaces and tables) that were handed over with it and ``digest`` folds their
    digests (``fold_digest``), so that a lost row is noticed. ``found = False`` says that the namespace itself does not exist.
    """

    source: str
    namespace: Path
    presence: Evidence = COMPLETE
    detail: Evidence = COMPLETE
    records: int = 0
    digest: int = 0
    found: bool = True

    @property
    def key(self) -> str:
        return path_key(self.namespace)

    @property
    def complete(self) -> bool:
        """Presence is proven, so a child that is not there is absent."""
        return self.presence.complete

    @property
    def holds(self) -> bool:
        """Presence was read whole, if not in this crawl, then in the one that it was carried from."""
        return self.presence.holds

    def carried_from(self, revision: int) -> Coverage:
        """This evidence in a crawl that had no reason to read the namespace; ``revision`` is where it was read, unless it was carried
        itself."""
        presence, detail = (each if each.revision is not None else carried(revision) for each in (self.presence, self.detail))
        return replace(self, presence=presence, detail=detail)

    def as_read(self) -> Coverage:
        """The evidence as the namespace's own reading left it: what a plan weighs, since each of its changes is looked at again."""
        presence, detail = (COMPLETE if each.state is CoverageState.CARRIED else each for each in (self.presence, self.detail))
        return replace(self, presence=presence, detail=detail)
