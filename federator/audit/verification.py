"""Verification of the audit log in the index: the chain, the signatures of its heads, and their publication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from federator.audit.anchors import Anchor
from federator.audit.chain import Attestation, EventRef, Finding, check_chain
from federator.audit.heads import Head, list_heads
from federator.audit.keys import is_valid_signature
from federator.store import Index, audit_log

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    Keys = Mapping[str, Ed25519PublicKey]


@dataclass(frozen=True, slots=True)
class AuditProof:
    """The log from ``first`` to ``last``, with the digest of the last event.

    ``signed`` is the newest event with a valid signature, ``anchored`` the newest one in the anchor (0: none). ``unsealed`` is the
    number of events that are not in the chain yet.
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


@dataclass(frozen=True, slots=True)
class AuditState:
    """The state of the chain, from its newest events."""

    sealed: Annotated[int, Field(examples=[18412], description="number of the newest event of the chain; 0: none")]
    digest: Annotated[str, Field(description="digest of this event")]
    unsealed: Annotated[int, Field(description="number of events that are not in the chain yet")]
    checked: Annotated[
        int, Field(description="number of newest events whose digests and order were verified for this response")
    ]
    finding: Annotated[str | None, Field(description="what is wrong with them; null: they are intact")]
    signed: Annotated[
        int, Field(description="newest event with a recorded signature, among those checked; 0: none. Its key is not checked")
    ]
    anchored: Annotated[int, Field(description="newest event that was published to the anchor, among those checked; 0: none")]


def read_state(index: Index, *, newest: int = 1000) -> AuditState:
    """Verify the newest events of the log, and tell how far it is sealed, signed and anchored.

    ``verify_log`` verifies all events, the signatures and the anchor.
    """
    with index.read() as connection:
        tip, digest = audit_log.get_chain_tip(connection)
        before = max(0, tip - newest)
        base = audit_log.find_digest(connection, before) if before else None
    heads = audit_log.list_stored_heads(index, after=before)
    attestations = [Attestation(head.seq, head.digest, "recorded") for head in heads if head.seq <= tip]
    events = audit_log.iter_events(index, after=before, through=tip)
    check = check_chain(events, attestations, base=EventRef(before, base) if base is not None else None)
    return AuditState(
        sealed=tip,
        digest=digest,
        unsealed=audit_log.count_unsealed(index),
        checked=check.seq - check.base.seq,
        finding=check.finding.what if check.finding else None,
        signed=max((head.seq for head in heads if head.signature), default=0),
        anchored=max((head.seq for head in heads if head.anchored_at is not None), default=0),
    )


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
        first=check.base.seq + 1,
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
    """Return a finding if the newest published head is missing in the anchor."""
    if published is None:
        return None
    published_seqs = [head.seq for head in audit_log.list_stored_heads(index) if head.anchored_at is not None]
    newest = max(published_seqs, default=0)
    if newest == 0 or newest in {head.seq for head in published}:
        return None
    return Finding(newest, f"the head at event {newest} was published, but is missing in the anchor")
