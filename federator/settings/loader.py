"""Loader of the configuration file. An error in it becomes one line with the place and the allowed values."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from federator.connector import ConfigError
from federator.connector.options import LIST_KEYS, ConnectorSettings
from federator.registry import get_connector, list_impls
from federator.runtime.input_faults import describe_fault
from federator.runtime.text import nearest_name
from federator.settings.field_types import CLEAR_TEXT
from federator.settings.known_secrets import register_secrets
from federator.settings.section import find_section, section_keys
from federator.settings.sections import MirrorSettings, Settings, SourceSettings
from federator.settings.validation import validate_settings


def load_settings(path: FilePath) -> Settings:
    """Read and check a configuration file. Raise ConfigError: one line with file, key and allowed values."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", hint="create one with federator init") from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror})", hint="name a TOML file that this user may read"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}", hint="save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        hint = "texts have quotes, sections have brackets: [sources.lake]"
        # The parser shows a section's name as a tuple, such as ('sources', 'lake').
        text = re.sub(r"\(('[^)]*)\)", lambda names: ".".join(re.findall("'([^']*)'", names[1])), str(error))
        raise ConfigError(f"{path.absolute()}: not TOML: {text}", hint=hint) from None
    return parse_settings(raw, path)


def parse_settings(raw: Mapping[str, Any], path: FilePath) -> Settings:
    """Return the settings of decoded TOML; ``path`` is the file in messages. Raise ConfigError."""
    path = path.absolute()
    for key in raw:
        if key not in section_keys(Settings):
            raise _unknown_key(path, (), key)
    values = dict(raw)
    values["sources"] = {name: _parse_source(name, table, path) for name, table in _require_table(raw, "sources", path).items()}
    try:
        settings = Settings(path=path, **values)
    except ValidationError as error:
        raise _config_error(error, path) from None
    validate_settings(settings)
    register_secrets(settings)
    return settings


def _require_table(raw: Mapping[str, Any], key: str, path: FilePath) -> dict[str, Any]:
    table = raw.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(value, dict) for value in table.values()):
        raise ConfigError(f"{path}: [{key}] must contain tables, such as [{key}.lake]")
    return table


def _parse_source(name: str, table: dict[str, Any], path: FilePath) -> dict[str, Any]:
    # Every other key belongs to the connector.
    own_values: dict[str, Any] = {key: table[key] for key in section_keys(SourceSettings) if key in table}
    if "impl" not in own_values:
        raise ConfigError(f"{path}: [sources.{name}] impl: required, and not set", hint=f"use one of {', '.join(list_impls())}")
    if "vend_credentials" in table:
        raise ConfigError(
            f"{path}: [sources.{name}] vend_credentials: replaced by vend",
            hint='true is vend = "static"; prefer vend = "sts", which vends temporary credentials for one table',
        )
    _refuse_other_keys(own_values["impl"], table, f"{path}: [sources.{name}]")
    properties = dict(
        _flatten({key: value for key, value in table.items() if key not in own_values}, f"{path}: [sources.{name}]")
    )
    for key in ("root", "path"):
        for full_key in (key, f"{own_values['impl']}.{key}"):
            value = properties.get(full_key)
            if own_values["impl"] == "dir" and value and "://" not in value and not value.startswith(("/", "file:", "$")):
                properties[full_key] = str((path.parent / value).absolute())
    return {"name": name, "properties": properties, **own_values}


def _refuse_other_keys(impl: Any, table: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError for a key of a mirror, and for a misspelt key that every source has. A key of the connector is allowed."""
    try:
        source_keys = _source_keys(get_connector(str(impl)).settings_type)
    except ConfigError:
        # A wrong ``impl`` is reported when the settings are validated.
        return
    # A key may be written with its dots in quotes.
    for key in sorted({key.partition(".")[0] for key in table} - source_keys - {str(impl)}):
        nearest = nearest_name(key, sorted(source_keys))
        if key in section_keys(MirrorSettings):
            raise ConfigError(f"{where} {key}: unknown key", hint=f"{key} is a key of a mirror: [mirrors.NAME]")
        if nearest in section_keys(SourceSettings):
            raise ConfigError(f"{where} {key}: unknown key", hint=f"did you mean {nearest}?")


def _source_keys(settings_type: type[ConnectorSettings] = ConnectorSettings) -> set[str]:
    """Return the first parts of all keys of a source with these settings."""
    return {*section_keys(SourceSettings), *(field.metadata["key"].partition(".")[0] for field in fields(settings_type))}


def _flatten(table: Mapping[str, Any], where: str, prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            flat += _flatten(value, where, f"{prefix}{key}.")
        elif key in LIST_KEYS and isinstance(value, list) and all(isinstance(text, str) for text in value):
            flat.append((prefix + key, ",".join(value)))
        elif isinstance(value, list):
            raise ConfigError(f"{where} {prefix}{key}: a list is not allowed", hint="use a text, a number, true or false")
        else:
            flat.append((prefix + key, str(value).lower() if isinstance(value, bool) else str(value)))
    return flat


def _config_error(error: ValidationError, path: FilePath) -> ConfigError:
    first = error.errors()[0]
    *where, key = first["loc"]
    if key == "[key]":
        return ConfigError(f"{path}: [{'.'.join(map(str, where))}]: a name has up to 64 letters, digits, - and _")
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _unknown_key(path, where, str(key))
    if first["type"] == CLEAR_TEXT:
        return ConfigError(f"{path}: {_section_prefix(where)}{key}: {first['msg']}", hint="write ${VARIABLE} or file:PATH")
    if first["type"] in _TABLE_TYPES:
        parts = [*map(str, where), str(key)]
        section = f"{parts[0]}.NAME" if parts[0] in ("mirrors", "notify", "roots") and len(parts) < 3 else ".".join(parts)
        return ConfigError(
            f"{path}: {_section_prefix(where)}{key}: must be a table of keys", hint=f"write [{section}] above its keys"
        )
    # Do not show a value that should have been a text: it may be a secret.
    value_text = "" if first["type"] in ("missing", "string_type") else f" {first.get('input')!r} is not allowed:"
    reason = _EXPECTED_TEXTS.get(first["type"]) or describe_fault(first)
    pronoun = "it " if value_text and reason.startswith("must ") else ""
    return ConfigError(f"{path}: {_section_prefix(where)}{key}:{value_text} {pronoun}{reason}")


_EXPECTED_TEXTS = {
    "missing": "required, and not set", "string_type": "must be a text in quotes",
    "tuple_type": 'must be a list of texts, such as ["a$*"]',
    "string_pattern_mismatch": "must have up to 64 letters, digits, - and _",
}  # fmt: skip
# The input has the values of all its keys, among them secrets, so it is not shown.
_TABLE_TYPES = ("model_type", "dataclass_type", "dict_type")


def _unknown_key(path: FilePath, where: Sequence[str | int], key: str) -> ConfigError:
    allowed = list(section_keys(find_section(Settings, where)))
    if where[:1] == ["mirrors"] and len(where) == 2 and key in {*_source_keys(), *list_impls()}:
        hint: str | None = f"{key} is a key of a source: [sources.NAME]"
    else:
        nearest = nearest_name(key, allowed)
        hint = f"did you mean {nearest}?" if nearest else None
    return ConfigError(f"{path}: {_section_prefix(where)}{key}: unknown key; allowed: {', '.join(allowed)}", hint=hint)


def _section_prefix(where: Sequence[str | int]) -> str:
    return f"[{'.'.join(map(str, where))}] " if where else ""
