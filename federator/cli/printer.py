"""Output of lines, tables and JSON documents on stdout. It is safe for any name in a catalog."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from federator.cli.documents import Output, flatten_tree, format_document
from federator.cli.terminal import (
    MIN_CUT_WIDTH,
    Column,
    cut_cells,
    cut_middle,
    find_pager,
    fits,
    share_width,
    show_in_pager,
    stack_rows,
    wrap_line,
)
from federator.runtime.redaction import mask_readable
from federator.runtime.text import escape_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STYLES = {"ok": "green", "valid": "green", "done": "green", "warn": "yellow", "partial": "yellow", "held": "yellow",
           "fail": "red", "failed": "red", "interrupted": "yellow"}  # fmt: skip
# Maximum width of an aligned column in a plain table; a longer cell shifts only its own row.
_MAX_ALIGNED_WIDTH = 72

# Children of a node of a tree on a terminal.
_TREE_LIMIT = 100


def escape_text(text: object, *, lines: bool = False) -> str:
    """Replace control characters by escapes, and mask secrets. ``lines`` keeps line breaks, followed by an indent."""
    if lines:
        return "\n  ".join(escape_controls(line) for line in mask_readable(str(text)).splitlines())
    return escape_controls(mask_readable(str(text)))


def print_to_stderr(text: str) -> None:
    """Print prepared lines on stderr. On a terminal, long lines are wrapped between words."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(wrap_line(line, width) for line in text.split("\n"))
    sys.stderr.write(text + "\n")


