"""Gives every Python process below the clock of libfaketime, and no other program: under it a JVM hangs, and ``time.sleep``, which
sleeps until a moment of the monotonic clock, fails with EINVAL in libfaketime 0.9.10."""

import os
import select
import sys
import time
from pathlib import Path

_LIBRARY = os.environ["ADVERSARY_FAKETIME"]
if "libfaketime" not in Path("/proc/self/maps").read_text(encoding="utf-8"):
    os.execve(sys.executable, sys.orig_argv, {**os.environ, "LD_PRELOAD": _LIBRARY})
os.environ.pop("LD_PRELOAD", None)


def _sleep(seconds: float) -> None:
    select.select((), (), (), seconds)


time.sleep = _sleep
