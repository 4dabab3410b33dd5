"""Arrow types from their text, as ``str(pyarrow.DataType)`` writes it: ``fixed_size_list<item: float>[128]``.

The index stores the columns of Lance tables as this text. The text has neither the metadata of nested fields nor the storage type of
extension types. So of the extension types, only Arrow's own ones without parameters can be parsed. A nested field named
``a: int8, b`` has the text of two fields, and is read as two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_SIMPLE = {
    "bool": "bool_", "halffloat": "float16", "float": "float32", "double": "float64", "date32[day]": "date32", "date64[ms]": "date64",
    "month_day_nano_interval": "month_day_nano_interval",
} | {
    name: name
    for name in (
        "null", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string", "large_string", "string_view",
        "binary", "large_binary", "binary_view",
    )
}  # fmt: skip
#: extension types of Arrow itself, which need no parameters
_EXTENSIONS = {"extension<arrow.json>": "json_", "extension<arrow.uuid>": "uuid", "extension<arrow.bool8>": "bool8"}
_TIME = re.compile(r"(time32|time64|duration|timestamp)\[(s|ms|us|ns)(?:, tz=([^\]]+))?\]")
_DECIMAL = re.compile(r"(decimal(?:32|64|128|256))\((\d+), (-?\d+)\)")
_BYTES = re.compile(r"fixed_size_binary\[(\d+)\]")
_DICTIONARY = re.compile(r", indices=(u?int\d+), ordered=([01])>")
_LISTS = {"list": "list_", "large_list": "large_list", "list_view": "list_view", "large_list_view": "large_list_view"}
_WORD = re.compile(r"[a-z0-9_]+")
_NOT_NULL = " not null"
# Deeper types are refused before they exhaust the stack of Python.
_MAX_DEPTH = 64


def parse_arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type with this text. Raise ValueError for any other text."""
    parser = _Parser(text)
    kind = parser.parse_type(0)
    # The comparison of the texts refuses what the parser reads too generously.
    if parser.at != len(text) or str(kind) != text:
        raise ValueError(f"not the text of an Arrow type: {text[:200]!r}")
    return kind


class _Parser:
    """A recursive-descent parser. ``_match`` and ``_take`` read a pattern or a text if it comes next; ``_require`` and ``_expect``
    raise ValueError if it does not."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def parse_type(self, depth: int) -> pa.DataType:
        if depth > _MAX_DEPTH:
            raise ValueError(f"an Arrow type with more than {_MAX_DEPTH} levels")
        return self._parse_flat() or self._parse_nested(depth + 1)

    def _parse_flat(self) -> pa.DataType | None:
        import pyarrow as pa

        if match := self._match(_TIME):
            kind, unit, zone = match.groups()
            return pa.timestamp(unit, zone) if kind == "timestamp" else getattr(pa, kind)(unit)
        if match := self._match(_DECIMAL):
            return getattr(pa, match[1])(int(match[2]), int(match[3]))
        if match := self._match(_BYTES):
            return pa.binary(int(match[1]))
        for text, name in _EXTENSIONS.items():
            if self._take(text):
                return getattr(pa, name)()
        # The longest name that comes next, unless it is only the beginning of another one: ``string_view``, ``list<...>``.
        names = [name for name in _SIMPLE if self._text.startswith(name, self.at)]
        word = max(names, key=len, default=None)
        end = self.at + len(word or "")
        if word is None or self._text[end : end + 1] in ("<", "[", "_"):
            return None
        self.at = end
        return getattr(pa, _SIMPLE[word])()

    def _parse_nested(self, depth: int) -> pa.DataType:
        import pyarrow as pa

        word = self._match(_WORD)
        name = word[0] if word else ""
        self._expect("<")
        if name == "struct":
            return pa.struct(self._fields(depth))
        if name == "map":
            key = self.parse_type(depth)
            self._expect(", ")
            kind = pa.map_(key, self.parse_type(depth))
            self._expect(">")
            return kind
        if name == "dictionary":
            self._expect("values=")
            values = self.parse_type(depth)
            match = self._require(_DICTIONARY)
            return pa.dictionary(getattr(pa, match[1])(), values, match[2] == "1")
        if name in _LISTS:
            build: Callable[[pa.Field], pa.DataType] = getattr(pa, _LISTS[name])
            (field,) = self._fields(depth)
            return build(field)
        if name == "fixed_size_list":
            (field,) = self._fields(depth)
            return pa.list_(field, int(self._require(re.compile(r"\[(\d+)\]"))[1]))
        raise ValueError(f"not the text of an Arrow type: {self._text[:200]!r}")

    def _fields(self, depth: int) -> list[pa.Field]:
        """Parse fields up to and including the closing bracket."""
        import pyarrow as pa

        fields: list[pa.Field] = []
        while not self._take(">"):
            if fields:
                self._expect(", ")
            end = self._text.find(": ", self.at)
            if end < 0:
                raise ValueError(f"not the text of an Arrow type: {self._text[:200]!r}")
            name, self.at = self._text[self.at : end], end + len(": ")
            kind = self.parse_type(depth)
            fields.append(pa.field(name, kind, nullable=not self._take(_NOT_NULL)))
        return fields

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _require(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = self._match(pattern)
        if match is None:
            raise ValueError(f"not the text of an Arrow type: {self._text[:200]!r}")
        return match

    def _take(self, text: str) -> bool:
        matches = self._text.startswith(text, self.at)
        self.at += len(text) if matches else 0
        return matches

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise ValueError(f"not the text of an Arrow type: {self._text[:200]!r}")
