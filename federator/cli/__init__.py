"""The command line ``federator``, with one module per command group.

Each command is a function of ``Cli`` and its own arguments. Data goes to stdout, progress and errors to stderr. Importing this package
is cheap, because each command imports only the modules that it needs.
"""

from __future__ import annotations

import gc


def main() -> None:
    """The entry point of the script ``federator``."""
    # A command is mostly imports, which create many objects and no garbage. Python's limit of 700 costs a tenth of the CPU time.
    gc.set_threshold(20_000, 20, 20)
    from federator.cli.app import app

    app()


__all__ = ["main"]
