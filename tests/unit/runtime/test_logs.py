"""Logging: events and their fields, and fields that are never logged."""

from __future__ import annotations

import io
import logging
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


def test_bound_values_stand_in_every_line(restored: None) -> None:
    out = io.StringIO()
    logs.configure(json=True, stream=out)
    with logs.bound(run="r1"):
        logs.get_logger("federator.test").info("step", source="lake")
    assert '"run": "r1"' in out.getvalue()
    assert '"source": "lake"' in out.getvalue()
