"""The command line: ``federator``. One module per command group; each command is a function of ``Cli`` and its own arguments.

Data goes to stdout, progress and errors to stderr. Importing this package costs nothing; a command imports what it needs.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the script ``federator``."""
    from federator.cli.app import app

    app()


__all__ = ["main"]
