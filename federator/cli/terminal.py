"""Text for people at a terminal: lines that are wrapped between words, tables that are too wide for it, and the pager."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

# Minimum width of a folded column, which also has room for its longest word: ids and locations can be copied.
_MIN_FOLDED_WIDTH = 16
# Minimum width of a cell that loses its middle.
MIN_CUT_WIDTH = 24
# A command in a sentence, and what stands for its spaces while a line is wrapped.
_COMMAND = re.compile(r"\bfederator [^;,()]+")
_KEPT_SPACE = "\ue000"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. On a narrow terminal, ``wide`` columns are folded and ``cut`` ones lose their middle.

    ``right`` columns are right-aligned.
    """

    title: str
    wide: bool = False
    right: bool = False
    cut: bool = False


def wrap_line(text: str, width: int, hang: int | None = None) -> str:
    """Break a line between words. Following lines are indented by ``hang``, or by 4 more than the first one.

    Neither a word nor a command is broken, so that names, locations and commands can be copied.
    """
    if len(text) <= width:
        return text
    indent = len(text) - len(text.lstrip())
    following = " " * min(indent + 4 if hang is None else hang, width // 2)
    lines = textwrap.wrap(
        _COMMAND.sub(lambda command: command[0].replace(" ", _KEPT_SPACE), text), width,
        subsequent_indent=following, break_long_words=False, break_on_hyphens=False, replace_whitespace=False,
    )  # fmt: skip
    return "\n".join(lines).replace(_KEPT_SPACE, " ")


def cut_middle(text: str, width: int) -> str:
    """Return a text of at most ``width`` terminal cells: its start, an ellipsis and its end, which names the table of a location."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    begin = set_cell_size(text, (width - 1) // 3).rstrip()
    end = text
    while cell_len(begin) + 1 + cell_len(end) > width:
        end = end[1:]
    return f"{begin}…{end}"


def cut_cells(columns: Sequence[Column], rows: list[list[str]], width: int) -> list[list[str]]:
    """Shorten the cells of the ``cut`` columns to the width that the other columns leave, which they share."""
    number_cut = sum(column.cut for column in columns)
    if not number_cut:
        return rows
    needed = sum(2 + n for column, n in zip(columns, _list_least_widths(columns, rows), strict=True) if not column.cut)
    cut = max(MIN_CUT_WIDTH, (width - needed) // number_cut - 2)
    return [[cut_middle(cell, cut) if column.cut else cell for column, cell in zip(columns, row, strict=True)] for row in rows]


def fits(columns: Sequence[Column], rows: list[list[str]], width: int) -> bool:
    """Return whether a table fits if its wide columns are folded."""
    return sum(2 + n for n in _list_least_widths(columns, rows)) - 2 <= width


def share_width(columns: Sequence[Column], rows: list[list[str]], width: int) -> list[int]:
    """Return the width of each column of a table that ``fits``: wide columns have room for their words, and share the rest."""
    widths, whole = _list_least_widths(columns, rows), _list_widths(columns, rows)
    room = width - sum(2 + n for n in widths) + 2
    narrow = sorted((whole[number] - n, number) for number, n in enumerate(widths) if n < whole[number])
    for rank, (missing, number) in enumerate(narrow):
        more = min(missing, room // (len(narrow) - rank))
        widths[number] += more
        room -= more
    return widths


def stack_rows(columns: Sequence[Column], rows: list[list[str]], width: int) -> list[str]:
    """Return the lines of a table that does not fit: the first columns that do in one line, the others below it with their titles."""
    first_wide = next((number for number, column in enumerate(columns) if column.wide), len(columns))
    rows = [
        [*first, *row[first_wide:]]
        for row, first in zip(rows, cut_cells(columns[:first_wide], [row[:first_wide] for row in rows], width), strict=True)
    ]
    lengths = _list_widths(columns, rows)
    in_line, used = 1, lengths[0]
    while in_line < len(columns) and not columns[in_line].wide and used + 2 + lengths[in_line] <= width:
        used += 2 + lengths[in_line]
        in_line += 1
    # The last column of the line may be a wide one.
    if in_line < len(columns) and used + 2 + lengths[in_line] <= width:
        in_line += 1
    if len(columns) - in_line == 1 and used + 2 + MIN_CUT_WIDTH <= width:
        return _hang_last_column(columns, rows, lengths, width)
    title_width = max((len(column.title) for column in columns[in_line:]), default=0)
    lines = [_align_cells([column.title for column in columns[:in_line]], lengths, columns)]
    for row in rows:
        lines.append(_align_cells(row[:in_line], lengths, columns))
        lines += [
            wrap_line(f"    {column.title:<{title_width}}  {cell}", width, title_width + 6)
            for column, cell in zip(columns[in_line:], row[in_line:], strict=True)
            if cell
        ]
    return lines


def _hang_last_column(columns: Sequence[Column], rows: list[list[str]], lengths: Sequence[int], width: int) -> list[str]:
    """Return the lines of a table whose last column is wrapped beside the others, or below them where a word has no room there."""
    from rich.cells import cell_len

    indent = sum(2 + length for length in lengths[:-1])
    lines = [_align_cells([column.title for column in columns], lengths, columns)]
    for row in rows:
        longest = max(map(cell_len, row[-1].split()), default=0)
        lines.append(wrap_line(_align_cells(row, lengths, columns), width, indent if indent + longest <= width else 4))
    return lines


def _list_widths(columns: Sequence[Column], rows: list[list[str]]) -> list[int]:
    """Return the width of each column, in cells of a terminal."""
    from rich.cells import cell_len

    return [max(map(cell_len, (column.title, *(row[number] for row in rows)))) for number, column in enumerate(columns)]


def _list_least_widths(columns: Sequence[Column], rows: list[list[str]]) -> list[int]:
    """Return the width of each column if ``wide`` columns are folded. Their longest words are not broken."""
    from rich.cells import cell_len

    longest = [
        max((cell_len(word) for row in rows for word in row[number].split()), default=0) for number in range(len(columns))
    ]
    return [
        min(width, max(word, _MIN_FOLDED_WIDTH)) if column.wide else width
        for column, width, word in zip(columns, _list_widths(columns, rows), longest, strict=True)
    ]


def _align_cells(cells: Sequence[str], lengths: Sequence[int], columns: Sequence[Column]) -> str:
    from rich.cells import cell_len

    padded = []
    for cell, length, column in zip(cells, lengths, columns, strict=False):
        space = " " * max(0, length - cell_len(cell))
        padded.append(space + cell if column.right else cell + space)
    return "  ".join(padded).rstrip()


def find_pager() -> str | None:
    """Return the command of the pager: ``PAGER``, else less. None if ``PAGER`` is empty, or less is not installed."""
    pager = os.environ.get("PAGER")
    return ("less" if shutil.which("less") else None) if pager is None else pager or None


def show_in_pager(text: str, pager: str) -> None:
    """Show text in a pager. ``less`` keeps colours, and leaves a short text on the terminal."""
    import pydoc

    os.environ.setdefault("LESS", "FRX")
    pydoc.pipepager(text, pager)
