"""Spark data types, and their text form in Hive, Glue and Unity: ``array<struct<a:int,b:string>>``.

A Spark type has the form of Spark's JSON: a text for a simple type (``"long"``, ``"decimal(10,2)"``), else a dictionary. The text form
is Spark's ``simpleString``, in lower case. This module needs only the standard library.
"""

from __future__ import annotations

import re
from typing import Any

SparkType = str | dict[str, Any]

# Names in the text form that differ from the name in Spark's JSON.
_JSON_OF_TEXT = {
    "tinyint": "byte", "byte": "byte", "smallint": "short", "short": "short", "int": "integer", "integer": "integer",
    "bigint": "long", "long": "long", "real": "float", "dec": "decimal", "numeric": "decimal", "timestamp_ltz": "timestamp",
    "null": "void",
}  # fmt: skip
_SIMPLE = frozenset(
    {"boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz", "void"}
)  # fmt: skip
_INTERVAL_UNITS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(-?\d{1,2})\)")
_TOKEN = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)*)`|'(?P<text>(?:[^'\\]|\\.|'')*)'|(?P<word>[^\s`'<>(),:]+)|(?P<mark>[<>(),:]))", re.DOTALL
)


def parse_spark_type(text: str) -> SparkType:
    """Parse the text of a type, in any case. Raise ValueError if it is not a Spark type."""
    parser = _TypeParser(text)
    spark_type = parser.parse_type()
    parser.require_end()
    return spark_type


def decimal_parameters(spark_type: SparkType) -> tuple[int, int] | None:
    """Return precision and scale of a decimal; None for any other type."""
    match = _DECIMAL.fullmatch(spark_type) if isinstance(spark_type, str) else None
    return (int(match[1]), int(match[2])) if match else None


def spark_field(
    name: str, spark_type: SparkType, *, nullable: bool = True, metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a column, or a field of a struct, in the form of Spark's JSON."""
    return {"name": name, "type": spark_type, "nullable": nullable, "metadata": metadata or {}}


class _TypeParser:
    """A recursive-descent parser over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        # Each token is the name of its group in the expression, and its text.
        self._tokens: list[tuple[str, str]] = []
        offset, end = 0, len(text.rstrip())
        while offset < end:
            match = _TOKEN.match(text, offset)
            if match is None or match.lastgroup is None:
                raise self._syntax_error()
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            offset = match.end()
        self._next_token = 0

    def parse_type(self) -> SparkType:
        word = self._next_word()
        if word == "array":
            return {"type": "array", "elementType": self._type_arguments(1)[0], "containsNull": True}
        if word == "map":
            key, value = self._type_arguments(2)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        if word == "struct":
            return {"type": "struct", "fields": self._fields()}
        if word == "interval":
            return " ".join(["interval", *self._interval()])
        name = _JSON_OF_TEXT.get(word, word)
        if name == "decimal":
            precision, scale = self._decimal_parameters()
            return f"decimal({precision},{scale})"
        if name in ("char", "varchar"):
            return f"{name}({self._numbers()[0]})"
        if name in _SIMPLE:
            return name
        raise self._syntax_error()

    def require_end(self) -> None:
        """Raise ValueError if tokens are left."""
        if self._next_token < len(self._tokens):
            raise self._syntax_error()

    def _type_arguments(self, count: int) -> list[SparkType]:
        self._expect("<")
        types = [self.parse_type()]
        for _ in range(count - 1):
            self._expect(",")
            types.append(self.parse_type())
        self._expect(">")
        return types

    def _fields(self) -> list[dict[str, Any]]:
        """Parse ``<name: type [not null] [comment 'text'], ...>``. The colon may be omitted."""
        self._expect("<")
        fields: list[dict[str, Any]] = []
        if self._take("mark", ">"):
            return fields
        while True:
            kind, name = self._next()
            if kind not in ("word", "quoted"):
                raise self._syntax_error()
            self._take("mark", ":")
            field_type = self.parse_type()
            nullable = not (self._take("word", "not") and self._take("word", "null"))
            comment = self._next()[1].replace("''", "'") if self._take("word", "comment") else None
            metadata = {"comment": comment} if comment is not None else {}
            fields.append(
                spark_field(
                    name.replace("``", "`") if kind == "quoted" else name, field_type, nullable=nullable, metadata=metadata
                )
            )
            if self._take("mark", ">"):
                return fields
            self._expect(",")

    def _decimal_parameters(self) -> tuple[str, str]:
        """Parse precision and scale. Both may be omitted, or the scale alone."""
        if not self._peek("mark", "("):
            return "10", "0"
        numbers = self._numbers()
        return numbers[0], numbers[1] if len(numbers) > 1 else "0"

    def _interval(self) -> list[str]:
        """Parse one or two units, with or without ``to`` between them."""
        words: list[str] = []
        while self._next_token < len(self._tokens) and self._tokens[self._next_token][0] == "word":
            words.append(self._next_word())
        units = [word for word in words if word != "to"]
        is_valid = words == units or (len(words) == 3 and words[1] == "to")
        if not 1 <= len(units) <= 2 or not is_valid or not set(units) <= _INTERVAL_UNITS:
            raise self._syntax_error()
        return words

    def _numbers(self) -> list[str]:
        """Parse one or two whole numbers in parentheses."""
        self._expect("(")
        numbers = [self._next_word()]
        while self._take("mark", ","):
            numbers.append(self._next_word())
        self._expect(")")
        if not all(re.fullmatch(r"-?\d+", number) for number in numbers) or len(numbers) > 2:
            raise self._syntax_error()
        return numbers

    def _next_word(self) -> str:
        kind, text = self._next()
        if kind != "word":
            raise self._syntax_error()
        return text.lower()

    def _next(self) -> tuple[str, str]:
        if self._next_token >= len(self._tokens):
            raise self._syntax_error()
        self._next_token += 1
        return self._tokens[self._next_token - 1]

    def _peek(self, kind: str, text: str) -> bool:
        if self._next_token >= len(self._tokens):
            return False
        next_kind, next_text = self._tokens[self._next_token]
        return (next_kind, next_text.lower()) == (kind, text)

    def _take(self, kind: str, text: str) -> bool:
        """Consume the next token if it is this one, in any case. Return whether it was."""
        matches = self._peek(kind, text)
        self._next_token += matches
        return matches

    def _expect(self, mark: str) -> None:
        if not self._take("mark", mark):
            raise self._syntax_error()

    def _syntax_error(self) -> ValueError:
        return ValueError(f"not a Spark type: {self._text!r}")
