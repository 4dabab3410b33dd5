"""Logging: events and their fields, and fields that are never logged."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator

import pytest
import structlog

from federator import logs


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.parametrize("json", [True, False])
def test_a_traceback_holds_no_local_variables(json: bool, restored: None) -> None:
    out = io.StringIO()
    logs.configure(json=json, stream=out)

    def connects(password: str) -> None:
        raise RuntimeError(f"refused a password of {len(password)} characters")

    try:
        connects("hunter2-" * 3)
    except RuntimeError:
        logs.get_logger("federator.test").exception("run broke")
    written = out.getvalue()
    assert "run broke" in written
    assert "refused a password of 24 characters" in written
    assert "hunter2-hunter2-" not in written


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colors", [True, False])
def test_a_line_on_a_terminal_is_broken_between_words(colors: bool, restored: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "" if colors else "1")
    out = Terminal()
    logs.configure(json=False, stream=out)
    message = "the lease of the source ended before its run, so that nothing more is written to this target"
    logs.get_logger("federator.test").warning(message, source="lake_hive", location=f"s3://lake/{'x' * 90}")
    shown = re.sub("\x1b\\[[0-9;]*m", "", out.getvalue())
    assert ("\x1b[" in out.getvalue()) is colors
    assert " ".join(shown.split()).endswith(f"{message} [federator.test] location=s3://lake/{'x' * 90} source=lake_hive")
    assert [line for line in shown.splitlines() if len(line) > 80 and len(line.split()) > 1] == []


def test_bound_values_stand_in_every_line(restored: None) -> None:
    out = io.StringIO()
    logs.configure(json=True, stream=out)
    with logs.bound(run="r1"):
        logs.get_logger("federator.test").info("step", source="lake")
    assert '"run": "r1"' in out.getvalue()
    assert '"source": "lake"' in out.getvalue()
