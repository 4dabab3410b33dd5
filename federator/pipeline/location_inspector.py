"""The child process in which verification opens tables, run as ``python -m federator.pipeline.location_inspector``.

A request has ``location``, ``storage``, ``allowed_bases`` and ``mounts``. The response has the fields of an
``Inspection``. A request with ``denied``, the reason why the location may not be opened, has no other fields.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from federator.lance.inspection import Inspection, inspect_location
from federator.runtime.arrow_import import import_arrow_without_pandas
from federator.runtime.child_process import serve_requests

# Size of the metadata cache in bytes, for repeated reads of one table; no table is opened twice.
_CACHE_BYTES = 1 << 20


def main() -> None:
    os.environ.setdefault("LANCE_LOG", "error")
    import_arrow_without_pandas()
    import lance

    # One session for all tables: creating its caches and store connections again would cost as much as reading a small table's
    # manifest.
    session = lance.Session(index_cache_size_bytes=0, metadata_cache_size_bytes=_CACHE_BYTES)  # type: ignore[attr-defined]  # missing in pylance's stub

    def inspect(request: Mapping[str, Any]) -> dict[str, Any]:
        if "denied" in request:
            return asdict(Inspection("denied", request["denied"]))
        allowed, mounts = request["allowed_bases"], request["mounts"]
        return asdict(inspect_location(request["location"], request["storage"], session, allowed=allowed, mounts=mounts))

    serve_requests(inspect)


if __name__ == "__main__":
    main()
