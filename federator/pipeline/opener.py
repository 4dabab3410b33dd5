"""The process in which verification opens tables, run as ``python -m federator.pipeline.opener``.

A request has ``location`` and ``storage``; the answer is ``look``'s.
"""

from __future__ import annotations

import os

from federator.connector.child import serve
from federator.connector.lean import hide_pandas
from federator.connector.looking import look


def main() -> None:
    hide_pandas()
    os.environ.setdefault("LANCE_LOG", "error")
    serve(lambda request: look(request["location"], request["storage"]))


if __name__ == "__main__":
    main()
