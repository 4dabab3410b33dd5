"""The sections of the configuration file, each a typed model; ``Settings`` is the whole file."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from federator.connector import ConfigError, SourceSpec
from federator.connector.options import is_secret_key, resolve, secret_keys
from federator.model import Aliases, canonical_location, digest_of, is_location
from federator.model.scopes import Scopes
from federator.planning.rule import (
    Approval,
    Delete,
    MirrorRule,
    OnConflict,
    OnDrift,
    OnMissing,
    Relocate,
    Replace,
    Where,
    WindowScope,
)
from federator.registry import connector
from federator.settings.keeping import HistorySettings, ReportSettings
from federator.settings.telling import LineageSettings, LogsSettings, NotifySettings, TelemetrySettings
from federator.settings.values import (
    AnchorOption,
    AnchorUrl,
    Duration,
    MirrorSchedule,
    Name,
    Origin,
    Pattern,
    Place,
    Regex,
    RoleName,
    Schedule,
    SigningAlgorithm,
    SomeDuration,
    TimeZone,
    WebUrl,
    Window,
)
from federator.settings.viewing import TreeSettings


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InstanceSettings(_Section):
    """Who we are in the marks that we leave in catalogs. ``fingerprint`` names the deployment that the index belongs to, where the
    place of its database does not tell: any text that no other deployment has."""

    id: Name | None = None
    fingerprint: str | None = None


class IndexSettings(_Section):
    """Where the index lives: ``sqlite:///file`` or ``postgresql+psycopg://...``; secrets as references."""

    url: str = "sqlite:///federator.db"


class SparkSettings(_Section):
    """How Spark is reached. ``conf`` is passed on as it is; ``class_archive`` lets the JVM keep its classes for the next start."""

    master: str = "local[*]"
    memory: str = "1g"
    class_archive: bool = True
    conf: dict[str, str] = Field(default_factory=dict)


class VerifySettings(_Section):
    """Opening tables with pylance: what is new, changed, unreachable or was opened ``max_age`` ago is due. A run opens up to
    ``max_tables`` of a source and begins no further one after ``max_seconds``; one table may take ``timeout``."""

    enabled: bool = True
    max_age: Duration = 86_400.0
    timeout: SomeDuration = 30.0
    max_tables: int = Field(default=100_000, ge=0)
    max_seconds: SomeDuration = 3600.0


class LocationsSettings(_Section):
    """Beginnings of locations that stand for others: a bucket seen through an access point, a mount, a nameservice."""

    aliases: dict[str, str] = Field(default_factory=dict)

    @field_validator("aliases")
    @classmethod
    def _ended(cls, aliases: dict[str, str]) -> dict[str, str]:
        Aliases.of(aliases)
        return aliases


class ScheduleSettings(_Section):
    """All scheduled jobs: each begins up to ``jitter`` late, so that many do not begin at once; one that was missed, while no worker
    ran, is made up for, once, if that is not longer ago than ``misfire_grace``."""

    jitter: Duration = 0.0
    misfire_grace: SomeDuration = 3600.0


