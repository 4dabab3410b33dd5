"""Text for people, in the forms that all packages share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

# C0 and C1 controls, line separators, bidirectional controls and surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_HTML_PAGE = re.compile(r"<(!doctype\s+html|html)\b.*", re.IGNORECASE | re.DOTALL)

#: regular expression of the characters that start a formula in spreadsheets, including full-width forms
FORMULA_START = r"\A[=+\-@\t\r\n＝＋－＠]"


def escape_controls(text: str, *, keep: str = "") -> str:
    """Replace control characters except those in ``keep`` by escapes: a name must not control the terminal that shows it."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else match[0].encode("unicode_escape").decode("ascii"), text)


def escape_json(text: str) -> str:
    """Escape the control characters within JSON text, which its parser reads as the same characters. Line breaks stay."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)


def escape_cell(text: str) -> str:
    """Return a text for a cell of CSV: control characters are escaped except tabs and line breaks, and a text that a spreadsheet would
    evaluate starts with an apostrophe (OWASP, CSV injection)."""
    escaped = escape_controls(text, keep="\t\r\n")
    return f"'{escaped}" if re.match(FORMULA_START, escaped) else escaped


def first_line(error: BaseException, max_length: int | None = None) -> str:
    """Return the first line of an error's text, and the name of its type if it has no text."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:max_length]


def nearest_name(name: str, allowed: Sequence[str]) -> str | None:
    """Return the allowed name that a wrong one probably stands for: one that it is the beginning of, else one with similar letters."""
    longer = next((other for other in allowed if name and other.startswith(name)), None)
    return longer or next(iter(get_close_matches(name, allowed, n=1)), None)


def format_utc(at: float) -> str:
    """Return a time as ISO 8601 in UTC, with seconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun: ``1 table``, ``1,204 tables``. ``plural`` is that of a noun which does not only add an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def replace_html(text: str) -> str:
    """Replace an HTML page at the end of a text, for example a proxy's error page, by the words "an HTML page"."""
    return _HTML_PAGE.sub("an HTML page", text)
