"""Spark's data types as trees, and their text as Hive, Glue and Unity write it: ``array<struct<a:int,b:string>>``.

A tree is what Spark's JSON has: a text for a simple type (``"long"``, ``"decimal(10,2)"``), a dictionary for the others. Texts
are the lower-case ones of Spark's ``simpleString``. Needs nothing but the standard library.
"""

from __future__ import annotations

import re
from typing import Any

Tree = str | dict[str, Any]

_JSON_OF_TEXT = {
    "tinyint": "byte", "byte": "byte", "smallint": "short", "short": "short", "int": "integer", "integer": "integer",
    "bigint": "long", "long": "long", "real": "float", "dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp",
    "null": "void",
}  # fmt: skip
_TEXT_OF_JSON = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_SIMPLE = frozenset(
    {"boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz", "void"}
)  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(-?\d{1,2})\)")
_TOKEN = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)*)`|'(?P<text>(?:[^'\\]|\\.|'')*)'|(?P<word>[^\s`'<>(),:]+)|(?P<mark>[<>(),:]))", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse(text: str) -> Tree:
    """The tree of a type's text, in any case. Raises ValueError for what is no type of Spark's."""
    reader = _Reader(text)
    tree = reader.type()
    reader.end()
    return tree


def text_of(tree: Tree) -> str:
    """The text of a tree."""
    if isinstance(tree, str):
        return _TEXT_OF_JSON.get(tree, tree)
    if tree["type"] == "array":
        return f"array<{text_of(tree['elementType'])}>"
    if tree["type"] == "map":
        return f"map<{text_of(tree['keyType'])},{text_of(tree['valueType'])}>"
    if tree["type"] == "struct":
        fields = [f"{_quoted(each['name'])}:{text_of(each['type'])}" for each in tree["fields"]]
        return f"struct<{','.join(fields)}>"
    raise ValueError(f"no type of Spark's: {tree['type']!r}")


def decimal_of(tree: Tree) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None for every other type."""
    match = _DECIMAL.fullmatch(tree) if isinstance(tree, str) else None
    return (int(match[1]), int(match[2])) if match else None


def field(name: str, tree: Tree, *, nullable: bool = True, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """A column, or a field of a struct, as Spark's JSON has it."""
    return {"name": name, "type": tree, "nullable": nullable, "metadata": metadata or {}}


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class _Reader:
    """A recursive-descent parser over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise self._wrong()
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._at = 0

    def type(self) -> Tree:
        word = self._word()
        if word == "array":
            return {"type": "array", "elementType": self._inside(1)[0], "containsNull": True}
        if word == "map":
            key, value = self._inside(2)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        if word == "struct":
            return {"type": "struct", "fields": self._fields()}
        if word == "interval":
            return " ".join(["interval", *self._interval()])
        name = _JSON_OF_TEXT.get(word, word)
        if name == "decimal":
            numbers = [*self._numbers(), "10", "0"] if self._peek("mark", "(") else ["10", "0"]
            precision, scale = (numbers[0], "0") if len(numbers) == 3 else numbers[:2]
            return f"decimal({precision},{scale})"
        if name in ("char", "varchar"):
            return f"{name}({self._numbers()[0]})"
        if name in _SIMPLE:
            return name
        raise self._wrong()

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._wrong()

    def _inside(self, count: int) -> list[Tree]:
        self._expect("<")
        found = [self.type()]
        for _ in range(count - 1):
            self._expect(",")
            found.append(self.type())
        self._expect(">")
        return found

    def _fields(self) -> list[dict[str, Any]]:
        self._expect("<")
        fields: list[dict[str, Any]] = []
        if self._take("mark", ">"):
            return fields
        while True:
            kind, name = self._next()
            if kind not in ("word", "quoted"):
                raise self._wrong()
            self._take("mark", ":")
            tree = self.type()
            nullable = not (self._take("word", "not") and self._take("word", "null"))
            comment = self._next()[1].replace("''", "'") if self._take("word", "comment") else None
            metadata = {"comment": comment} if comment is not None else {}
            fields.append(
                field(name.replace("``", "`") if kind == "quoted" else name, tree, nullable=nullable, metadata=metadata)
            )
            if self._take("mark", ">"):
                return fields
            self._expect(",")

    def _interval(self) -> list[str]:
        words: list[str] = []
        while self._at < len(self._tokens) and self._tokens[self._at][0] == "word":
            words.append(self._word())
        units = [word for word in words if word != "to"]
        spelled = words == units or (len(words) == 3 and words[1] == "to")
        if not 1 <= len(units) <= 2 or not spelled or not set(units) <= _UNITS:
            raise self._wrong()
        return words

    def _numbers(self) -> list[str]:
        self._expect("(")
        numbers = [self._word()]
        while self._take("mark", ","):
            numbers.append(self._word())
        self._expect(")")
        if not all(re.fullmatch(r"-?\d+", number) for number in numbers) or len(numbers) > 2:
            raise self._wrong()
        return numbers

    def _word(self) -> str:
        kind, text = self._next()
        if kind != "word":
            raise self._wrong()
        return text.lower()

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise self._wrong()
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self, kind: str, text: str) -> bool:
        return self._at < len(self._tokens) and (self._tokens[self._at][0], self._tokens[self._at][1].lower()) == (kind, text)

    def _take(self, kind: str, text: str) -> bool:
        taken = self._peek(kind, text)
        self._at += taken
        return taken

    def _expect(self, mark: str) -> None:
        if not self._take("mark", mark):
            raise self._wrong()

    def _wrong(self) -> ValueError:
        return ValueError(f"no type of Spark's: {self._text!r}")


_UNITS = frozenset({"year", "month", "day", "hour", "minute", "second"})
