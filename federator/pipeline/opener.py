"""The process in which verification opens tables, run as ``python -m federator.pipeline.opener``.

A request has ``location`` and ``storage``; the answer is ``look``'s.
"""

from __future__ import annotations

import os

from federator.connector.child import serve
from federator.connector.lean import hide_pandas
from federator.connector.looking import look

# What one table is asked more than once; no table is opened twice.
_CACHE = 1 << 20


def main() -> None:
    hide_pandas()
    os.environ.setdefault("LANCE_LOG", "error")
    import lance

    # One for all tables: making its caches and connecting to their store anew would cost as much as reading a small table's manifest.
    session = lance.Session(index_cache_size_bytes=0, metadata_cache_size_bytes=_CACHE)  # type: ignore[attr-defined]  # not in its stub
    serve(lambda request: look(request["location"], request["storage"], session))


if __name__ == "__main__":
    main()
