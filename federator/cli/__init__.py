"""The command line ``federator``, with one module per command group.

Each command is a function of ``Cli`` and its own arguments. Data goes to stdout, progress and errors to stderr. Importing this package
is cheap, because each command imports only the modules that it needs.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """The entry point of the script ``federator``."""
    # A command is mostly imports, which create many objects and no garbage. Python's limit of 700 costs a tenth of the CPU time.
    gc.set_threshold(20_000, 20, 20)
    try:
        from federator.cli.app import app

        app()
    except KeyboardInterrupt:
        # During the imports. Later, each command handles it.
        sys.exit(130)
    finally:
        # At its end, Python searches all objects for garbage several times: a fifth of the time of a short command.
        gc.freeze()


__all__ = ["main"]
