"""Verification of a chain of sealed events, in any storage: find the first event that was altered, removed, added or moved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from federator.audit.keys import is_valid_signature
from federator.audit.sealing import seal_event
from federator.model import canonical_json
from federator.model.audit_kinds import AuditKind
from federator.store.audit_log import SealedEvent

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class EventRef(NamedTuple):
    """The number and digest of a sealed event."""

    seq: int
    digest: str


#: stands before the first event
_START = EventRef(0, "")


@dataclass(frozen=True, slots=True)
class Attestation:
    """The attested digest of one event. ``by`` is ``recorded``, ``signed``, ``anchored`` or ``exported``."""

    seq: int
    digest: str
    by: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The first bad event, by its number, and a description of the problem."""

    seq: int
    what: str


@dataclass
class ChainCheck:
    """The result of a verification. The chain goes from the event after ``base`` to ``seq``.

    ``proven`` is, for each kind of attestation, the newest attested event. An attestation also proves all earlier events.
    """

    base: EventRef = _START
    seq: int = 0
    digest: str = ""
    finding: Finding | None = None
    proven: dict[str, int] = field(default_factory=dict)

    @property
    def attested_through(self) -> int:
        return max(self.proven.values(), default=self.base.seq)


def check_chain(
    events: Iterable[SealedEvent],
    attestations: Iterable[Attestation] = (),
    *,
    base: EventRef | None = None,
    keys: Mapping[str, Ed25519PublicKey] | None = None,
) -> ChainCheck:
    """Verify sealed events in order, up to the first bad one.

    ``base`` is the event before the first one, if it is known. Otherwise the chain must start with
    event 1, or contain a checkpoint for the missing events before it. With ``keys``, that checkpoint must be signed by one of them.
    """
    by_seq: dict[int, list[Attestation]] = {}
    for attestation in attestations:
        by_seq.setdefault(attestation.seq, []).append(attestation)
    check, checkpoints, started = ChainCheck(), {0: ""}, base is not None
    if base is not None:
        check.base, check.seq, check.digest = base, *base
        checkpoints = dict([base])
    for event in events:
        if not started:
            started = True
            check.base = EventRef(event.seq - 1, event.previous if event.seq > 1 else "")
            check.seq, check.digest = check.base
            check.finding = _compare_attestations(check, by_seq)
        check.finding = check.finding or _find_broken_link(check, event) or _compare_attestations(check, by_seq, event)
        if check.finding is not None:
            break
        check.seq, check.digest = event.seq, event.digest
        if event.kind == AuditKind.CHECKPOINT:
            checkpoints.update(_parse_checkpoint(event, keys))
    check.finding = check.finding or _check_start(check, checkpoints) or _find_truncation(check, by_seq)
    return check


def checkpoint_payload(chain: str, seq: int, digest: str) -> bytes:
    """Return the signed content of a checkpoint: the last event that was removed."""
    return f"federator audit checkpoint\n{canonical_json([chain, seq, digest])}".encode()


def _find_broken_link(check: ChainCheck, event: SealedEvent) -> Finding | None:
    expected = check.seq + 1
    if event.seq != expected:
        return Finding(expected, f"event {expected} is missing: event {event.seq} follows instead")
    if not _digest_matches(event):
        return Finding(expected, f"event {expected} was altered")
    if event.previous != check.digest:
        # The event's own digest is correct, so it was sealed after another event than the present one.
        if check.seq == check.base.seq:
            return Finding(expected, f"event {expected} does not follow the event before it")
        return Finding(check.seq, f"event {check.seq} is not the event after which event {expected} was sealed")
    return None


def _digest_matches(event: SealedEvent) -> bool:
    try:
        rebuilt = seal_event(event.seq, event.event, event.previous)
    except (ValueError, KeyError, TypeError):
        # Altered so that it is no longer a valid event.
        return False
    return event == rebuilt


def _compare_attestations(
    check: ChainCheck, by_seq: dict[int, list[Attestation]], event: SealedEvent | None = None
) -> Finding | None:
    """Return a finding if an attestation of the event has another digest. Otherwise record in ``check`` what they prove."""
    seq, digest = (event.seq, event.digest) if event is not None else (check.seq, check.digest)
    for attestation in by_seq.get(seq, ()):
        if attestation.digest != digest:
            first = min(check.attested_through + 1, seq)
            return Finding(
                first,
                f"event {seq} differs from the one that was {attestation.by}: it was altered, or an event from {first} on was",
            )
        check.proven[attestation.by] = seq
    return None


def _find_truncation(check: ChainCheck, by_seq: dict[int, list[Attestation]]) -> Finding | None:
    newest = max(by_seq, default=0)
    if newest <= check.seq:
        return None
    return Finding(check.seq + 1, f"event {check.seq + 1} is missing, and all up to {newest}, which was {by_seq[newest][0].by}")


def _check_start(check: ChainCheck, checkpoints: Mapping[int, str]) -> Finding | None:
    last, digest = check.base
    if checkpoints.get(last) == digest:
        return None
    first = max((seq for seq in checkpoints if seq < last), default=0) + 1
    return Finding(first, f"event {first} is missing, and no trusted checkpoint replaces the events before {last + 1}")


def _parse_checkpoint(event: SealedEvent, keys: Mapping[str, Ed25519PublicKey] | None) -> dict[int, str]:
    detail = json.loads(event.event)["detail"]
    try:
        seq, digest = int(detail["seq"]), str(detail["digest"])
        payload = checkpoint_payload(str(detail["chain"]), seq, digest)
        trusted = not keys or is_valid_signature(payload, detail["key"], detail["signature"], keys)
    except (KeyError, TypeError, ValueError):
        return {}
    return {seq: digest} if trusted else {}
