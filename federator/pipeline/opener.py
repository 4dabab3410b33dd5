"""A process that opens Lance tables, one line of JSON in, one line out, so that a hanging store can be ended by ending the process.

Run as ``python -m federator.pipeline.opener``. A request has ``location`` and ``storage``; the answer is ``look``'s.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from federator.model import is_location, local_path


def look(location: str, storage: dict[str, str]) -> dict[str, Any]:
    """What is at a location: ``state`` and, if it opens, ``version``, ``rows``, ``fragments``, ``schema``; else ``message``.

    States: valid, declared_only, empty, missing, not_lance, corrupt, denied, unreachable.
    """
    if not is_location(location):
        return answer("not_lance", f"not a location: {location[:200]!r}")
    path = local_path(location)
    if path is not None and (early := _look_locally(Path(path))) is not None:
        return early
    import lance

    try:
        dataset = lance.dataset(path or location, storage_options=storage or None)
        return {
            "state": "valid",
            "message": None,
            "version": dataset.version,
            "rows": dataset.count_rows(),
            "fragments": len(dataset.get_fragments()),
            "schema": _schema(dataset.schema),
        }
    except (ValueError, OSError, RuntimeError) as error:
        return _classify(str(error), local=path is not None)


def _look_locally(path: Path) -> dict[str, Any] | None:
    try:
        names = {entry.name for entry in os.scandir(path)}
    except FileNotFoundError:
        return answer("missing", "no such directory")
    except NotADirectoryError:
        return answer("not_lance", "a file, not a directory")
    except PermissionError:
        return answer("denied", "the directory cannot be read")
    if "_versions" in names:
        return None
    if not names:
        return answer("empty", "an empty directory")
    if ".lance-reserved" in names:
        return answer("declared_only", "declared, and no data written yet")
    return answer("not_lance", "a directory without Lance's _versions")


# pylance raises ValueError and OSError for everything; its texts tell the cases apart only roughly.
_TEXTS = (
    (
        "denied",
        (
            "accessdenied",
            "forbidden",
            "permission denied",
            "unauthorized",
            "403",
            "invalidaccesskeyid",
            "signaturedoesnotmatch",
        ),
    ),
    ("missing", ("was not found", "not found", "nosuchbucket", "no such file", "404")),
    (
        "unreachable",
        ("resolve region", "error sending request", "connection", "timed out", "timeout", "dns", "credential", "retry"),
    ),
    ("not_lance", ("no object store provider", "unknown scheme", "invalid url", "unsupported")),
)


def _classify(text: str, *, local: bool) -> dict[str, Any]:
    lowered = text.lower()
    short = text.splitlines()[0][:500] if text else ""
    for state, words in _TEXTS:
        if any(word in lowered for word in words):
            # A local table that has versions and still misses a file has lost it.
            return answer("corrupt" if local and state == "missing" else state, short)
    return answer("corrupt", short)


def _schema(schema: Any) -> str:
    return json.dumps([{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema])


def answer(state: str, message: str) -> dict[str, Any]:
    return {"state": state, "message": message, "version": None, "rows": None, "fragments": None, "schema": None}


def main() -> None:
    os.environ.setdefault("LANCE_LOG", "error")
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(look(request["location"], request["storage"])), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
