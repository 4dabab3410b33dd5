"""Verification of the audit log in the index: the chain, the signatures of its heads, and their publication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from federator.audit.anchors import Anchor
from federator.audit.chain import Attestation, Finding, check_chain
from federator.audit.heads import Head, list_heads
from federator.audit.keys import is_valid_signature
from federator.store import Index, audit_log

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    Keys = Mapping[str, Ed25519PublicKey]


@dataclass(frozen=True, slots=True)
class AuditProof:
    """The log from ``first`` to ``last``, with the digest of the last event.

    ``signed`` and ``anchored`` are the newest events with a valid signature and in the anchor (0: none). ``unsealed`` is the number
    of events that are not in the chain yet.
    """

    first: int
    last: int
    digest: str
    finding: Finding | None
    signed: int
    anchored: int
    unsealed: int

    @property
    def is_intact(self) -> bool:
        return self.finding is None

    @property
    def tail(self) -> str:
        """``proven``, or ``unproven`` if events after ``anchored`` may have been cut off."""
        return "proven" if self.is_intact and self.last and self.anchored == self.last else "unproven"


def verify_log(index: Index, *, keys: Keys | None = None, anchor: Anchor | None = None) -> AuditProof:
    """Verify the whole log.

    With ``keys``, every signature must be of one of them. With an ``anchor`` that can be read, the published heads must be in it.
    Raise AnchorUnavailable.
    """
    recorded = list_heads(index)
    published = anchor.read() if anchor is not None else None
    attestations = [
        Attestation(head.seq, head.digest, "signed" if keys and head.signature else "recorded") for head in recorded
    ]
    attestations += [Attestation(head.seq, head.digest, "anchored") for head in published or ()]
    check = check_chain(audit_log.iter_events(index), attestations, keys=keys)
    problems = [
        check.finding,
        find_forged_head([*recorded, *(published or ())], keys),
        _find_missing_published_head(index, published),
    ]
    finding = min((problem for problem in problems if problem is not None), key=lambda problem: problem.seq, default=None)
    return AuditProof(
        first=check.base[0] + 1,
        last=check.seq,
        digest=check.digest,
        finding=finding,
        signed=check.proven.get("signed", 0),
        anchored=check.proven.get("anchored", 0),
        unsealed=audit_log.count_unsealed(index),
    )


def find_forged_head(heads: Iterable[Head], keys: Keys | None) -> Finding | None:
    """Return the first head whose signature is not valid. Without keys, signatures are not checked."""
    for head in sorted(heads, key=lambda head: head.seq) if keys else ():
        if head.signature is not None and not is_valid_signature(head.payload, head.key, head.signature, keys or {}):
            return Finding(
                head.seq, f"the head at event {head.seq} has no valid signature of a known key: its key is {head.key}"
            )
    return None


def _find_missing_published_head(index: Index, published: Iterable[Head] | None) -> Finding | None:
    """Check that the newest published head is in the anchor."""
    if published is None:
        return None
    published_seqs = [head.seq for head in audit_log.list_heads(index) if head.anchored_at is not None]
    newest = max(published_seqs, default=0)
    if newest == 0 or newest in {head.seq for head in published}:
        return None
    return Finding(newest, f"the head at event {newest} was published, but is missing in the anchor")
