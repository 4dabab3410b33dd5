"""Rotation: the only way to remove sealed events. They are exported first, and a signed checkpoint replaces them."""

from __future__ import annotations

from pathlib import Path

from federator.audit.chain import checkpoint_payload
from federator.audit.export import export, verify_export
from federator.audit.heads import record_head
from federator.audit.keys import Signer
from federator.audit.sealing import seal_batch, seal_pending
from federator.audit.verification import verify_log
from federator.connector import StateError
from federator.model.audit_kinds import AuditKind
from federator.store import Connection, Index, audit_log


def rotate_events(index: Index, target: Path, *, through: int, signer: Signer, actor: str) -> int:
    """Export the oldest events, up to and including ``through``, to a new directory, and remove them. Return their number.

    Raise StateError if the log or the export is not intact, or if the database refuses the removal.
    """
    keys = {signer.id: signer.public}
    seal_pending(index)
    record_head(index, signer)
    finding = verify_log(index, keys=keys).finding
    if finding is not None:
        raise StateError(f"the audit log is not intact, so nothing was removed: {finding.what}", hint="federator audit verify")
    manifest = export(index, target, through=through, signer=signer)
    finding = verify_export(target, keys=keys).finding
    if finding is not None:
        raise StateError(f"the export {target} is not intact, so nothing was removed: {finding.what}")
    with index.write() as connection:
        audit_log.lock_chain(connection)
        if audit_log.find_digest(connection, through) != manifest.through.digest:
            raise StateError(f"event {through} differs from the exported one", hint="federator audit verify")
        _seal_checkpoint(connection, through, manifest.through.digest, signer, actor)
        with audit_log.deletion_allowed(connection):
            removed = audit_log.delete_events_through(connection, through)
    record_head(index, signer)
    return removed


def _seal_checkpoint(connection: Connection, seq: int, digest: str, signer: Signer, actor: str) -> None:
    chain = audit_log.get_or_create_chain_id(connection)
    signature = signer.sign(checkpoint_payload(chain, seq, digest))
    detail = {"chain": chain, "seq": seq, "digest": digest, "key": signer.id, "signature": signature}
    audit_log.append_event(connection, AuditKind.CHECKPOINT, actor=actor, run_id=None, subject="audit", detail=detail)
    while seal_batch(connection):
        pass
