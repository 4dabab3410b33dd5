"""Typed models of the configuration sections; ``Settings`` is the complete file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path as FilePath
from typing import Annotated, Literal

from pydantic import Field, field_validator

from federator.connector import ConfigError, SourceSpec
from federator.connector.options import OPENING_KEYS, is_secret_key, plain_storage_keys, resolve_reference, secret_keys
from federator.connector.storage_options import is_plain_option
from federator.model import LocationAliases, canonical_location, digest_of, is_location
from federator.model.scopes import Scopes
from federator.planning.key_types import Duration, LocationText
from federator.planning.rule import MirrorKeys, MirrorRule
from federator.registry import get_connector
from federator.settings.field_types import (
    VEND_METHODS,
    AnchorOption,
    AnchorUrl,
    MirrorSchedule,
    Name,
    Origin,
    PositiveDuration,
    RoleArn,
    Schedule,
    Secret,
    SessionDuration,
    StsUrl,
    Vend,
)
from federator.settings.observability import LineageSettings, LogsSettings, NotifySettings, TelemetrySettings
from federator.settings.oidc import OidcSettings
from federator.settings.retention import HistorySettings, ReportSettings
from federator.settings.section import LOADED, Section


class InstanceSettings(Section):
    """Identity of this deployment."""

    id: Name | None = None
    """Name of the deployment in the ownership markers in catalogs. Required with any mirror. Never change it."""
    fingerprint: str | None = None
    """Identifies the deployment if the address of its database does not. Use a text that no other deployment has."""


class IndexSettings(Section):
    """Database of the index: ``sqlite:///file`` or ``postgresql+psycopg://...``, with secrets as references."""

    url: str = "sqlite:///federator.db"


class SparkSettings(Section):
    """The Spark session."""

    master: str = "local[*]"
    """Master URL of Spark, or `sc://HOST:PORT` of a Spark Connect server."""
    memory: str = "1g"
    """Memory of the driver's JVM."""
    staging: str = ""
    """On a cluster: the directory for staged crawls, which the driver and all executors can read and write. A URI
    (`s3a://bucket/staging`, `hdfs://...`), or the path of a shared file system. Default: below the configuration file."""
    archive: str = ""
    """On a cluster: an archive of packages for the executors, made by `federator spark pack`. A path or a URI."""
    class_archive: bool = True
    """Let the JVM store its classes for a faster next start."""
    conf: dict[str, str] = Field(default_factory=dict)
    """Spark settings, passed on unchanged."""

    @property
    def is_local(self) -> bool:
        """Whether Spark's executors are this process's own JVM."""
        return self.master.startswith("local")

    @property
    def is_connect(self) -> bool:
        """Whether Spark runs behind a Spark Connect server, so that this process needs no JVM."""
        return self.master.startswith("sc://")


class VerifySettings(Section):
    """Verification of tables with pylance. A location is due if it is new, changed or unreachable, or if its last verification
    is too old."""

    enabled: bool = True
    """Verify locations after a crawl."""
    max_age: Duration = 86_400.0
    """Age of a verification after which a location is due again."""
    timeout: PositiveDuration = 30.0
    """Maximum time for one table."""
    max_tables: int = Field(default=100_000, ge=0)
    """Maximum number of tables of a source that one run inspects."""
    max_seconds: PositiveDuration = 3600.0
    """Time after which a run starts no more inspections."""


class LocationsSettings(Section):
    """Prefixes that stand for other locations: an access point of a bucket, a mount, a nameservice."""

    aliases: dict[str, str] = Field(default_factory=dict)

    @field_validator("aliases")
    @classmethod
    def _check_prefixes(cls, aliases: dict[str, str]) -> dict[str, str]:
        LocationAliases.from_prefixes(aliases)
        return aliases


class ScheduleSettings(Section):
    """All scheduled jobs."""

    jitter: Duration = 0.0
    """Maximum random delay of each start, so that jobs do not start together."""
    misfire_grace: PositiveDuration = 3600.0
    """A job that was missed while no worker ran is started once if its start was at most this long ago."""


