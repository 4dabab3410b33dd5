"""One crawl in a process of its own: ``python -m tests.bench.crawl_round CONFIG [HANGING STORE]``.

Prints JSON: the counts of the crawl, when each source ended, and by stage its seconds, the processor seconds of the driver's Python
process, and the peak PSS of the driver, the JVM and the Python workers in MiB. ``most`` are the largest numbers of the driver's
threads and of Python workers.

The source HANGING has its content in the file STORE. Its faults are removed when all other sources have ended.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from federator.pipeline import crawl, diff, publish, session, validation
from federator.service import Federator
from federator.settings import load_settings
from federator.stages.result import ProgressEvent
from federator.testing import MemoryStore
from tests.bench.measure import process_tree, pss

_SAMPLE_SECONDS = 0.2
#: what is timed, by the stage's name. The functions are called one after the other; what is between them is "rest".
_STAGES = {
    "crawl": (crawl, "stage_crawl"), "validate": (validation, "validate_crawl"), "diff": (diff, "diff_crawl"),
    "publish": (publish, "publish_crawl"),
}  # fmt: skip


@dataclass
class _Recorder:
    """Seconds, processor seconds and peaks by stage. The peaks are by kind of process."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    peaks: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    most: dict[str, int] = field(default_factory=lambda: {"threads": 0, "workers": 0})
    stage: str = "rest"
    _stop: threading.Event = field(default_factory=threading.Event)

    def watch(self, module: Any, name: str, stage: str) -> None:
        """Replace a function by one that records its time under ``stage``."""
        function: Callable[..., Any] = getattr(module, name)

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            before, self.stage, began, cpu = self.stage, stage, time.perf_counter(), time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[stage] += time.perf_counter() - began
                self.cpu[stage] += time.process_time() - cpu
                self.stage = before

        setattr(module, name, timed)

    def sample(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            stage, used = self.stage, defaultdict[str, float](float)
            counts = Counter(threads=threading.active_count())
            for pid in process_tree(os.getpid()):
                used[_kind(pid)] += pss(pid) / 1024
                counts[_kind(pid)] += 1
            self.most = {kind: max(most, counts[kind]) for kind, most in self.most.items()}
            for kind, size in {**used, "all": sum(used.values())}.items():
                for subject in (stage, "run"):
                    self.peaks[subject][kind] = max(self.peaks[subject][kind], size)

    def stop(self) -> None:
        self._stop.set()


def _kind(pid: int) -> str:
    if pid == os.getpid():
        return "driver"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return "workers"
    return "JVM" if "SparkSubmit" in command else "workers"


@dataclass
class _Ends:
    """When each source has ended, in seconds since the beginning. ``release`` is called when all but ``hanging`` have."""

    sources: frozenset[str]
    hanging: str | None
    release: Callable[[], None]
    seconds: dict[str, float] = field(default_factory=dict)
    _started_at: float = field(default_factory=time.perf_counter)

    def __call__(self, event: ProgressEvent) -> None:
        if event.stage == "crawl" and event.state is not None:
            self.seconds[event.subject] = time.perf_counter() - self._started_at
            if self.hanging is not None and self.seconds.keys() == self.sources - {self.hanging}:
                self.release()


def main(config: str, hanging: str | None = None, store: str | None = None) -> None:
    recorder = _Recorder()
    for stage, (module, name) in _STAGES.items():
        recorder.watch(module, name, stage)
    thread = threading.Thread(target=recorder.sample, daemon=True)
    thread.start()
    settings = load_settings(Path(config))
    ends = _Ends(frozenset(settings.sources), hanging, lambda: MemoryStore(store).faults(""))
    federator = Federator.open(settings, ends)
    began = time.perf_counter()
    result = federator.crawl()
    total = time.perf_counter() - began
    recorder.stop()
    thread.join()
    assert not result.errors, result.errors
    session.stop_session()
    counts = {name: asdict(source) for name, source in result.sources.items()}
    figures = {
        "total": total,
        "ended": ends.seconds,
        "most": recorder.most,
        "seconds": recorder.seconds,
        "cpu": recorder.cpu,
        "peaks": recorder.peaks,
        "sources": counts,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
