"""Log lines of commands that show people what they do by other means."""

from __future__ import annotations

import logging
import os


def configure_terminal_logs(level: str) -> None:
    """Show log lines of ``level`` or above on stderr. FEDERATOR_LOG_LEVEL overrides it.

    A repeated call is shown only at level DEBUG: what a person needs is the error of the last attempt.
    """
    from federator import logs

    logs.configure(json=False, level=os.environ.get(logs.LEVEL, level))
    logging.getLogger("stamina").setLevel(logging.NOTSET if logging.root.level <= logging.DEBUG else logging.ERROR)
