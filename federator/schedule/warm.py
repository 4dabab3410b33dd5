"""Starting Spark before the first run needs it: the JVM, and a Python worker with the pipeline imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from federator.settings import Settings


def warm(settings: Settings) -> Any:
    """Starts this process's session and runs one tiny Python job on it. Returns the session; raises FederatorError."""
    from federator.pipeline.session import engine_errors, session

    with engine_errors("start"):
        spark = session(settings)
        spark.range(1).mapInArrow(_same, "id long").collect()
    return spark


def cool() -> None:
    """Ends the session and its JVM; called in the thread that warmed it."""
    from federator.pipeline import session

    session.stop()


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    # What a crawl imports anyway; this Python worker stays for it.
    import federator.pipeline.reading

    assert federator.pipeline.reading
    yield from batches
