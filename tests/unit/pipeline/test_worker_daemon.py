"""What the process of Spark's Python workers does with the garbage collector."""

from __future__ import annotations

import gc
import sys
import types

import pytest

from federator.pipeline.worker_daemon import freezing_after_imports


def test_objects_are_frozen_after_a_full_collection_that_follows_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(sys.modules)))
    freeze = freezing_after_imports()
    for phase, generation in (("start", 2), ("stop", 1), ("stop", 2), ("stop", 2)):
        freeze(phase, {"generation": generation})
    assert len(frozen) == 1
    monkeypatch.setitem(sys.modules, "imported_by_a_task", types.ModuleType("imported_by_a_task"))
    freeze("stop", {"generation": 2})
    freeze("stop", {"generation": 2})
    assert len(frozen) == 2
