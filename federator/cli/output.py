"""Printing: lines, tables and JSON documents on stdout, safe for any name that a catalog may hold."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# C0 and C1 controls, line separators, and the marks that reorder what follows: a name must not steer the terminal.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_STYLES = {"ok": "green", "valid": "green", "done": "green", "warn": "yellow", "partial": "yellow", "held": "yellow",
           "fail": "red", "failed": "red", "interrupted": "yellow"}  # fmt: skip
# Columns of plain tables are aligned up to this width; a longer cell pushes its own row only.
_ALIGNED = 72
# A wide column that is folded narrower than this reads worse than a row that the terminal wraps.
_FOLDED = 16


def shown(text: object, *, lines: bool = False) -> str:
    """A text as it may be printed: control characters become escapes; ``lines`` lets line breaks through, indented."""
    if lines:
        return "\n  ".join(_safe(line) for line in str(text).splitlines())
    return _safe(str(text))


def _safe(text: str) -> str:
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def prepare_streams() -> None:
    """stdout and stderr take any text: what their encoding lacks is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Hands everything over; a reader that has gone (``| head``) is no error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _discard(stream.fileno())


def _discard(descriptor: int) -> None:
    """The rest of the output goes nowhere, also what Python flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. ``wide`` ones are folded where the terminal is narrow; ``right`` ones hold numbers."""

    title: str
    wide: bool = False
    right: bool = False


class Printer:
    """stdout. Everything that is printed passes through here."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    @cached_property
    def console(self) -> Console:
        """rich's console, which knows about NO_COLOR and terminals; only for terminals."""
        from rich.console import Console

        class Ours(Console):
            def on_broken_pipe(self) -> None:
                _discard(1)

        return Ours(markup=False, emoji=False, highlight=False)

    @property
    def terminal(self) -> bool:
        return sys.stdout.isatty()

    def line(self, text: str = "", style: str | None = None) -> None:
        """One line, wrapped by the terminal only."""
        if self.terminal:
            self.console.print(shown(text), style=style, soft_wrap=True)
        else:
            self._write(shown(text) + "\n")

    def document(self, data: Any) -> None:
        """One JSON document: sorted as given, readable, and the same bytes everywhere."""
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        # A lone surrogate has no UTF-8, and its escape is JSON's own.
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.flush()
            with self._pipe():
                sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
                sys.stdout.buffer.flush()
        else:
            self._write(text)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """Aligned columns with a header; on a terminal folded to its width, elsewhere one row a line."""
        cells = [[shown("" if cell is None else cell) for cell in row] for row in rows]
        if self.terminal and self._fits(columns, cells):
            self._rich_table(columns, cells)
        else:
            self._plain_table(columns, cells)

    def pairs(self, rows: Iterable[tuple[str, object]], indent: str = "") -> None:
        """Names and values, one a line, for one object."""
        found = [(shown(name), shown("" if value is None else value)) for name, value in rows]
        width = min(max((len(name) for name, _ in found), default=0), 32)
        for name, value in found:
            self.line(f"{indent}{name:<{width}}  {value}".rstrip())

    def _fits(self, columns: Sequence[Column], rows: list[list[str]]) -> bool:
        """Whether folding the wide columns is enough; otherwise the terminal wraps whole rows, and nothing is cut off."""
        from rich.cells import cell_len

        needed = 0
        for number, column in enumerate(columns):
            longest = max(cell_len(cell) for cell in (column.title, *(row[number] for row in rows)))
            needed += 2 + (min(longest, _FOLDED) if column.wide else longest)
        return needed <= self.console.width

    def _plain_table(self, columns: Sequence[Column], rows: list[list[str]]) -> None:
        from rich.cells import cell_len

        lines = [[column.title for column in columns], *rows]
        lengths = [[cell_len(line[number]) for line in lines] for number in range(len(columns))]
        widths = [max((n for n in column if n <= _ALIGNED), default=0) for column in lengths]
        for line in lines:
            padded = []
            for cell, width, column in zip(line, widths, columns, strict=True):
                space = " " * max(0, width - cell_len(cell))
                padded.append(space + cell if column.right else cell + space)
            self._write("  ".join(padded).rstrip() + "\n")

    def _rich_table(self, columns: Sequence[Column], rows: list[list[str]]) -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for column in columns:
            justify = "right" if column.right else "left"
            table.add_column(column.title, overflow="fold", no_wrap=not column.wide, justify=justify)  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*map(styled, row))
        self.console.print(table)

    def _write(self, text: str) -> None:
        with self._pipe():
            sys.stdout.write(text)

    @contextlib.contextmanager
    def _pipe(self) -> Any:
        try:
            yield
        except BrokenPipeError:
            _discard(1)


def styled(text: str) -> Text:
    """A cell; words that name a state have a colour as well."""
    from rich.text import Text

    return Text(text, style=_STYLES.get(text, ""))


def at(moment: float | None) -> str:
    """A time of the index as local ISO time with how long ago it was."""
    if moment is None:
        return "never"
    return f"{datetime.fromtimestamp(moment).astimezone().isoformat(' ', 'seconds')} ({ago(moment)})"


def ago(moment: float | None) -> str:
    """How long ago a time was: ``3 min ago``."""
    return "never" if moment is None else f"{lasted(max(0.0, time.time() - moment))} ago"


def lasted(seconds: float) -> str:
    """A length of time in one unit: ``40 ms``, ``0.4 s``, ``12 s``, ``3 min``, ``5 h``, ``2 days``."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    for limit, size, unit in ((60.0, 1.0, "s"), (5400.0, 60.0, "min"), (172_800.0, 3600.0, "h")):
        if seconds < limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if unit == "s" and value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def counted(number: int, noun: str) -> str:
    """``1 table``, ``1,204 tables``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
