"""What can be proven of the audit log in the index: the chain, the signatures of its heads, and their publication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from federator.audit.anchors import Anchor
from federator.audit.chain import Finding, Mark, walk
from federator.audit.heads import Head, recorded
from federator.audit.keys import is_signed
from federator.index import Index, audit_log

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    Keys = Mapping[str, Ed25519PublicKey]


@dataclass(frozen=True, slots=True)
class Proof:
    """The log from ``first`` to ``last`` with the digest of the last. ``signed`` and ``anchored`` are the newest events that a
    signature and the anchor vouch for (0: none); ``unsealed`` events are not in the chain yet."""

    first: int
    last: int
    digest: str
    finding: Finding | None
    signed: int
    anchored: int
    unsealed: int

    @property
    def intact(self) -> bool:
        return self.finding is None

    @property
    def tail(self) -> str:
        """What is known of the end: ``proven``; or ``unproven`` from the event after ``anchored``, which may have been cut off."""
        return "proven" if self.intact and self.last and self.anchored == self.last else "unproven"


def prove(index: Index, *, keys: Keys | None = None, anchor: Anchor | None = None) -> Proof:
    """Walks the whole log. With ``keys`` every signature must be of one of them; with an ``anchor`` that can be read, what was
    published must be there. Raises AnchorUnavailable."""
    known = recorded(index)
    published = anchor.read() if anchor is not None else None
    marks = [Mark(head.seq, head.digest, "signed" if keys and head.signature else "recorded") for head in known]
    marks += [Mark(head.seq, head.digest, "anchored") for head in published or ()]
    found = walk(audit_log.every_event(index), marks, keys=keys)
    problems = [found.finding, forged([*known, *(published or ())], keys), _unpublished(index, published)]
    finding = min((problem for problem in problems if problem is not None), key=lambda problem: problem.seq, default=None)
    return Proof(
        first=found.base[0] + 1,
        last=found.seq,
        digest=found.digest,
        finding=finding,
        signed=found.proven.get("signed", 0),
        anchored=found.proven.get("anchored", 0),
        unsealed=audit_log.unsealed_count(index),
    )


def forged(heads: Iterable[Head], keys: Keys | None) -> Finding | None:
    """The first head whose signature is not what it should be. Without keys, nobody can tell."""
    for head in sorted(heads, key=lambda head: head.seq) if keys else ():
        if head.signature is not None and not is_signed(head.payload, head.key, head.signature, keys or {}):
            return Finding(
                head.seq, f"the head at event {head.seq} is signed by key {head.key}, which is not ours, or not by it"
            )
    return None


def _unpublished(index: Index, published: Iterable[Head] | None) -> Finding | None:
    """The newest head that was published must be where it was published to."""
    if published is None:
        return None
    noted = [row["seq"] for row in audit_log.heads(index) if row["anchored_at"] is not None]
    newest = max(noted, default=0)
    if newest == 0 or newest in {head.seq for head in published}:
        return None
    return Finding(newest, f"the head at event {newest} was published, and the anchor does not have it any more")
