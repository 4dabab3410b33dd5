"""Rotation: the only way in which sealed events leave the index, exported before and with a signed checkpoint in their place."""

from __future__ import annotations

from pathlib import Path

from federator.audit.chain import CHECKPOINT, checkpoint_payload
from federator.audit.export import export, prove_export
from federator.audit.heads import record_head
from federator.audit.keys import Signer
from federator.audit.proof import prove
from federator.audit.seal import seal, seal_batch
from federator.connector import StateError
from federator.index import Connection, Index, audit_log


def rotate(index: Index, target: Path, *, through: int, signer: Signer, actor: str) -> int:
    """Exports the oldest events, up to and with ``through``, to a new directory, and removes them; returns how many.

    Raises StateError where the log or the export does not hold, or where the database does not let us remove.
    """
    keys = {signer.id: signer.public}
    seal(index)
    record_head(index, signer)
    finding = prove(index, keys=keys).finding
    if finding is not None:
        raise StateError(f"the audit log is not intact, and is kept as it is: {finding.what}", hint="federator audit verify")
    manifest = export(index, target, through=through, signer=signer)
    finding = prove_export(target, keys=keys).finding
    if finding is not None:
        raise StateError(f"the export {target} does not hold, and nothing was removed: {finding.what}")
    with index.write() as connection:
        audit_log.lock_chain(connection)
        if audit_log.digest_at(connection, through) != manifest.through[1]:
            raise StateError(f"event {through} is not the one that was exported", hint="federator audit verify")
        _seal_checkpoint(connection, through, manifest.through[1], signer, actor)
        with audit_log.unguarded(connection):
            removed = audit_log.remove_through(connection, through)
    record_head(index, signer)
    return removed


def _seal_checkpoint(connection: Connection, seq: int, digest: str, signer: Signer, actor: str) -> None:
    chain = audit_log.chain_id(connection)
    signature = signer.sign(checkpoint_payload(chain, seq, digest))
    detail = {"chain": chain, "seq": seq, "digest": digest, "key": signer.id, "signature": signature}
    audit_log.append(connection, CHECKPOINT, actor=actor, run_id=None, subject="audit", detail=detail)
    while seal_batch(connection):
        pass
