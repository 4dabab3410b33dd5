"""Generate the settings reference from the models in ``federator.settings``.

``python -m tests.docs.settings > docs/reference/settings.md``
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from federator.planning import key_types
from federator.settings import Settings, field_types, observability
from federator.settings.observability import ForKinds
from federator.settings.section import section_fields

_HEAD = """\
# The configuration file

Each section of `federator.toml`, with its keys, their defaults and the allowed values. An unknown key, a value of another type and a
secret in clear are errors (`federator doctor` shows them). A secret is a reference: `${VARIABLE}` or `file:PATH`.

A duration is a number of seconds, or a text such as `"500ms"`, `"90s"`, `"10m"`, `"2h"`, `"1d"`. A schedule is a cron line of five
fields, or `"@every 15m"`. A pattern is a glob, or a regular expression after `re:`. A name has up to 64 letters, digits, `-` and `_`.

This page is generated from the code: `python -m tests.docs.settings > docs/reference/settings.md`.
"""
_MORE = {"sources.NAME": "All other keys are properties of the connector: see [connectors.md](connectors.md)."}
_TYPES = {
    field_types.Secret: "reference to a secret",
    key_types.Duration: "duration", field_types.PositiveDuration: "duration above 0", field_types.Schedule: "schedule",
    field_types.Vend: '`"none"`, `"catalog"`, `"sts"`, `"gcs"`, `"azure"` or `"static"`, or a list of the middle four',
    field_types.SessionDuration: "duration, 15m to 12h", field_types.RoleArn: "ARN, or reference", field_types.StsUrl: "URL",
    field_types.MirrorSchedule: "schedule, or `@after crawl`", key_types.Window: "change window", key_types.TimeZone: "time zone",
    key_types.Pattern: "pattern", key_types.PatternTable: "table of: pattern", key_types.Regex: "regular expression",
    key_types.LocationText: "location", field_types.AnchorUrl: "URL: `file`, `s3` or `https`",
    field_types.WebUrl: "https URL, or http on loopback", field_types.Origin: "origin of a web page", field_types.Name: "name",
    observability.EventName: "event, or `*`",
    bool: "true or false", int: "whole number", float: "number", str: "text",
}  # fmt: skip
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "m"), (1.0, "s"))


def text() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(_section(title, model) for title, _, model in sections())])


def sections() -> Iterator[tuple[str, str, type]]:
    """Yield each section of the file in order: title, first name and model."""
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        if (model := _model(hint)) is not None:
            title = f"{name}.NAME" if get_origin(hint) is dict else name
            yield title, name, model
            yield from _nested(title, name, model)


def _nested(title: str, name: str, model: type) -> Iterator[tuple[str, str, type]]:
    for key, part in get_type_hints(model, include_extras=True).items():
        if (inner := _model(part)) is not None:
            yield f"{title}.{key}", name, inner
            yield from _nested(f"{title}.{key}", name, inner)


def _section(title: str, model: type) -> str:
    meaning = inspect.cleandoc(model.__doc__ or "").replace("``", "`")
    hints, texts = get_type_hints(model, include_extras=True), _descriptions(model)
    rows = [
        (f"`{field.alias or name}`", _default(field, hints[name]), _allowed(field, hints[name]), texts.get(name, ""))
        for name, field in section_fields(model).items()
    ]
    columns = 4 if texts else 3
    table = [("key", "default", "value", "meaning"), ("---",) * 4, *rows]
    more = f"\n{_MORE[title]}\n" if title in _MORE else ""
    lines = [f"| {' | '.join(row[:columns])} |" for row in table]
    return "\n".join([f"## [{title}]\n\n{meaning}\n{more}", *lines, ""])


def _descriptions(model: type) -> dict[str, str]:
    """The texts below the fields of a model, by field. Python does not keep them, so they are read from the source."""
    found: dict[str, str] = {}
    for owner in (base for base in reversed(model.__mro__) if base.__module__.startswith("federator.")):
        (definition,) = ast.parse(inspect.getsource(owner)).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                    found[name] = " ".join(meaning.split())
    return found


def _model(hint: Any) -> type | None:
    """Return the model of a section, of a table or list of sections, or of an optional section. None for a value."""
    parts = [hint, *get_args(hint)] if get_origin(hint) in (dict, tuple, Union, UnionType) else [hint]
    return next((part for part in parts if inspect.isclass(part) and (issubclass(part, BaseModel) or is_dataclass(part))), None)


def _default(field: FieldInfo, hint: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or is_dataclass(value) or isinstance(value, BaseModel):
        return "none"
    if hint in (key_types.Duration, field_types.PositiveDuration):
        unit, suffix = next((unit for unit in _UNITS if value % unit[0] == 0), _UNITS[-1])
        return f'`"{value / unit:g}{suffix}"`' if value else "`0`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict) or hint == key_types.PatternTable:
        return "`{}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`".replace("'", '"')
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`" if isinstance(value, int) else f'`"{value}"`'


def _allowed(field: FieldInfo, hint: Any) -> str:
    limits = {name: getattr(part, name) for part in field.metadata for name in ("ge", "gt", "le") if hasattr(part, name)}
    shown = _type(hint)
    kinds = "".join(f"; only for {' and '.join(part.kinds)}" for part in field.metadata if isinstance(part, ForKinds))
    if "ge" in limits and "le" in limits:
        return f"{shown}, {limits['ge']:,} to {limits['le']:,}{kinds}"
    words = {"ge": "at least", "gt": "above", "le": "at most"}
    return ", ".join([shown, *(f"{words[name]} {limit:,}" for name, limit in limits.items())]) + kinds


def _type(hint: Any) -> str:
    if hint in _TYPES:
        return _TYPES[hint]
    origin, args = get_origin(hint), [part for part in get_args(hint) if part is not type(None)]
    if origin is Literal:
        return _one_of(args)
    if origin is tuple:
        return f"list of: {_type(args[0])}"
    if origin is dict:
        return f"table of: {_type(args[1])}"
    if origin in (Union, UnionType):
        return _type(args[0])
    if origin is Annotated:
        return _type(Annotated[tuple(args[:-1])] if len(args) > 2 else args[0])
    if is_dataclass(hint) or issubclass(hint, BaseModel):
        return "table"
    return _one_of([member.value for member in hint])


def _one_of(values: Sequence[str]) -> str:
    return " or ".join([", ".join(f'`"{value}"`' for value in values[:-1]), f'`"{values[-1]}"`'])


if __name__ == "__main__":
    sys.stdout.write(text())
