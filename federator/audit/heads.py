"""Head: the newest event of the chain at some time. Its signature or publication attests all events before it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from federator.audit.keys import Signer
from federator.model import canonical_json
from federator.store import Index, audit_log
from federator.store.audit_log import StoredHead


@dataclass(frozen=True, slots=True)
class Head:
    """Number and digest of an event of the chain with the id ``chain``, recorded ``at`` seconds since the epoch.

    ``key`` is the id of the key that made ``signature``. Both are None for an unsigned head.
    """

    chain: str
    seq: int
    digest: str
    at: float
    key: str | None = None
    signature: str | None = None

    @property
    def payload(self) -> bytes:
        """The signed content."""
        return f"federator audit head\n{canonical_json([self.chain, self.seq, self.digest, self.at])}".encode()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Parse a head. Raise KeyError or TypeError for data of another form."""
        values = {name: data[name] for name in ("chain", "seq", "digest", "at")}
        if not isinstance(values["seq"], int) or not isinstance(values["digest"], str):
            raise TypeError("a head has a number and a digest")
        return cls(**values, key=data.get("key"), signature=data.get("signature"))


def record_head(index: Index, signer: Signer | None) -> None:
    """Record the chain's newest event as a head, signed if there is a key. A repetition is harmless."""
    with index.write() as connection:
        audit_log.lock_chain(connection)
        seq, digest = audit_log.get_chain_tip(connection)
        newest = audit_log.find_newest_head(connection)
        if seq == 0 or (newest is not None and newest.seq >= seq):
            return
        head = Head(audit_log.get_or_create_chain_id(connection), seq, digest, time.time())
        key, signature = (signer.id, signer.sign(head.payload)) if signer else (None, None)
        audit_log.insert_head(connection, StoredHead(seq, digest, head.at, key, signature))


def list_heads(index: Index) -> list[Head]:
    """Return every recorded head, in order."""
    chain = audit_log.find_chain_id(index)
    return [build_head(chain, stored) for stored in audit_log.list_stored_heads(index)]


def build_head(chain: str, stored: StoredHead) -> Head:
    """Build the head of a chain from its recorded form."""
    return Head(chain, stored.seq, stored.digest, stored.at, stored.key, stored.signature)
