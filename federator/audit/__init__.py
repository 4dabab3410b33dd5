"""The append-only audit log: seal events into a hash chain, publish its heads, and prove it."""

from federator.audit.sealing import seal_and_publish, seal_pending
from federator.audit.verification import AuditProof, verify_log

__all__ = ["AuditProof", "seal_and_publish", "seal_pending", "verify_log"]
