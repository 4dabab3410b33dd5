"""Coverage: the evidence of a crawl, per namespace.

Presence (evidence of the listing) and detail (evidence of the children's content) are separate. So a table that was listed but could
not be described is present. Only ``complete`` presence can prove that an object is absent. ``carried`` evidence was complete in an
earlier revision. Since then, only the tables that the change feed names were read. It shows what exists and proves no absence.
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
    """One state with its reason. ``code`` is the Lance error code of a failure, ``revision`` the revision that was carried."""

    state: CoverageState
    reason: str = ""
    code: int | None = None
    revision: int | None = None

    @property
    def complete(self) -> bool:
        return self.state is CoverageState.COMPLETE

    @property
    def complete_or_carried(self) -> bool:
        """Return whether the evidence is complete, from this crawl or from the revision that it was carried from."""
        return self.state in (CoverageState.COMPLETE, CoverageState.CARRIED)


COMPLETE = Evidence(CoverageState.COMPLETE)


def failed_evidence(code: int, reason: str) -> Evidence:
    return Evidence(CoverageState.FAILED, reason, code)


def skipped_evidence(reason: str) -> Evidence:
    return Evidence(CoverageState.SKIPPED, reason)


def carried_evidence(revision: int) -> Evidence:
    return Evidence(CoverageState.CARRIED, revision=revision)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The evidence of one crawl for one namespace.

    ``records`` counts the child records (namespaces and tables) that the connector returned with it, and ``digest`` combines their
    digests (``fold_digest``): a lost row is detected. ``found`` is False if the namespace itself does not exist.
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
        """Return whether presence is complete. Then a child that was not listed is absent."""
        return self.presence.complete

    @property
    def weakest(self) -> Evidence:
        """The evidence that people are shown for the namespace: presence if it is not complete, else detail."""
        return self.detail if self.presence.complete else self.presence

    @property
    def complete_or_carried(self) -> bool:
        """Return whether presence is complete, from this crawl or from the revision that it was carried from."""
        return self.presence.complete_or_carried

    def as_carried(self, revision: int) -> Coverage:
        """Return the coverage for a crawl that did not read the namespace.

        ``revision`` is the revision in which the namespace was read. Evidence that was already carried keeps its own revision.
        """
        presence, detail = (
            evidence if evidence.revision is not None else carried_evidence(revision)
            for evidence in (self.presence, self.detail)
        )
        return replace(self, presence=presence, detail=detail)

    def as_read(self) -> Coverage:
        """Return the coverage with carried evidence as complete. Plans use it, because each change has its own preflight check."""
        presence, detail = (
            COMPLETE if evidence.state is CoverageState.CARRIED else evidence for evidence in (self.presence, self.detail)
        )
        return replace(self, presence=presence, detail=detail)