def prepare_streams() -> None:
    """Make stdout and stderr accept any text: characters that their encoding lacks are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Flush stdout and stderr. A closed pipe (``| head``) is not an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _redirect_to_null(stream.fileno())


def _redirect_to_null(descriptor: int) -> None:
    """Discard the rest of the output, including what Python flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class Printer:
    """Prints all data on stdout."""

    def __init__(self, output: Output = Output.TABLE, *, paged: bool = False, quiet: bool = False) -> None:
        """``paged`` keeps the text for ``close``, which shows it in a pager if it is longer than the terminal. ``quiet``: no notes."""
        self.output, self._quiet = output, quiet
        pager = find_pager() if paged and self.is_terminal and sys.stdin.isatty() and output is Output.TABLE else None
        self._pager, self._kept = pager, io.StringIO() if pager else None
        self._notes: list[str] = []

    @cached_property
    def console(self) -> Console:
        """The rich console, which handles NO_COLOR and terminals. Used for terminals only."""
        from rich.console import Console

        class PipeSafeConsole(Console):
            def on_broken_pipe(self) -> None:
                _redirect_to_null(1)

        width = shutil.get_terminal_size().columns
        file = {"file": self._kept, "force_terminal": True, "width": width} if self._kept else {}
        return PipeSafeConsole(markup=False, emoji=False, highlight=False, **file)  # type: ignore[arg-type]

    def close(self) -> None:
        """Show the text that was kept for the pager."""
        text, pager = self._kept.getvalue() if self._kept else "", self._pager
        self._pager = self._kept = None
        if pager and text.count("\n") >= shutil.get_terminal_size().lines:
            flush()
            show_in_pager(text, pager)
        else:
            self._write(text)
        while self._notes:
            self.note(self._notes.pop(0))

    def note(self, text: str) -> None:
        """Print a note on stderr, after the lines before it: also where both streams go to one file, or those lines to the pager."""
        if self._quiet:
            return
        if self._kept is not None:
            self._notes.append(text)
        else:
            flush()
            print_to_stderr(text)

    @property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty()

    def line(self, text: str = "", style: str | None = None, hang: int | None = None) -> None:
        """Print one line. On a terminal, a long line is wrapped between words, with the other lines indented by ``hang``."""
        if self.is_terminal:
            self.console.print(wrap_line(escape_text(text), self.console.width, hang), style=style, soft_wrap=True)
        else:
            self._write(escape_text(text) + "\n")

    def cut_line(self, begin: str, middle: str, end: str, style: str | None = None) -> None:
        """Print a line of three parts. On a terminal that is too narrow for it, ``middle`` loses its own middle."""
        begin, middle, end = (escape_text(part) for part in (begin, middle, end))
        if self.is_terminal and middle:
            room = self.console.width - len(begin) - len(end) - (4 if end else 2)
            middle = cut_middle(middle, max(room, MIN_CUT_WIDTH))
        self.line("  ".join(part for part in (begin, middle, end) if part), style)

    @property
    def tree_limit(self) -> int | None:
        """Children to show of each node of a tree: None, if a program reads the output."""
        return _TREE_LIMIT if self.is_terminal else None

    def text(self, text: str) -> None:
        """Print prepared text of several lines, unwrapped and with escaped control characters."""
        for line in text.splitlines():
            self._write(escape_text(line) + "\n")

    def document(self, data: Any, *, rows: str | None = None, columns: type | Sequence[str] = ()) -> None:
        """Print a document as JSON, JSON lines or CSV, in the given order, with the same bytes in every environment.

        ``rows`` is the key of its list, if it is one. ``columns`` are the keys of a row, or the dataclass that has
        them: the header of an empty CSV. Secrets of URLs and known secrets are masked.
        """
        keys = [field.name for field in fields(columns)] if isinstance(columns, type) else columns
        text = mask_readable(format_document(data, self.output, rows, keys))
        if rows and self.output is not Output.JSON and data.get("more"):
            self.note("note: there are more; --limit N shows them")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.flush()
            with self._pipe():
                sys.stdout.buffer.write(text.encode())
                sys.stdout.buffer.flush()
        else:
            self._write(text)

    def tree_document(self, id: str, children: Iterable[Mapping[str, Any]], columns: type | Sequence[str]) -> None:
        """Print a tree: nested by ``children`` in JSON; in JSON lines and CSV one entry a line, each before what is below it."""
        entries = list(children if self.output is Output.JSON else flatten_tree(children))
        self.document({"id": id, "children": entries}, rows="children", columns=columns)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
        """Print aligned columns with a header. On a terminal, columns are folded, cut or stacked; otherwise each row is one line."""
        cells = [[escape_text("" if cell is None else cell) for cell in row] for row in rows]
        if not self.is_terminal:
            self._plain_table(columns, cells)
            return
        cut = cut_cells(columns, cells, self.console.width)
        if fits(columns, cut, self.console.width):
            self._rich_table(columns, cut)
        else:
            self._stacked_table(columns, cells)

    def pairs(self, rows: Iterable[tuple[str, object]], indent: str = "") -> None:
        """Print the names and values of one object, one pair per line."""
        escaped = [(escape_text(name), escape_text("" if value is None else value)) for name, value in rows]
        width = min(max((len(name) for name, _ in escaped), default=0), 32)
        for name, value in escaped:
            self.line(f"{indent}{name:<{width}}  {value}".rstrip(), hang=len(indent) + width + 2)

    def titled_lines(self, title: str, lines: Sequence[str]) -> None:
        """Print a title and its indented lines. Without lines, print nothing."""
        if lines:
            self.line(title, style="bold")
            for line in lines:
                self.line(f"  {line}")

    def _plain_table(self, columns: Sequence[Column], rows: list[list[str]]) -> None:
        from rich.cells import cell_len

        lines = [[column.title for column in columns], *rows]
        lengths = [[cell_len(line[number]) for line in lines] for number in range(len(columns))]
        widths = [max((n for n in column if n <= _MAX_ALIGNED_WIDTH), default=0) for column in lengths]
        for line in lines:
            padded = []
            for cell, width, column in zip(line, widths, columns, strict=True):
                space = " " * max(0, width - cell_len(cell))
                padded.append(space + cell if column.right else cell + space)
            self._write("  ".join(padded).rstrip() + "\n")

    def _stacked_table(self, columns: Sequence[Column], rows: list[list[str]]) -> None:
        from rich.text import Text

        header, *lines = stack_rows(columns, rows, self.console.width)
        self.console.print(Text(header, style="bold"), soft_wrap=True)
        for line in lines:
            self.console.print(Text.assemble(*map(style_state, re.split("(  +)", line))), soft_wrap=True)

    def _rich_table(self, columns: Sequence[Column], rows: list[list[str]]) -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for column, width in zip(columns, share_width(columns, rows, self.console.width), strict=True):
            justify = "right" if column.right else "left"
            table.add_column(column.title, overflow="fold", width=width, justify=justify)  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*map(style_state, row))
        self.console.print(table)

    def _write(self, text: str) -> None:
        if self._kept is not None:
            self._kept.write(text)
            return
        with self._pipe():
            sys.stdout.write(text)

    @contextlib.contextmanager
    def _pipe(self) -> Any:
        try:
            yield
        except BrokenPipeError:
            _redirect_to_null(1)


def style_state(text: str) -> Text:
    """Return a cell as rich text. Names of states are coloured."""
    from rich.text import Text

    return Text(text, style=_STYLES.get(text, ""))


def format_time(seconds: float | None) -> str:
    """Format a time of the index as local ISO time, followed by its age."""
    if seconds is None:
        return "never"
    return f"{datetime.fromtimestamp(seconds).astimezone().isoformat(' ', 'seconds')} ({format_age(seconds)})"


def format_column_time(seconds: float) -> str:
    """Format a time of the index for a column: local time without its zone and age, for which a terminal has no room."""
    return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")


def format_age(seconds: float | None) -> str:
    """Format the age of a time: ``3 min ago``."""
    if seconds is None:
        return "never"
    age = time.time() - seconds
    return f"{format_duration(age)} ago" if age >= 1 else "now"


def format_duration(seconds: float) -> str:
    """Format a duration with one unit: ``40 ms``, ``0.4 s``, ``12 s``, ``3 min``, ``5 h``, ``2 days``."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    for limit, size, unit in ((60.0, 1.0, "s"), (5400.0, 60.0, "min"), (172_800.0, 3600.0, "h")):
        if seconds < limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if unit == "s" and value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"
