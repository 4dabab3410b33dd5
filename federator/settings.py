"""The configuration: one TOML file, typed. Nothing is read at import, and secrets stay references until they are used.

Relative paths (the SQLite file, a directory source's root) count from the file's own directory, so that a command gives the same
answer from wherever it is run.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from federator.connector import ConfigError, SourceSpec
from federator.connector.options import resolve
from federator.model import digest_of
from federator.planning.rule import Delete, MirrorRule, OnConflict, OnMissing
from federator.registry import connector

DEFAULT_FILE = "federator.toml"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: object) -> float:
    """A duration: a number of seconds, or ``90s``, ``10m``, ``2h``, ``1d``, ``500ms``. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", str(value))
    if match is None:
        raise ValueError("a duration like 500ms, 90s, 10m, 2h, 1d")
    return float(match[1]) * _UNITS[match[2]]


def _schedule(value: object) -> str:
    text = str(value)
    if text.startswith("@every "):
        seconds(text.removeprefix("@every ").strip())
    elif len(text.split()) != 5:
        raise ValueError("a cron line of five fields, or @every 15m")
    return text


Duration = Annotated[float, BeforeValidator(seconds)]
Schedule = Annotated[str, BeforeValidator(_schedule)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class InstanceSettings(_Section):
    """Who we are in the marks that we leave in catalogs."""

    id: Name | None = None


class IndexSettings(_Section):
    """Where the index lives: ``sqlite:///file`` or ``postgresql+psycopg://...``; secrets as references."""

    url: str = "sqlite:///federator.db"


class SparkSettings(_Section):
    """How Spark is reached. ``conf`` is passed on as it is."""

    master: str = "local[*]"
    memory: str = "1g"
    conf: dict[str, str] = Field(default_factory=dict)


class VerifySettings(_Section):
    """Opening tables with pylance: what is older than ``max_age`` is opened again; one table may take ``timeout``."""

    enabled: bool = True
    max_age: Duration = 86_400.0
    timeout: Duration = 30.0
    max_tables: int = Field(default=100_000, ge=0)


class ServeSettings(_Section):
    """The service. Without ``token`` it listens on loopback only."""

    host: str = "127.0.0.1"
    port: int = Field(default=8042, ge=0, le=65535)
    token: str | None = None


class SourceSettings(_Section):
    """A configured catalog connection. ``deadline`` bounds the reading of one shard."""

    name: Name
    impl: str
    schedule: Schedule | None = None
    deadline: Duration = 600.0
    properties: dict[str, str] = Field(default_factory=dict)

    @property
    def spec(self) -> SourceSpec:
        return SourceSpec(self.name, self.impl, self.properties)

    @property
    def digest(self) -> str:
        """Changes with everything that could change what a listing returns; a change resets proven misses."""
        return digest_of([self.impl, self.properties])


class MirrorSettings(_Section):
    """A mirror as it is written; ``MirrorRule`` documents the keys."""

    origin: str = Field(alias="from")
    target: str = Field(alias="to")
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    namespace: str | None = None
    table: str = "{table}"
    delete: Delete = "owned"
    on_conflict: OnConflict = "report"
    on_missing: OnMissing = "report"
    misses_before_delete: int = Field(default=2, ge=1, le=16)
    min_miss_interval: Duration = 600.0
    max_delete_percent: float = Field(default=20.0, ge=0, le=100)
    max_changes: int = Field(default=10_000, ge=0)
    guard_window: Duration = 86_400.0
    transitive: bool = False
    declare_missing: bool = False
    prune_unselected: bool = False
    schedule: Schedule | None = None

    def rule(self, name: str) -> MirrorRule:
        return MirrorRule(name=name, **self.model_dump(exclude={"schedule"}))


class Settings(_Section):
    """The whole file. ``path`` is where it was read from."""

    path: FilePath
    instance: InstanceSettings = InstanceSettings()
    index: IndexSettings = IndexSettings()
    spark: SparkSettings = SparkSettings()
    verify: VerifySettings = VerifySettings()
    serve: ServeSettings = ServeSettings()
    sources: dict[Name, SourceSettings] = Field(default_factory=dict)
    mirrors: dict[Name, MirrorSettings] = Field(default_factory=dict)

    @property
    def base(self) -> FilePath:
        return self.path.parent

    @property
    def state_dir(self) -> FilePath:
        """Staging, locks and the Java wrapper; beside the configuration file."""
        return self.base / ".federator"

    @property
    def rules(self) -> dict[str, MirrorRule]:
        return {name: mirror.rule(name) for name, mirror in self.mirrors.items()}

    def source(self, name: str) -> SourceSettings:
        """Raises ConfigError that lists the configured ones."""
        try:
            return self.sources[name]
        except KeyError:
            known = ", ".join(self.sources) or "none is configured"
            raise ConfigError(f"no source is called {name!r}", hint=f"sources: {known}") from None

    def rule(self, name: str) -> MirrorRule:
        """Raises ConfigError that lists the configured ones."""
        if name not in self.mirrors:
            raise ConfigError(
                f"no mirror is called {name!r}", hint=f"mirrors: {', '.join(self.mirrors) or 'none is configured'}"
            )
        return self.mirrors[name].rule(name)


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
    _check(settings)
    return settings


def _table(raw: Mapping[str, Any], key: str, path: FilePath) -> dict[str, Any]:
    table = raw.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(value, dict) for value in table.values()):
        raise ConfigError(f"{path}: [{key}] holds tables, such as [{key}.lake]")
    return table


