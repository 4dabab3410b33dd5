"""How notebooks and terminals show responses: HTML tables (every value escaped) and Rich tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from rich.table import Table

ModelT = TypeVar("ModelT", bound=BaseModel)
_MAX_CELL = 120


class Listing(list[ModelT]):
    """A list of models that a notebook and Rich show as a table. Its columns are the simple fields of the models."""

    def _repr_html_(self) -> str:
        names = _columns(self)
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(_cell(getattr(model, name)) for name in names)}</tr>" for model in self)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __rich__(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        names = _columns(self)
        table = Table(*names)
        for model in self:
            table.add_row(*(Text(_text(getattr(model, name))) for name in names))
        return table


def model_as_html(model: BaseModel) -> str:
    """Return a table with one row for each field of a model."""
    rows = "".join(f"<tr><th>{escape(name)}</th>{_cell(value)}</tr>" for name, value in model)
    return f"<table><caption>{escape(type(model).__name__)}</caption><tbody>{rows}</tbody></table>"


def _columns(models: Sequence[BaseModel]) -> list[str]:
    if not models:
        return []
    values = [dict(model) for model in models]
    simple = (str, int, float, bool, datetime, type(None))
    return [name for name in values[0] if all(isinstance(value[name], simple) for value in values)]


def _cell(value: Any) -> str:
    text = _text(value)
    shown = text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"
    return f'<td title="{escape(text)}">{escape(shown)}</td>' if shown != text else f"<td>{escape(text)}</td>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, BaseModel):
        return value.model_dump_json(by_alias=True)
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, default=lambda item: item.model_dump(mode="json", by_alias=True), ensure_ascii=False)
    return str(value)
