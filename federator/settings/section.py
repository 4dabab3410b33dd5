"""Base of the configuration sections. Their models are the only declaration of keys, defaults and allowed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

#: marks a field that the loader fills in: it is not a key of the file
LOADED = object()


class Section(BaseModel):
    """A section of the file. Its docstring and the texts below its fields are the section's text in docs/reference/settings.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def section_fields(section: type[Any]) -> dict[str, FieldInfo]:
    """Return the fields that are keys of a section, or of a dataclass inside one, by attribute."""
    if issubclass(section, BaseModel):
        return {name: field for name, field in section.model_fields.items() if LOADED not in field.metadata}
    hints = get_type_hints(section, include_extras=True)
    return {field.name: _dataclass_field(hints[field.name], field.default) for field in fields(section)}


def _dataclass_field(hint: Any, default: Any) -> FieldInfo:
    return FieldInfo.from_annotation(hint) if default is MISSING else FieldInfo.from_annotated_attribute(hint, default)


def section_keys(section: type[Any]) -> dict[str, FieldInfo]:
    """Return the keys of a section as they are in the file, in order, each with its field."""
    return {field.alias or name: field for name, field in section_fields(section).items()}


def find_section(root: type[Any], location: Sequence[str | int]) -> type[Any]:
    """Return the section at a location of an error (``loc`` of pydantic), e.g. ``("mirrors", "m", "replace", 0)``."""
    hint: Any = root
    for part in location:
        if get_origin(hint) is None:
            hint = section_keys(hint)[str(part)].annotation
            # Of ``X | None``: X.
            hint = get_args(hint)[0] if get_origin(hint) in (Union, UnionType) else hint
        else:
            # A number or a name inside a list or a dictionary: go on with the type of its values.
            hint = get_args(hint)[1 if get_origin(hint) is dict else 0]
    return hint  # type: ignore[no-any-return]  # the location of a section
