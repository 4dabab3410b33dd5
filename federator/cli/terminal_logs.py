"""Log lines of commands whose output already shows people what they do."""

from __future__ import annotations

import logging
import os


def configure_terminal_logs(level: str) -> None:
    """Show log lines of ``level`` or above on stderr. FEDERATOR_LOG_LEVEL overrides it.

    The retries of catalog calls, which the library stamina logs, are shown only at level DEBUG: a person needs the error of the last
    attempt.
    """
    from federator import logs

    logs.configure(json=False, level=os.environ.get(logs.LEVEL, level))
    logging.getLogger("stamina").setLevel(logging.NOTSET if logging.root.level <= logging.DEBUG else logging.ERROR)
