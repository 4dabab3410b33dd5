"""A client of another project, used through a process in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.interop.environments import ROOT, python_of


class ClientError(Exception):
    """The client raised an error."""


class ForeignClient:
    """A catalog's client of another project. ``script`` serves it; default: a Lance namespace."""

    def __init__(
        self, environment: str, impl: str, properties: Mapping[str, str], script: str = "namespace_process.py"
    ) -> None:
        command = [str(python_of(environment)), str(Path(__file__).with_name(script))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self._write({"impl": impl, "properties": dict(properties)})

    def call(self, operation: str, **request: Any) -> Any:
        """Return the response as JSON data. Raise ClientError."""
        self._write({"call": operation, "request": request})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ClientError(f"the client ended with {self._process.wait()}")
        outcome = json.loads(line)
        if "error" in outcome:
            raise ClientError(outcome["error"])
        return outcome["response"]

    def _write(self, data: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(data) + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