class DataSettings(Section):
    """Table data in the API."""

    max_rows: int = Field(default=1_000_000, ge=1)
    """Maximum number of rows of a response."""
    max_seconds: PositiveDuration = 60.0
    """Maximum time of one operation."""
    max_bytes: int = Field(default=256 << 20, ge=1)
    """Maximum size of a response in Arrow, and of a request body, in bytes. Those of one principal that are being sent have at most
    four times this size together; further ones are answered with 429."""
    max_memory: int = Field(default=1 << 30, ge=128 << 20)
    """Maximum memory of one child process, in bytes; a process that uses more is ended. Linux only."""
    processes: int = Field(default=4, ge=1, le=64)
    """Number of child processes that run the operations. They are started on first use."""


class ServeSettings(Section):
    """The service. A credential is required, except on loopback with neither `token` nor `oidc` and without
    `auth = "required"`: then a request without one is from this machine's own user."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8042, ge=0, le=65535)
    """Port to listen on."""
    token: Secret | None = None
    """Token that permits everything."""
    auth: Literal["auto", "required"] = "auto"
    """`"required"`: a credential is required on loopback, too."""
    oidc: OidcSettings | None = None
    """Identity provider whose JWTs are accepted."""
    requests_per_second: float | None = Field(default=500.0, gt=0)
    """Number of requests per second that a principal may send."""
    burst: int = Field(default=1000, ge=1)
    """Number of requests that a principal may send at once."""
    body_timeout: PositiveDuration = 20.0
    """Time in which a request body must end, or bring `body_progress` further bytes. Status 408 otherwise."""
    body_progress: int = Field(default=32 << 10, ge=1)
    """Number of bytes that a longer request body must bring within each `body_timeout`, and that a client must read of a longer
    response within each `response_timeout`."""
    response_timeout: PositiveDuration = 60.0
    """Time in which a client must read a response, or `body_progress` bytes of it. The connection is closed otherwise."""
    cors_origins: tuple[Origin, ...] = ()
    """Web pages that may use the API from a browser."""
    data: DataSettings = DataSettings()
    """Limits for table data."""

    @property
    def public_url(self) -> str | None:
        """The URL of the service for browsers. None if there is no sign-in, whose ``redirect_uri`` is the only key that has it."""
        return self.oidc.sign_in.origin if self.oidc is not None and self.oidc.sign_in is not None else None


class AuditSettings(Section):
    """Attestation of the audit log."""

    key: Secret | None = None
    """The Ed25519 key that signs the heads of the chain."""
    anchor: AnchorUrl | None = None
    """Store that the heads are published to: `file:///path/anchors.jsonl`, `s3://bucket/prefix` or `https://host/path`."""
    token: Secret | None = None
    """Token for an `https` anchor."""
    storage: dict[AnchorOption, str] = Field(default_factory=dict)
    """Options of an `s3` anchor."""


class RootSettings(Section):
    """A storage root that is scanned for tables that no catalog declares."""

    location: LocationText
    """The root."""
    source: str | None = None
    """Source whose `storage.*` options open the root."""
    storage: dict[str, str] = Field(default_factory=dict)
    """Storage options of the root's own, in place of `source`."""
    depth: int = Field(default=12, ge=0, le=64)
    """Number of levels that are scanned."""
    exclude: tuple[str, ...] = ()
    """Locations that are not scanned, absolute or below `location`."""
    max_directories: int = Field(default=1_000_000, ge=1)
    """Maximum number of directories that a scan lists."""
    timeout: PositiveDuration = 60.0
    """Maximum time of one listing."""
    schedule: Schedule | None = None
    """When the root is scanned. Without a schedule, it is scanned by `federator crawl --roots`."""

    @property
    def excluded_locations(self) -> tuple[str, ...]:
        """The canonical locations of ``exclude``."""
        absolute = (text if is_location(text) else f"{self.location.rstrip('/')}/{text}" for text in self.exclude)
        return tuple(map(canonical_location, absolute))


