"""From the file's text to Settings, and from a mistake in it to one line that says where and what is allowed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ValidationError

from federator.connector import ConfigError
from federator.settings.checks import check
from federator.settings.keeping import HistorySettings, ReportSettings
from federator.settings.sections import (
    NESTED,
    AuditSettings,
    DataSettings,
    IndexSettings,
    InstanceSettings,
    LocationsSettings,
    MirrorSettings,
    OidcSettings,
    RootSettings,
    ScheduleSettings,
    ServeSettings,
    Settings,
    SparkSettings,
    VerifySettings,
)
from federator.settings.telling import LineageSettings, LogsSettings, NotifySettings, TelemetrySettings


def load(path: FilePath) -> Settings:
    """Reads and checks a configuration file. Raises ConfigError: one line that names file, key and what is allowed."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file", hint="federator init writes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    return parse(raw, path)


def parse(raw: Mapping[str, Any], path: FilePath) -> Settings:
    """Settings from decoded TOML; ``path`` names the file in messages. Raises ConfigError."""
    path = path.absolute()
    values = dict(raw)
    values["sources"] = {name: _source(name, table, path) for name, table in _table(raw, "sources", path).items()}
    try:
        settings = Settings(path=path, **values)
    except ValidationError as error:
        raise ConfigError(*_explain(error, path)) from None
    check(settings)
    return settings


def _table(raw: Mapping[str, Any], key: str, path: FilePath) -> dict[str, Any]:
    table = raw.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(value, dict) for value in table.values()):
        raise ConfigError(f"{path}: [{key}] holds tables, such as [{key}.lake]")
    return table


# What a source's table has of ours; everything else is its connector's.
_OF_SOURCE = (
    "impl", "schedule", "deadline", "incremental", "full_every", "write_concurrency", "writes_per_second", "vend_credentials",
    "allow_drop", "data_operations",
)  # fmt: skip


def _source(name: str, table: dict[str, Any], path: FilePath) -> dict[str, Any]:
    own: dict[str, Any] = {key: table[key] for key in _OF_SOURCE if key in table}
    if "impl" not in own:
        raise ConfigError(f"{path}: [sources.{name}] impl: required, and not set")
    properties = dict(_flatten({key: value for key, value in table.items() if key not in own}, f"{path}: [sources.{name}]"))
    for key in ("root", "path"):
        for full in (key, f"{own['impl']}.{key}"):
            value = properties.get(full)
            if own["impl"] == "dir" and value and "://" not in value and not value.startswith(("/", "file:", "$")):
                properties[full] = str((path.parent / value).absolute())
    return {"name": name, "properties": properties, **own}


def _flatten(table: Mapping[str, Any], where: str, prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            flat += _flatten(value, where, f"{prefix}{key}.")
        elif isinstance(value, list):
            raise ConfigError(f"{where} {prefix}{key}: a list is not allowed: a text, a number, true or false")
        else:
            flat.append((prefix + key, str(value).lower() if isinstance(value, bool) else str(value)))
    return flat


def _explain(error: ValidationError, path: FilePath) -> tuple[str]:
    first = error.errors()[0]
    where = list(first["loc"])
    key = str(where.pop()) if where else ""
    if key == "[key]":
        return (f"{path}: [{'.'.join(map(str, where))}]: a name is made of up to 64 letters, digits, - and _",)
    section = f"[{'.'.join(str(part) for part in where)}] " if where else ""
    if first["type"] == "extra_forbidden":
        return (f"{path}: {section}{key}: unknown key{_allowed_keys(where)}",)
    # What was written in place of a text may be a secret.
    shown = "" if first["type"] in ("missing", "string_type") else f" {first.get('input')!r} is not allowed"
    reason = _WANTED.get(first["type"]) or first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return (f"{path}: {section}{key}:{shown + ':' if shown else ''} {reason}",)


_WANTED = {
    "missing": "required, and not set", "string_type": "a text in quotes", "tuple_type": 'a list of texts, such as ["a$*"]',
    "model_type": "a table of keys", "dict_type": "a table of keys", "bool_type": "true or false", "bool_parsing": "true or false",
    "string_pattern_mismatch": "up to 64 letters, digits, - and _",
}  # fmt: skip


def _allowed_keys(where: list[Any]) -> str:
    models: dict[str, type[BaseModel]] = {
        "instance": InstanceSettings, "index": IndexSettings, "spark": SparkSettings, "verify": VerifySettings,
        "locations": LocationsSettings,
        "schedule": ScheduleSettings, "serve": ServeSettings, "audit": AuditSettings, "mirrors": MirrorSettings, "roots": RootSettings,
        "history": HistorySettings, "reports": ReportSettings,
        "logs": LogsSettings, "telemetry": TelemetrySettings, "lineage": LineageSettings, "notify": NotifySettings,
    }  # fmt: skip
    model = models.get(str(where[0])) if where else Settings
    if len(where) > 2 and where[0] == "mirrors":
        model = NESTED.get(str(where[2]))
    if where[:2] == ["serve", "oidc"]:
        model = OidcSettings
    if where[:2] == ["serve", "data"]:
        model = DataSettings
    if model is None:
        return ""
    names = [field.alias or name for name, field in model.model_fields.items() if name != "path"]
    return f"; allowed: {', '.join(names)}"
