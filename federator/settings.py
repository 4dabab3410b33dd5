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
from federator.connector.options import is_reference, is_secret_key, resolve, secret_keys
from federator.model import digest_of
from federator.planning.rule import Delete, MirrorRule, OnConflict, OnMissing
from federator.registry import connector

DEFAULT_FILE = "federator.toml"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: object) -> float:
    """A duration: a number of seconds, or ``90s``, ``10m``, ``2h``, ``1d``, ``500ms``. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", str(value))
    if match is None:
        raise ValueError("a duration like 500ms, 90s, 10m, 2h, 1d")
    return float(match[1]) * _UNITS[match[2]]


def _some_seconds(value: object) -> float:
    length = seconds(value)
    if length == 0:
        raise ValueError("a duration above 0 like 500ms, 90s, 10m, 2h, 1d")
    return length


_CRON = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))


def _schedule(value: object) -> str:
    text = str(value)
    if text.startswith("@every "):
        if seconds(text.removeprefix("@every ").strip()) < 1:
            raise ValueError("@every takes a second or more")
        return text
    fields = text.split()
    if len(fields) != len(_CRON):
        raise ValueError("a cron line of five fields, or @every 15m")
    for field, (name, low, high) in zip(fields, _CRON, strict=True):
        if not all(_is_cron(part, low, high) for part in field.split(",")):
            raise ValueError(f"{field!r} is no {name} of a cron line (minute hour day month weekday), nor is it @every 15m")
    return text


def _is_cron(part: str, low: int, high: int) -> bool:
    match = re.fullmatch(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([1-9]\d*))?", part)
    ends = [end for end in match.groups()[:2] if end is not None] if match else []
    # Names of months and weekdays are left to the scheduler.
    return match is not None and all(
        low <= int(end) <= high if end.isdigit() else end.isalpha() and len(end) == 3 for end in ends
    )


Duration = Annotated[float, BeforeValidator(seconds)]
SomeDuration = Annotated[float, BeforeValidator(_some_seconds)]
Schedule = Annotated[str, BeforeValidator(_schedule)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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
    timeout: SomeDuration = 30.0
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
    deadline: SomeDuration = 600.0
    properties: dict[str, str] = Field(default_factory=dict)

    @property
    def spec(self) -> SourceSpec:
        return SourceSpec(self.name, self.impl, self.properties)

    @property
    def digest(self) -> str:
        """Changes with everything that could change what a listing returns, the environment's part in it too; a change resets proven
        misses. Secrets count as the references that they are: a new password is no other principal."""
        hidden = secret_keys(connector(self.impl).settings_type)
        properties = {
            key: text
            if (bare := key.removeprefix(f"{self.impl}.")) in hidden or is_secret_key(bare)
            else resolve(text, where=key)
            for key, text in self.properties.items()
        }
        return digest_of([self.impl, properties])


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
    password = re.match(r"[^:/]+://[^/@]*?:([^@]*)@", settings.index.url)
    for key, text in (("[index] url", password and password[1]), ("[serve] token", settings.serve.token)):
        if text and not is_reference(text):
            raise ConfigError(f"{file}: {key}: a secret must not stand in the file", hint="write ${VARIABLE}")
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
                allowed = f"allowed: {', '.join(names)}" if names else f"{mirror.origin!r} has no levels that have names"
                raise ConfigError(f"{where} {key}: {{{used}}} is no level of {mirror.origin!r}", hint=allowed)
        if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", template)):
            raise ConfigError(f"{where} {key}: {template!r} has a brace without its other half", hint="{table} fills in a name")


__all__ = ["DEFAULT_FILE", "MirrorSettings", "Settings", "SourceSettings", "load", "parse", "seconds"]
