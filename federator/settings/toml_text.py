"""Write a section of the configuration as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def format_section(path: tuple[str, ...], values: Mapping[str, Any]) -> str:
    """Return ``[path]`` with its keys. Values are texts, numbers, booleans, lists and tables of these; None is left out."""
    lines = [f"{_format_key(key)} = {_format_value(value)}" for key, value in values.items() if value is not None]
    return "\n".join([f"[{'.'.join(map(_format_key, path))}]", *lines, ""])


def _format_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _format_text(key)


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return _format_text(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_format_key(key)} = {_format_value(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


def _format_text(text: str) -> str:
    # A JSON string is a basic string of TOML, except for DEL, which TOML does not allow unescaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
