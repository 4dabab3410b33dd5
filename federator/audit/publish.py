"""Sealing with all that proves it: chain, signed head, anchor."""

from __future__ import annotations

from federator.audit.anchors import Anchor, anchor
from federator.audit.heads import head_of, record_head
from federator.audit.keys import Signer, signer
from federator.audit.seal import seal
from federator.index import Index, audit_log
from federator.settings import Settings


def seal_and_publish(index: Index, settings: Settings) -> None:
    """Seals what waits, signs the head and publishes it, and with it all that could not be published before.

    Raises ConfigError and AnchorUnavailable; what waited is sealed all the same.
    """
    seal(index)
    record_head(index, signer_of(settings))
    place = anchor_of(settings)
    if place is not None:
        publish_head(index, place)


def publish_head(index: Index, place: Anchor) -> None:
    """Publishes the newest head, unless it is published. Raises AnchorUnavailable."""
    with index.read() as connection:
        row = audit_log.newest_head(connection)
    if row is None or row["anchored_at"] is not None:
        return
    place.publish(head_of(audit_log.known_chain(index), row))
    with index.write() as connection:
        audit_log.mark_anchored(connection, row["seq"])


def signer_of(settings: Settings) -> Signer | None:
    """The configured key. Raises ConfigError."""
    key = settings.audit.key
    return signer(key, where=f"{settings.path}: [audit] key") if key is not None else None


def anchor_of(settings: Settings) -> Anchor | None:
    """The configured anchor. Raises ConfigError."""
    return anchor(settings.audit, where=f"{settings.path}: [audit]")