class OidcSettings(_Section):
    """An identity provider whose JWTs are taken. Its keys are at ``jwks_url``, else where the issuer's discovery document says. The
    role is what ``roles`` makes of the values of ``role_claim``, the greatest of several; the scopes are those of ``scopes_claim``; the
    name in runs and audit is that of ``name_claim``. A claim inside another is written ``realm_access.roles``."""

    issuer: WebUrl
    audience: str = Field(min_length=1)
    jwks_url: WebUrl | None = None
    algorithms: tuple[SigningAlgorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    role_claim: str = "roles"
    roles: dict[str, RoleName] = Field(default_factory=dict)
    scopes_claim: str = "federator_scopes"
    name_claim: str = "sub"
    leeway: Duration = 30.0
    timeout: SomeDuration = 5.0


class DataSettings(_Section):
    """Tables opened for callers of the API: the most rows and bytes of an answer, bytes of a body, and seconds of work; in so many
    ``processes``, which are started when they are first needed."""

    max_rows: int = Field(default=1_000_000, ge=1)
    max_seconds: SomeDuration = 60.0
    max_bytes: int = Field(default=256 << 20, ge=1)
    processes: int = Field(default=4, ge=1, le=64)


class ServeSettings(_Section):
    """The service. On loopback, with neither ``token`` nor ``oidc``, who brings no credential is this machine's own user, unless
    ``auth`` is ``required``; anywhere else a credential is required. A caller may ask ``requests_per_second``, and ``burst`` at once;
    pages of ``cors_origins`` may use the API from a browser."""

    host: str = "127.0.0.1"
    port: int = Field(default=8042, ge=0, le=65535)
    token: str | None = None
    auth: Literal["auto", "required"] = "auto"
    oidc: OidcSettings | None = None
    requests_per_second: float | None = Field(default=500.0, gt=0)
    burst: int = Field(default=1000, ge=1)
    cors_origins: tuple[Origin, ...] = ()
    data: DataSettings = DataSettings()


class AuditSettings(_Section):
    """Proof of the audit record: the Ed25519 ``key`` that signs the heads of its chain, and the ``anchor`` they are published to:
    ``file:///path/anchors.jsonl``, ``s3://bucket/prefix`` with its ``storage`` options, or ``https://...`` with its ``token``."""

    key: str | None = None
    anchor: AnchorUrl | None = None
    token: str | None = None
    storage: dict[AnchorOption, str] = Field(default_factory=dict)


class RootSettings(_Section):
    """A place in storage that is scanned for tables that no catalog declares, ``depth`` levels down and without the places in
    ``exclude`` (below ``location``, or whole). It is opened with the ``storage.*`` of a ``source``, or with its own ``storage``; one
    listing may take ``timeout``."""

    location: Place
    source: str | None = None
    storage: dict[str, str] = Field(default_factory=dict)
    depth: int = Field(default=12, ge=0, le=64)
    exclude: tuple[str, ...] = ()
    max_directories: int = Field(default=1_000_000, ge=1)
    timeout: SomeDuration = 60.0
    schedule: Schedule | None = None

    @property
    def excluded(self) -> tuple[str, ...]:
        """The places that are left out, in canonical form."""
        whole = (each if is_location(each) else f"{self.location.rstrip('/')}/{each}" for each in self.exclude)
        return tuple(map(canonical_location, whole))


class SourceSettings(_Section):
    """A configured catalog connection. ``deadline`` bounds the reading of one shard. Where the catalog has a feed of changes, a crawl
    reads what it names, unless ``incremental`` is false, and everything where that was last done ``full_every`` ago. Mirrors make
    ``write_concurrency`` changes there at once, and ``writes_per_second`` together. The API hands out secret storage options only
    with ``vend_credentials``, deletes data only with ``allow_drop``, and opens tables for its callers unless ``data_operations`` is
    false."""

    name: Name
    impl: str
    schedule: Schedule | None = None
    deadline: SomeDuration = 600.0
    incremental: bool = True
    full_every: Duration = 86_400.0
    write_concurrency: int = Field(default=4, ge=1, le=64)
    writes_per_second: float | None = Field(default=None, gt=0)
    vend_credentials: bool = False
    allow_drop: bool = False
    data_operations: bool = True
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


class WhereSettings(_Section):
    """Filters on what a table says of itself: patterns of owners, of locations, and of properties by key."""

    owner: tuple[Pattern, ...] = ()
    location: tuple[Pattern, ...] = ()
    properties: dict[str, Pattern] = Field(default_factory=dict)


class ReplaceSettings(_Section):
    """A regular expression and its replacement, in a level's names or the table's."""

    pattern: Regex = Field(alias="from")
    text: str = Field(alias="to")
    level: str = Field(default="table", alias="in")


class RelocateSettings(_Section):
    """A location's beginning at the origin and at the target."""

    origin: Place = Field(alias="from")
    target: Place = Field(alias="to")


class MirrorSettings(_Section):
    """A mirror as it is written; docs/mirroring.md explains the keys."""

    origin: str = Field(alias="from")
    target: str = Field(alias="to")
    include: tuple[Pattern, ...] = ("*",)
    exclude: tuple[Pattern, ...] = ()
    where: WhereSettings = WhereSettings()
    only_valid: bool = False
    namespace: str | None = None
    table: str = "{table}"
    prefix: str = ""
    suffix: str = ""
    replace: tuple[ReplaceSettings, ...] = ()
    location: tuple[RelocateSettings, ...] = ()
    allow_properties: tuple[Pattern, ...] = ("*",)
    deny_properties: tuple[Pattern, ...] = ()
    doc: bool = True
    delete: Delete = "owned"
    on_conflict: OnConflict = "report"
    source_priority: tuple[str, ...] = ()
    on_missing: OnMissing = "report"
    on_drift: OnDrift = "fix"
    update_by_recreate: bool = False
    misses_before_delete: int = Field(default=2, ge=1, le=16)
    min_miss_interval: Duration = 600.0
    max_origin_age: Duration = 2.0
    max_delete_percent: float = Field(default=20.0, ge=0, le=100)
    max_changes: int = Field(default=10_000, ge=0)
    max_dropped_namespaces: int = Field(default=5, ge=0)
    guard_window: Duration = 86_400.0
    approval: Approval = "guarded"
    windows: tuple[Window, ...] = ()
    window_scope: WindowScope = "destructive"
    timezone: TimeZone = "UTC"
    transitive: bool = False
    declare_missing: bool = False
    prune_unselected: bool = False
    schedule: MirrorSchedule | None = None

    def rule(self, name: str) -> MirrorRule:
        plain = {key: getattr(self, key) for key in type(self).model_fields if key not in ("schedule", *NESTED)}
        where = Where(
            owner=self.where.owner, location=self.where.location, properties=tuple(sorted(self.where.properties.items()))
        )
        replace = tuple(Replace(change.pattern, change.text, change.level) for change in self.replace)
        location = tuple(Relocate(move.origin, move.target) for move in self.location)
        return MirrorRule(name=name, where=where, replace=replace, location=location, **plain)


NESTED: dict[str, type[BaseModel]] = {"where": WhereSettings, "replace": ReplaceSettings, "location": RelocateSettings}


def _catalog_levels(impl: str) -> int:
    levels = connector(impl).capabilities.levels
    return int(len(levels) > 1 and levels[0] == "catalog")


class Settings(_Section):
    """The whole file. ``path`` is where it was read from."""

    path: FilePath
    instance: InstanceSettings = InstanceSettings()
    index: IndexSettings = IndexSettings()
    spark: SparkSettings = SparkSettings()
    verify: VerifySettings = VerifySettings()
    locations: LocationsSettings = LocationsSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    serve: ServeSettings = ServeSettings()
    audit: AuditSettings = AuditSettings()
    history: HistorySettings = HistorySettings()
    reports: dict[Name, ReportSettings] = Field(default_factory=dict)
    logs: LogsSettings = LogsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    lineage: LineageSettings = LineageSettings()
    notify: dict[Name, NotifySettings] = Field(default_factory=dict)
    tree: TreeSettings = TreeSettings()
    sources: dict[Name, SourceSettings] = Field(default_factory=dict)
    mirrors: dict[Name, MirrorSettings] = Field(default_factory=dict)
    roots: dict[Name, RootSettings] = Field(default_factory=dict)

    @property
    def base(self) -> FilePath:
        return self.path.parent

    @property
    def state_dir(self) -> FilePath:
        """Staging, locks and the Java wrapper; beside the configuration file."""
        return self.base / ".federator"

    @property
    def aliases(self) -> Aliases:
        """What ``canonical_location`` takes to know one place under several names."""
        return Aliases.of(self.locations.aliases)

    @property
    def rules(self) -> dict[str, MirrorRule]:
        return {name: mirror.rule(name) for name, mirror in self.mirrors.items()}

    @property
    def merged(self) -> dict[str, int]:
        """The sources in the order of the merged view, each with how many of its leading levels are left out there."""
        names = dict.fromkeys([*self.tree.priority, *sorted(self.sources)])
        return {name: self.tree.skip.get(name, _catalog_levels(self.sources[name].impl)) for name in names}

    def mirrors_in(self, scopes: Scopes) -> tuple[str, ...]:
        """The mirrors that may be told of: those both of whose sources a scope covers whole.

        A mirror's plans, guards and jobs speak of all that it copies, so they are shown whole or not at all.
        """
        whole = {name for name in self.sources if scopes.covers((name,))}
        return tuple(name for name, mirror in self.mirrors.items() if {mirror.origin, mirror.target} <= whole)

    def source(self, name: str) -> SourceSettings:
        """Raises ConfigError that lists the configured ones."""
        try:
            return self.sources[name]
        except KeyError:
            known = ", ".join(self.sources) or "none is configured"
            raise ConfigError(f"no source is called {name!r}", hint=f"sources: {known}") from None

    def root(self, name: str) -> RootSettings:
        """Raises ConfigError that lists the configured ones."""
        if name not in self.roots:
            raise ConfigError(f"no root is called {name!r}", hint=f"roots: {', '.join(self.roots) or 'none is configured'}")
        return self.roots[name]

    def root_spec(self, name: str) -> SourceSpec:
        """What opens a root's storage: its source, or a directory with the root's own options."""
        root = self.root(name)
        if root.source is not None:
            return self.source(root.source).spec
        storage = {f"storage.{key}": value for key, value in root.storage.items()}
        return SourceSpec(name, "dir", {"root": root.location, **storage})

    def rule(self, name: str) -> MirrorRule:
        """Raises ConfigError that lists the configured ones."""
        if name not in self.mirrors:
            raise ConfigError(
                f"no mirror is called {name!r}", hint=f"mirrors: {', '.join(self.mirrors) or 'none is configured'}"
            )
        return self.mirrors[name].rule(name)
