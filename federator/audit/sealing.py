"""Sealing: add waiting audit events to the hash chain, sign the chain's head and publish it to the anchor."""

from __future__ import annotations

import json

from federator.audit.anchors import Anchor, build_anchor
from federator.audit.heads import build_head, record_head
from federator.audit.keys import Signer, load_signer
from federator.model import digest_of
from federator.settings import Settings
from federator.store import Connection, Index, audit_log
from federator.store.audit_log import SealedEvent


def seal_and_publish(index: Index, settings: Settings) -> None:
    """Seal pending events, sign the head and publish it. This also attests all events that could not be published before.

    Raise ConfigError or AnchorUnavailable. Pending events are sealed in any case.
    """
    seal_pending(index)
    record_head(index, configured_signer(settings))
    anchor = configured_anchor(settings)
    if anchor is not None:
        publish_head(index, anchor)


def publish_head(index: Index, anchor: Anchor) -> None:
    """Publish the newest head, unless it was published before. Raise AnchorUnavailable."""
    with index.read() as connection:
        newest = audit_log.find_newest_head(connection)
    if newest is None or newest.anchored_at is not None:
        return
    anchor.publish(build_head(audit_log.find_chain_id(index), newest))
    with index.write() as connection:
        audit_log.mark_anchored(connection, newest.seq)


def configured_signer(settings: Settings) -> Signer | None:
    """Return the configured signer. Raise ConfigError."""
    key = settings.audit.key
    return load_signer(key, where=f"{settings.path}: [audit] key") if key is not None else None


def configured_anchor(settings: Settings) -> Anchor | None:
    """Return the configured anchor. Raise ConfigError."""
    return build_anchor(settings.audit, where=f"{settings.path}: [audit]")


_BATCH_EVENTS = 1000


def seal_pending(index: Index) -> int:
    """Move every pending event into the chain. Return their number.

    The transaction's own lock allows one sealer at a time. A lease would outlive a dead sealer and delay the end of every run.
    """
    sealed = 0
    while True:
        with index.write() as connection:
            audit_log.lock_chain(connection)
            batch = seal_batch(connection)
        if not batch:
            return sealed
        sealed += batch


def seal_batch(connection: Connection) -> int:
    """Move the oldest pending events into the chain, in the caller's transaction, which must have locked the chain. Return their
    number."""
    pending = audit_log.list_unsealed(connection, _BATCH_EVENTS)
    seq, previous = audit_log.get_chain_tip(connection)
    sealed: list[SealedEvent] = []
    for _, text in pending:
        seq += 1
        event = seal_event(seq, text, previous)
        previous = event.digest
        sealed.append(event)
    if sealed:
        audit_log.insert_sealed(connection, sealed, [number for number, _ in pending])
    return len(sealed)


def seal_event(seq: int, text: str, previous: str) -> SealedEvent:
    """Build an event of the chain from its text. The digest covers its number, its text and the previous digest.

    Raise ValueError, KeyError or TypeError if the text is not an event.
    """
    event = json.loads(text)
    fields = {name: event[name] for name in ("at", "kind", "actor", "run_id", "subject")}
    return SealedEvent(**fields, seq=seq, event=text, previous=previous, digest=digest_of([seq, previous, text]))
