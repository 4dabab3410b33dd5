"""Apply plans on the driver: the write-ahead journal, the executor, and recovery after a crash."""

from federator.apply.application import Application
from federator.apply.executor import CatalogPair, Executor
from federator.apply.journal import Intent, Journal
from federator.apply.outcome import Outcome, OutcomeState

__all__ = ["Application", "CatalogPair", "Executor", "Intent", "Journal", "Outcome", "OutcomeState"]
