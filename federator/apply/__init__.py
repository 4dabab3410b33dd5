"""Carrying out plans on the driver: the write-ahead journal, the executor, and what to do after a crash."""

from federator.apply.executor import Executor
from federator.apply.outcome import Outcome, State

__all__ = ["Executor", "Outcome", "State"]
