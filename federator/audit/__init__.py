"""The append-only record of what was done: sealing events into a hash chain, and checking it."""

from federator.audit.seal import first_broken, seal

__all__ = ["first_broken", "seal"]
