"""Wording of the faults that pydantic finds in input: requests, tool arguments, options and configuration.

None of pydantic's own texts reach users. Values are not shown, because they may be secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

#: number of fields that one text names
_MAX_FIELDS = 10
#: number of faults that are read: a body of a megabyte can have 450,000, and to word them would take seconds on the event loop
_MAX_FAULTS = 1000
# Unions add the name of each member's type to the location of a fault.
_TYPE_PARTS = frozenset({"str", "int", "float", "bool", "bytes", "none", "dict", "list", "tuple", "datetime", "date"})

_INTEGER, _NUMBER, _TEXT, _LIST, _OBJECT = "an integer", "a number", "a text", "a list", "an object with named fields"
_BOOLEAN, _DATE, _TIME = "true or false", "a date such as 2026-11-20", "a time such as 2026-11-20T08:00:00Z"
#: the expected value by the type of a fault; the fields are those of its context
_EXPECTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), _INTEGER), "int_parsing_size": "an integer of fewer digits",
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), _NUMBER),
    "finite_number": "a finite number", "multiple_of": "a multiple of {multiple_of}",
    "greater_than": "greater than {gt}", "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}", "less_than_equal": "at most {le}",
    **dict.fromkeys(("string_type", "string_sub_type", "string_unicode", "bytes_type", "bytes_invalid_encoding"), _TEXT),
    "string_too_short": "a text of at least {min_length} characters", "string_too_long": "a text of at most {max_length} characters",
    "string_pattern_mismatch": "a text that matches {pattern}", "string_not_ascii": "a text of ASCII characters",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"), _LIST),
    "too_short": "a list of at least {min_length} items", "too_long": "a list of at most {max_length} items",
    **dict.fromkeys(("bool_type", "bool_parsing"), _BOOLEAN),
    **dict.fromkeys(("literal_error", "enum"), "{expected}"), "none_required": "null",
    **dict.fromkeys(("union_tag_invalid", "union_tag_not_found"), "one of the documented kinds"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"), _OBJECT),
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"), _DATE),
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_object_invalid", "datetime_from_date_parsing"), _TIME),
    "timezone_aware": "a time with a time zone", "timezone_naive": "a time without a time zone",
    **dict.fromkeys(("url_type", "url_parsing", "url_syntax_violation", "url_scheme"), "a URL"),
    **dict.fromkeys(("uuid_type", "uuid_parsing", "uuid_version"), "a UUID"),
}  # fmt: skip
#: faults that are described by a whole predicate
_PREDICATES = {
    **dict.fromkeys(("missing", "missing_argument", "missing_keyword_only_argument"), "is required"),
    **dict.fromkeys(("extra_forbidden", "unexpected_keyword_argument"), "is unknown"),
    "json_invalid": "is not valid JSON", "json_type": "is not valid JSON", "invalid_key": "has a key that is not a text",
}  # fmt: skip


def describe_faults(faults: Iterable[Mapping[str, Any]], *, skip: int = 0) -> str:
    """Return the faults of ``ValidationError.errors()`` as one line: ``limit: must be at most 100; name: is required``.

    ``skip`` is the number of parts to omit at the start of each location. What is then at no field is about the ``body``.
    """
    texts_by_field: dict[str, list[str]] = {}
    for fault in islice(faults, _MAX_FAULTS):
        parts = [] if fault["type"] == "json_invalid" else fault["loc"][skip:]
        name = ".".join(str(part) for part in parts if part not in _TYPE_PARTS and not re.search(r"[\[(]", str(part)))
        texts_by_field.setdefault(name or "body", []).append(describe_fault(fault))
    lines = [
        f"{name}: {' or '.join(dict.fromkeys(texts)).replace(' or must be ', ' or ')}" for name, texts in texts_by_field.items()
    ]
    more = [f"and {len(lines) - _MAX_FIELDS} more"] if len(lines) > _MAX_FIELDS else []
    return "; ".join([*lines[:_MAX_FIELDS], *more])


def describe_fault(fault: Mapping[str, Any]) -> str:
    """Return what a value must be, without its name: ``must be at most 100``, ``is required``."""
    return _PREDICATES.get(fault["type"]) or _own_text(fault) or f"must be {_describe_expected(fault)}"


def _describe_expected(fault: Mapping[str, Any]) -> str:
    """Return the expected value as a noun phrase: ``at most 100``."""
    template = _EXPECTED.get(fault["type"])
    if template is None:
        return "another value"
    # A limit of a float option is written as people write it: 0, not 0.0.
    limits = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in (fault.get("ctx") or {}).items()
    }
    text = template.format_map(limits)
    return re.sub(r"\b1 (character|item)s", r"1 \1", text)


def _own_text(fault: Mapping[str, Any]) -> str:
    """Return the message of the ValueError that a check raised; empty for any other fault."""
    error = (fault.get("ctx") or {}).get("error")
    return str(error) if fault["type"] in ("value_error", "assertion_error") else ""
