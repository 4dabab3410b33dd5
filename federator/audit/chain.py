"""Walking a chain of sealed events, wherever it is kept: finding the first event that was altered, removed, added or moved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from federator.audit.keys import is_signed
from federator.audit.seal import sealed_row
from federator.model import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: the kind of the event that stands for those which ``rotate`` has removed
CHECKPOINT = "audit_checkpoint"


@dataclass(frozen=True, slots=True)
class Mark:
    """What somebody vouches for: the digest of one event. ``by`` is ``recorded``, ``signed`` or ``anchored``."""

    seq: int
    digest: str
    by: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The first bad event, by its number, and what is wrong."""

    seq: int
    what: str


@dataclass
class Walk:
    """What a walk found. The chain goes from after ``base`` to ``seq``; ``proven`` is the newest number that a mark of each sort
    vouches for, and with it everything before."""

    base: tuple[int, str] = (0, "")
    seq: int = 0
    digest: str = ""
    finding: Finding | None = None
    proven: dict[str, int] = field(default_factory=dict)

    @property
    def vouched(self) -> int:
        return max(self.proven.values(), default=self.base[0])


def walk(
    rows: Iterable[Mapping[str, Any]],
    marks: Iterable[Mark] = (),
    *,
    base: tuple[int, str] | None = None,
    keys: Mapping[str, Ed25519PublicKey] | None = None,
) -> Walk:
    """Walks sealed events in order, up to the first bad one.

    ``base`` is the number and digest of the event before the first, where the caller knows it. Otherwise the chain begins with event
    1, or a checkpoint in it stands for what is missing before; with ``keys`` it must be signed by one of them.
    """
    vouchers: dict[int, list[Mark]] = {}
    for mark in marks:
        vouchers.setdefault(mark.seq, []).append(mark)
    found, checkpoints, started = Walk(), {0: ""}, base is not None
    if base is not None:
        found.base, found.seq, found.digest = base, *base
        checkpoints = dict([base])
    for row in rows:
        if not started:
            started = True
            found.base = (row["seq"] - 1, row["previous"] if row["seq"] > 1 else "")
            found.seq, found.digest = found.base
            found.finding = _weigh(found, vouchers)
        found.finding = found.finding or _misfit(found, row) or _weigh(found, vouchers, row)
        if found.finding is not None:
            break
        found.seq, found.digest = row["seq"], row["digest"]
        if row["kind"] == CHECKPOINT:
            checkpoints.update(_checkpoint(row, keys))
    found.finding = found.finding or _beginning(found, checkpoints) or _cut_off(found, vouchers)
    return found


def checkpoint_payload(chain: str, seq: int, digest: str) -> bytes:
    """What is signed of a checkpoint: the last event that was removed."""
    return f"federator audit checkpoint\n{canonical_json([chain, seq, digest])}".encode()


def _misfit(found: Walk, row: Mapping[str, Any]) -> Finding | None:
    expected = found.seq + 1
    if row["seq"] != expected:
        return Finding(expected, f"event {expected} is missing: event {row['seq']} stands in its place")
    if not _fits(row):
        return Finding(expected, f"event {expected} was altered")
    if row["previous"] != found.digest:
        # Its own digest is right: it was sealed upon another event than the one that is there.
        if found.seq == found.base[0]:
            return Finding(expected, f"event {expected} does not follow from what was before")
        return Finding(found.seq, f"event {found.seq} is not the one that event {expected} was sealed upon")
    return None


def _fits(row: Mapping[str, Any]) -> bool:
    try:
        again = sealed_row(row["seq"], row["event"], row["previous"])
    except (ValueError, KeyError, TypeError):
        # Edited so far that it is no event any more.
        return False
    return all(row[name] == again[name] for name in again)


def _weigh(found: Walk, vouchers: dict[int, list[Mark]], row: Mapping[str, Any] | None = None) -> Finding | None:
    seq, digest = (row["seq"], row["digest"]) if row is not None else (found.seq, found.digest)
    for mark in vouchers.get(seq, ()):
        if mark.digest != digest:
            first = min(found.vouched + 1, seq)
            return Finding(first, f"event {seq} is not the one that was {mark.by}: it was altered, or one from {first} on")
        found.proven[mark.by] = seq
    return None


def _cut_off(found: Walk, vouchers: dict[int, list[Mark]]) -> Finding | None:
    newest = max(vouchers, default=0)
    if newest <= found.seq:
        return None
    return Finding(
        found.seq + 1, f"event {found.seq + 1} is missing, and all up to {newest}, which was {vouchers[newest][0].by}"
    )


def _beginning(found: Walk, checkpoints: Mapping[int, str]) -> Finding | None:
    last, digest = found.base
    if checkpoints.get(last) == digest:
        return None
    first = max((seq for seq in checkpoints if seq < last), default=0) + 1
    return Finding(first, f"event {first} is missing, and no checkpoint to be trusted stands for what was before {last + 1}")


def _checkpoint(row: Mapping[str, Any], keys: Mapping[str, Ed25519PublicKey] | None) -> dict[int, str]:
    detail = json.loads(row["event"])["detail"]
    try:
        seq, digest = int(detail["seq"]), str(detail["digest"])
        payload = checkpoint_payload(str(detail["chain"]), seq, digest)
        trusted = not keys or is_signed(payload, detail["key"], detail["signature"], keys)
    except (KeyError, TypeError, ValueError):
        return {}
    return {seq: digest} if trusted else {}
