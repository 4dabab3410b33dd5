"""Which processes of the pipeline do without pandas (``federator.connector.lean``), and what they load before they are forked.

Only processes that are ours alone do: the workers, planners and openers of our own session, never a session that a user brings.
"""

from __future__ import annotations

import os

from federator.connector.lean import hide_pandas

#: set in the environment of our own session's JVM, which its Python processes inherit
OWN_SESSION = "FEDERATOR_OWN_SESSION"
#: the impls of its sources, which the workers' daemon loads before it is forked
PRELOAD = "FEDERATOR_PRELOAD"


def hide_pandas_in_own_session() -> None:
    """The same, in processes of our own session only."""
    if os.environ.get(OWN_SESSION) == "1":
        hide_pandas()
