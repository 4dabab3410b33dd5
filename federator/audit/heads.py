"""Head: the newest event of the chain at some time. Who signs or publishes it vouches for every event before."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from federator.audit.keys import Signer
from federator.index import Index, RowMapping, audit_log
from federator.model import canonical_json


@dataclass(frozen=True, slots=True)
class Head:
    """Number and digest of an event of the chain ``chain``. ``key`` and ``signature`` are None where nobody signed."""

    chain: str
    seq: int
    digest: str
    at: float
    key: str | None = None
    signature: str | None = None

    @property
    def payload(self) -> bytes:
        """What is signed."""
        return f"federator audit head\n{canonical_json([self.chain, self.seq, self.digest, self.at])}".encode()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises KeyError and TypeError for data of another form."""
        values = {name: data[name] for name in ("chain", "seq", "digest", "at")}
        if not isinstance(values["seq"], int) or not isinstance(values["digest"], str):
            raise TypeError("a head has a number and a digest")
        return cls(**values, key=data.get("key"), signature=data.get("signature"))


def record_head(index: Index, signer: Signer | None) -> None:
    """Records the chain's newest event as a head, signed where there is a key; harmless twice."""
    with index.write() as connection:
        audit_log.lock_chain(connection)
        seq, digest = audit_log.head(connection)
        known = audit_log.newest_head(connection)
        if seq == 0 or (known is not None and known["seq"] >= seq):
            return
        head = Head(audit_log.chain_id(connection), seq, digest, time.time())
        key, signature = (signer.id, signer.sign(head.payload)) if signer else (None, None)
        audit_log.add_head(connection, {"seq": seq, "digest": digest, "at": head.at, "key": key, "signature": signature})


def recorded(index: Index) -> list[Head]:
    """Every recorded head, in order."""
    chain = audit_log.known_chain(index)
    return [head_of(chain, row) for row in audit_log.heads(index)]


def head_of(chain: str, row: RowMapping) -> Head:
    """A recorded head of a chain from its row."""
    return Head(chain, row["seq"], row["digest"], row["at"], row["key"], row["signature"])