def _source(name: str, table: dict[str, Any], path: FilePath) -> dict[str, Any]:
    own: dict[str, Any] = {key: table[key] for key in ("impl", "schedule", "deadline") if key in table}
    if "impl" not in own:
        raise ConfigError(f"{path}: [sources.{name}] impl: required, and not set")
    properties = dict(_flatten({key: value for key, value in table.items() if key not in own}))
    for key in ("root", "path"):
        for full in (key, f"{own['impl']}.{key}"):
            value = properties.get(full)
            if own["impl"] == "dir" and value and "://" not in value and not value.startswith(("/", "file:", "$")):
                properties[full] = str((path.parent / value).absolute())
    return {"name": name, "properties": properties, **own}


def _flatten(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            flat += _flatten(value, f"{prefix}{key}.")
        else:
            flat.append((prefix + key, str(value).lower() if isinstance(value, bool) else str(value)))
    return flat


def _explain(error: ValidationError, path: FilePath) -> tuple[str]:
    first = error.errors()[0]
    where = list(first["loc"])
    key = str(where.pop()) if where else ""
    section = f"[{'.'.join(str(part) for part in where)}] " if where else ""
    if first["type"] == "extra_forbidden":
        return (f"{path}: {section}{key}: unknown key{_allowed_keys(where)}",)
    shown = "" if first["type"] == "missing" else f" {first.get('input')!r} is not allowed"
    reason = "required, and not set" if first["type"] == "missing" else first["msg"].removeprefix("Value error, ")
    return (f"{path}: {section}{key}:{shown + ':' if shown else ''} {reason}",)


def _allowed_keys(where: list[Any]) -> str:
    models: dict[str, type[BaseModel]] = {
        "instance": InstanceSettings, "index": IndexSettings, "spark": SparkSettings, "verify": VerifySettings,
        "serve": ServeSettings, "mirrors": MirrorSettings,
    }  # fmt: skip
    model = models.get(str(where[0])) if where else Settings
    if model is None:
        return ""
    names = [field.alias or name for name, field in model.model_fields.items() if name != "path"]
    return f"; allowed: {', '.join(names)}"


def _check(settings: Settings) -> None:
    file = settings.path
    for source in settings.sources.values():
        where = f"{file}: [sources.{source.name}] "
        try:
            found = connector(source.impl)
        except ConfigError as error:
            raise ConfigError(f"{where}impl: {error.message}", hint=error.hint) from None
        found.settings_type.check_references(source.impl, source.properties, where=where)
        found.configure(source.properties, where=where)
    resolve(settings.index.url, where=f"{file}: [index] url")
    for name, mirror in settings.mirrors.items():
        where = f"{file}: [mirrors.{name}]"
        for key, value in (("from", mirror.origin), ("to", mirror.target)):
            if value not in settings.sources:
                raise ConfigError(
                    f"{where} {key}: no source is called {value!r}", hint=f"sources: {', '.join(settings.sources)}"
                )
        if mirror.origin == mirror.target:
            raise ConfigError(f"{where} to: a mirror needs two different sources")
        _check_template(where, settings, mirror)
    if settings.mirrors and settings.instance.id is None:
        raise ConfigError(
            f"{file}: [instance] id: required with any mirror", hint='it marks what is ours in the targets, e.g. id = "prod-eu"'
        )


def _check_template(where: str, settings: Settings, mirror: MirrorSettings) -> None:
    levels = connector(settings.sources[mirror.origin].impl).capabilities.levels
    for key, template, names in (("namespace", mirror.namespace or "", levels), ("table", mirror.table, (*levels, "table"))):
        for used in re.findall(r"\{([^{}]*)\}", template):
            if used not in names:
                raise ConfigError(
                    f"{where} {key}: {{{used}}} is no level of {mirror.origin!r}", hint=f"allowed: {', '.join(names)}"
                )


__all__ = ["DEFAULT_FILE", "MirrorSettings", "Settings", "SourceSettings", "load", "parse", "seconds"]
