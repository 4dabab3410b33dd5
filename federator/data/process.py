"""The process that opens tables for the API, run as ``python -m federator.data.process``.

A request has ``operation``, ``location``, ``storage``, ``arguments``, and ``seconds`` after which this process ends itself, should its
parent be gone; the answer has ``answer``, or ``error`` with ``code``, ``message`` and ``hint``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

from federator.connector import CatalogError
from federator.connector.child import serve
from federator.connector.lean import hide_pandas
from federator.data.limits import DataLimits
from federator.data.place import Place

_GRACE = 5.0


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Runs one operation. Errors that are not of the tree end the process: they are mistakes of ours, and its state is not known."""
    from federator.data.operations import OPERATIONS

    arguments = dict(request["arguments"])
    if limits := arguments.pop("limits", None):
        arguments["limits"] = DataLimits(**limits)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE)
    try:
        found = OPERATIONS[request["operation"]](Place(request["location"], request["storage"]), **arguments)
    except CatalogError as error:
        return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return {"answer": found}


def main() -> None:
    hide_pandas()
    os.environ.setdefault("LANCE_LOG", "error")
    import lance  # noqa: F401 - what takes longest, while nobody waits yet

    serve(answer)


if __name__ == "__main__":
    main()
