"""Run a client's steps against each server and write their outcomes. Imported by scripts that run in a client's environment.

Standard library only. The script's argument is a file of JSON: ``servers`` (name, uri, parent) and ``outcomes``, the file to write.
"""

import json
import secrets
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Server:
    """A server of the Lance REST protocol. ``parent`` is the path of a namespace in which namespaces can be created."""

    name: str
    uri: str
    parent: list[str]
    api_key: str

    def new_namespace(self) -> list[str]:
        """Return the path of a namespace that does not exist."""
        return [*self.parent, f"ns_{secrets.token_hex(4)}"]


#: the operations of one client on one server, each with a function that fails unless it works
Steps = Iterator[tuple[str, Callable[[], object]]]


def run(steps: Callable[[Server], Steps]) -> None:
    """Run all steps on all servers. A step that fails does not end the run."""
    config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with Path(config["outcomes"]).open("w", encoding="utf-8") as file:
        for server in config["servers"]:
            for operation, step in steps(Server(**server)):
                outcome = "passed"
                try:
                    step()
                except Exception as error:  # noqa: BLE001 - every failure of the client is an outcome
                    outcome = f"{type(error).__name__}: {_text(error)}"
                    traceback.print_exc()
                print(json.dumps([server["name"], operation, outcome]), file=file, flush=True)


def _text(error: Exception) -> str:
    # py4j's own text adds the number of an object and Java's stack.
    java_error = getattr(error, "java_exception", None)
    return str(java_error.toString() if java_error is not None else error)


def equal(actual: object, expected: object) -> None:
    """Raise AssertionError unless both are equal."""
    assert actual == expected, f"{actual!r} instead of {expected!r}"


def refused(call: Callable[[], object], *words: str) -> None:
    """Raise AssertionError unless the call fails with a message that contains one of the words."""
    try:
        response = call()
    except Exception as error:  # noqa: BLE001 - clients have errors of many types
        message = f"{type(error).__name__}: {error}".lower()
        assert any(word.lower() in message for word in words), f"refused with {message}"
        return
    raise AssertionError(f"not refused: {response!r}")
