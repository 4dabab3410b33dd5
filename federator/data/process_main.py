"""The child process that opens tables for the API, run as ``python -m federator.data.process_main``.

A request has ``operation``, ``location``, ``storage``, ``allowed_bases``, ``mounts``, ``permitted``, ``arguments``, and ``seconds``
after which this process ends itself, in case its parent is dead. The response has the operation's result as ``answer``, or ``error``
with ``code``, ``message`` and ``hint``, or ``foreign``: the locations outside the table that must be allowed first.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from federator.connector import CatalogError
from federator.data.limits import DataLimits
from federator.data.table_handle import TableHandle
from federator.lance.foreign_locations import ForeignLocationsFound
from federator.lance.pinned_directory import pin_directory, show_location
from federator.runtime.arrow_import import import_arrow_without_pandas
from federator.runtime.child_process import serve_requests

_GRACE_SECONDS = 5.0


def handle_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run one operation.

    Exceptions that are not catalog errors end the process: they are defects, and leave its state unknown.
    """
    from federator.data.operations import OPERATIONS

    arguments = dict(request["arguments"])
    if limits := arguments.pop("limits", None):
        arguments["limits"] = DataLimits(**limits)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE_SECONDS)
    try:
        with pin_directory(request["location"]) as pinned:
            handle = TableHandle(
                request["location"], request["storage"], tuple(request["allowed_bases"]), mounts=tuple(request["mounts"]),
                permitted=tuple(request["permitted"]), pinned=pinned,
            )  # fmt: skip
            result = OPERATIONS[request["operation"]](handle, **arguments)
    except CatalogError as error:
        return {"error": {"code": error.code, "message": show_location(error.message, request["location"]), "hint": error.hint}}
    except ForeignLocationsFound as error:
        return {"foreign": asdict(error.locations)}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"answer": show_location(result, request["location"]) if isinstance(result, str) else result}


def main() -> None:
    os.environ.setdefault("LANCE_LOG", "error")
    import_arrow_without_pandas()
    import lance  # noqa: F401 - the slowest import, before a request waits for it

    serve_requests(handle_request)


if __name__ == "__main__":
    main()