class StsSettings(Section):
    """Temporary credentials for single tables from AWS STS, or a compatible server: `vend = "sts"`. The source's `storage.*`
    credentials assume the role."""

    role_arn: Annotated[RoleArn, Field(examples=["arn:aws:iam::123456789012:role/lance-readers"])]
    """Role to assume. Its permissions are the upper limit of what is vended. May be `${VARIABLE}`."""
    external_id: str | None = None
    """External id that the role's trust policy requires. May be `${VARIABLE}`."""
    duration: SessionDuration = 3600.0
    """Lifetime of credentials, `"15m"` to `"12h"`. AWS limits it to the role's maximum, and to `"1h"` if `storage.*` are the
    credentials of a role themselves (role chaining)."""
    region: str | None = None
    """Region of STS. Default: `storage.region`."""
    endpoint: StsUrl | None = None
    """URL of STS. Default: that of AWS. Required if `storage.endpoint` is set."""
    kms_key: str | None = None
    """ARN of the KMS key that encrypts the objects. Its use for reading and writing is then allowed, too."""


class SourceSettings(Section):
    """A configured connection to one catalog."""

    name: Annotated[Name, LOADED]
    impl: str
    """The connector, or a dotted path `module:NAME` to one."""
    schedule: Schedule | None = None
    """When the source is crawled. Without a schedule, it is crawled by hand."""
    deadline: PositiveDuration = 600.0
    """Maximum time to read one shard."""
    incremental: bool = True
    """Crawl incrementally if the catalog has a change feed."""
    full_every: Duration = 86_400.0
    """Age of the last full crawl after which the next crawl is full."""
    write_concurrency: int = Field(default=4, ge=1, le=64)
    """Number of changes that mirrors apply concurrently."""
    writes_per_second: float | None = Field(default=None, gt=0)
    """Maximum number of changes per second that mirrors apply in total."""
    vend: Vend = "none"
    """Credentials in the storage options that the API returns for a table. Temporary ones for this table only: `"catalog"` from the
    catalog itself, `"sts"`, `"gcs"` or `"azure"` from the store, or a list of these. `"static"`: the source's own `storage.*`, to
    writers. [table-credentials.md](../how-to/table-credentials.md#credentials-for-a-table) explains it."""
    sts: StsSettings | None = None
    """Where the credentials of `vend = "sts"` come from."""
    allow_drop: bool = False
    """The API may delete data."""
    data_operations: bool = True
    """The API opens tables."""
    properties: Annotated[dict[str, str], LOADED] = Field(default_factory=dict)

    @property
    def vend_methods(self) -> tuple[str, ...]:
        """How temporary credentials are issued, in order; empty for ``none`` and ``static``."""
        methods = (self.vend,) if isinstance(self.vend, str) else self.vend
        return tuple(method for method in methods if method in VEND_METHODS)

    @property
    def spec(self) -> SourceSpec:
        return SourceSpec(self.name, self.impl, self.properties)

    @property
    def digest(self) -> str:
        """A digest of all settings that can change the result of a listing, with environment variables resolved.

        A new digest resets misses. Secrets are included as references only: a new password is not a new identity.
        """
        hidden, plain = secret_keys(get_connector(self.impl).settings_type), plain_storage_keys(self.impl, self.properties)
        properties = {}
        for key, text in self.properties.items():
            name = key.removeprefix(f"{self.impl}.")
            option = name.removeprefix("storage.")
            is_secret = name in hidden or is_secret_key(name) or (option != name and not is_plain_option(option, plain))
            # How tables are opened does not change a listing.
            if name not in OPENING_KEYS:
                properties[key] = text if is_secret else resolve_reference(text, where=key)
        return digest_of([self.impl, properties])


