"""The append-only record of what was done: sealing events into a hash chain, publishing its heads, and proving it."""

from federator.audit.proof import Proof, prove
from federator.audit.publish import seal_and_publish
from federator.audit.seal import seal

__all__ = ["Proof", "prove", "seal", "seal_and_publish"]
