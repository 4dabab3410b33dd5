"""The configuration of one mirror: its selection, its name mapping and its policies.

The keys of ``[mirrors.NAME]`` are declared here only: type, allowed values, default and description. ``settings`` reads the file with
them, and docs/reference/settings.md is generated from them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from federator.model import digest_of
from federator.planning.key_types import Duration, LocationText, Pattern, PatternTable, Regex, TimeZone, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter:
    """Filters on a table's own fields. A table must pass all of them, and an empty filter accepts every table."""

    owner: tuple[Pattern, ...] = ()
    """Patterns of the owner; one must match."""
    location: tuple[Pattern, ...] = ()
    """Patterns of the location; one must match."""
    properties: PatternTable = ()
    """A pattern for each property that is checked: `{team = "sales*"}`. `!pattern` accepts values that do not match the pattern, and
    missing values."""


@dataclass(frozen=True, slots=True)
class NameReplacement:
    """A regular expression and its replacement, for the names of one level or of the tables."""

    pattern: Annotated[Regex, Field(alias="from")]
    """The regular expression. Every match in a name is replaced."""
    text: Annotated[str, Field(alias="to")]
    """The replacement. `\\1` is the first group of the expression."""
    level: Annotated[str, Field(alias="in")] = "table"
    """The level of the origin whose names are changed, such as `database`, or `table`."""


@dataclass(frozen=True, slots=True)
class LocationReplacement:
    """A location prefix and its replacement. The first matching entry is applied. A prefix ends at a slash."""

    origin: Annotated[LocationText, Field(alias="from")]
    """The prefix at the origin, such as `s3a://`."""
    target: Annotated[LocationText, Field(alias="to")]
    """The prefix at the target. Each entry needs a different one, and both end in `/` or neither does."""


@dataclass(frozen=True, kw_only=True)
class MirrorKeys:
    """The keys of a mirror that planning and apply read. Durations are in seconds."""

    origin: Annotated[str, Field(alias="from")]
    """The source that the mirror reads."""
    target: Annotated[str, Field(alias="to")]
    """The source that it declares tables in."""
    include: tuple[Pattern, ...] = ("*",)
    """Patterns over a table's path (`hive$sales$orders`); at least one must match."""
    exclude: tuple[Pattern, ...] = ()
    """Patterns over a table's path; none may match."""
    where: TableFilter = TableFilter()
    """Filters on a table's own fields. See [Selection](../explanation/mirroring.md#selection)."""
    only_valid: bool = False
    """Declare or adopt a table only if its dataset was verified as `valid`. Owned declarations stay and are updated."""
    namespace: str | None = None
    """Template of the levels above the table, joined by `$`. Default: the origin's levels. See
    [Names](../explanation/mirroring.md#names)."""
    table: str = "{table}"
    """Template of the table's name."""
    prefix: str = ""
    """Text before the table's name."""
    suffix: str = ""
    """Text after the table's name."""
    replace: tuple[NameReplacement, ...] = ()
    """Replacements in names, applied before the templates: `{from = "-", to = "_", in = "database"}`."""
    location: tuple[LocationReplacement, ...] = ()
    """Location prefixes to replace: `{from = "s3a://", to = "s3://"}`."""
    allow_properties: tuple[Pattern, ...] = ("*",)
    """Patterns of properties to copy."""
    deny_properties: tuple[Pattern, ...] = ()
    """Patterns of properties not to copy. Secrets, endpoints and statistics are never copied."""
    doc: bool = True
    """`true`: the comment is kept equal to the origin's; `false`: it is set once."""
    delete: Literal["never", "owned"] = "owned"
    """`"owned"`: deregister owned tables whose origin is proven absent; `"never"`: deregister nothing."""
    on_conflict: Literal["report", "adopt_if_same_location", "source_priority"] = "report"
    """`"adopt_if_same_location"`: adopt an unmarked table that has the same name and location; `"source_priority"`: see
    [Several mirrors into one target](../explanation/mirroring.md#several-mirrors-into-one-target)."""
    source_priority: tuple[str, ...] = ()
    """Sources, best first. It needs `on_conflict = "source_priority"`, and must be the same in every mirror into the target."""
    on_missing: Literal["recreate", "report"] = "report"
    """For an owned table that another process removed. `"recreate"`: declare it again."""
    on_drift: Literal["fix", "report"] = "fix"
    """For an owned table that was edited at the target. `"fix"`: restore the desired state; `"report"`: only show the difference."""
    update_by_recreate: bool = False
    """Recreate a table (deregister and declare it again) if the catalog cannot alter it."""
    misses_before_delete: Annotated[int, Field(ge=1, le=16)] = 2
    """Number of complete listings without the origin before it counts as absent."""
    min_miss_interval: Duration = 600.0
    """Minimum time between two misses that count."""
    max_origin_age: Duration = 2.0
    """Maximum age of the last observation of an origin when the call that depends on it starts."""
    max_delete_percent: Annotated[float, Field(ge=0, le=100)] = 20.0
    """Hold a plan that removes or moves a larger share of the mirror's tables."""
    max_changes: Annotated[int, Field(ge=0)] = 10_000
    """Hold a plan that has more changes."""
    max_dropped_namespaces: Annotated[int, Field(ge=0)] = 5
    """Hold a plan that drops more namespaces, counted over `guard_window`."""
    guard_window: Duration = 86_400.0
    """Rolling time over which removals, moves and dropped namespaces are counted."""
    approval: Literal["guarded", "required"] = "guarded"
    """`"required"`: every plan waits for `federator plans approve`."""
    windows: tuple[Window, ...] = ()
    """Weekly change windows: `["Mon-Fri 20:00-06:00", "Sat,Sun 00:00-24:00"]`. Without any, changes are made at all times."""
    window_scope: Literal["destructive", "all"] = "destructive"
    """Changes that need an open change window. `"destructive"`: removals, moves, recreations and renames; `"all"`: all changes."""
    timezone: TimeZone = "UTC"
    """Time zone of `windows`."""
    transitive: bool = False
    """Forward tables that another mirror declared at the origin."""
    declare_missing: bool = False
    """For a target that creates the location (`dir`): also declare locations that do not exist."""
    prune_unselected: bool = False
    """Also deregister owned tables that the mirror no longer selects."""


@dataclass(frozen=True, kw_only=True)
class MirrorRule(MirrorKeys):
    """A mirror: which objects of ``origin`` are declared where in ``target``, and which differences may be resolved."""

    name: str

    @cached_property
    def digest(self) -> str:
        """Binds a plan and the ledger to the mirror's configuration."""
        return digest_of(asdict(self))

    @cached_property
    def mapping_digest(self) -> str:
        """Binds an unchanged declaration to the selection, the mapping and the content that it was built with. Thresholds are
        excluded."""
        return digest_of({key: value for key, value in asdict(self).items() if key in _MAPPING})


_MAPPING = frozenset(
    {
        "origin", "target", "include", "exclude", "where", "namespace", "table", "prefix", "suffix", "replace", "location",
        "allow_properties", "deny_properties", "doc", "transitive",
    }
)  # fmt: skip
