"""Starting Spark before the first run needs it: the JVM, and a Python worker with the pipeline imported."""

from __future__ import annotations

from typing import Any

from federator.settings import Settings


def warm(settings: Settings) -> Any:
    """Starts this process's session and runs one tiny Python job on it. Returns the session; raises FederatorError."""
    from federator.pipeline import session

    spark = session.session(settings)
    session.warm(spark)
    return spark


def cool() -> None:
    """Ends the session and its JVM; called in the thread that warmed it."""
    from federator.pipeline import session

    session.stop()