class MirrorSettings(Section, MirrorKeys):  # type: ignore[misc]  # mypy does not see that sections are frozen
    """A mirror from one source to another. [mirroring.md](../explanation/mirroring.md) explains it."""

    schedule: MirrorSchedule | None = None
    """`"@every 15m"`, a cron line, or `"@after crawl"` of the origin. Without one, the mirror is run by hand."""

    def rule(self, name: str) -> MirrorRule:
        return MirrorRule(name=name, **{field.name: getattr(self, field.name) for field in fields(MirrorKeys)})


def _catalog_levels(impl: str) -> int:
    levels = get_connector(impl).capabilities.levels
    return int(len(levels) > 1 and levels[0] == "catalog")


class TreeSettings(Section):
    """The merged tree. ``priority`` orders the sources whose tables have the same logical path. ``skip`` is the number of leading
    levels of a source that are omitted (default: one if its connector calls the first level ``catalog``)."""

    priority: tuple[Name, ...] = ()
    skip: dict[Name, int] = Field(default_factory=dict)


class Settings(Section):
    """The complete configuration. ``path`` is its file."""

    path: Annotated[FilePath, LOADED]
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

    def resolve_index_url(self) -> str:
        """Return the URL of the index with its secrets. Raise ConfigError for a reference that has no value."""
        return resolve_reference(self.index.url, where=f"{self.path}: [index] url")

    @property
    def state_dir(self) -> FilePath:
        """Directory of staging, locks and the Java wrapper, in the directory of the configuration file."""
        return self.base / ".federator"

    @property
    def location_aliases(self) -> LocationAliases:
        """The location aliases for ``canonical_location``."""
        return LocationAliases.from_prefixes(self.locations.aliases)

    @property
    def mirror_rules(self) -> dict[str, MirrorRule]:
        return {name: mirror.rule(name) for name, mirror in self.mirrors.items()}

    @property
    def merged_tree_levels(self) -> dict[str, int]:
        """The sources in the order of the merged tree, each with the number of its omitted leading levels."""
        names = dict.fromkeys([*self.tree.priority, *sorted(self.sources)])
        return {name: self.tree.skip.get(name, _catalog_levels(self.sources[name].impl)) for name in names}

    def visible_mirrors(self, scopes: Scopes) -> tuple[str, ...]:
        """Return the visible mirrors: those whose two sources the scopes cover as a whole.

        The plans, guards and jobs of a mirror concern all its tables, so a mirror is shown completely or not at all.
        """
        covered = {name for name in self.sources if scopes.covers((name,))}
        return tuple(name for name, mirror in self.mirrors.items() if {mirror.origin, mirror.target} <= covered)

    def source(self, name: str) -> SourceSettings:
        """Return a configured source. Raise ConfigError, which lists the configured names, if there is none."""
        try:
            return self.sources[name]
        except KeyError:
            names = ", ".join(self.sources) or "none is configured"
            raise ConfigError(f"no source is called {name!r}", hint=f"sources: {names}") from None

    def root(self, name: str) -> RootSettings:
        """Return a configured storage root. Raise ConfigError, which lists the configured names, if there is none."""
        if name not in self.roots:
            raise ConfigError(f"no root is called {name!r}", hint=f"roots: {', '.join(self.roots) or 'none is configured'}")
        return self.roots[name]

    def root_spec(self, name: str) -> SourceSpec:
        """Return the source spec that opens a root's storage: its source, or a directory with the root's own options."""
        root = self.root(name)
        if root.source is not None:
            return self.source(root.source).spec
        storage = {f"storage.{key}": value for key, value in root.storage.items()}
        return SourceSpec(name, "dir", {"root": root.location, **storage})

    def mirror_rule(self, name: str) -> MirrorRule:
        """Return the rule of a configured mirror. Raise ConfigError, which lists the configured names, if there is none."""
        if name not in self.mirrors:
            raise ConfigError(
                f"no mirror is called {name!r}", hint=f"mirrors: {', '.join(self.mirrors) or 'none is configured'}"
            )
        return self.mirrors[name].rule(name)
