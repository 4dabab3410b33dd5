"""Serve a client of another project by lines of JSON. Imported by scripts that run in the client's environment. Standard library only.

The first line has ``impl`` and ``properties``; each further line has ``call`` and ``request``.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

#: the name of a call, and its request; returns the response as JSON data
Call = Callable[[str, Mapping[str, Any]], Any]


def serve(open_client: Callable[[str, dict[str, str]], Call]) -> None:
    """Answer each line until the input ends. ``open_client`` gets ``impl`` and ``properties``."""
    start = json.loads(sys.stdin.readline())
    call = open_client(start["impl"], start["properties"])
    for line in sys.stdin:
        order = json.loads(line)
        try:
            outcome = {"response": call(order["call"], order["request"])}
        except Exception as error:  # noqa: BLE001 - every failure of the client is an outcome
            outcome = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(outcome), flush=True)
