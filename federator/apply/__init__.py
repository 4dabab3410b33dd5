"""Carrying out plans on the driver: the write-ahead journal, the executor, and what to do after a crash."""

from federator.apply.application import Application
from federator.apply.executor import Connections, Executor
from federator.apply.outcome import Outcome, State
from federator.apply.port import Intent, Journal

__all__ = ["Application", "Connections", "Executor", "Intent", "Journal", "Outcome", "State"]
