"""MirrorRule: one mirror's selection, name mapping and policies, as its configuration states them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

from federator.model import digest_of

Delete = Literal["never", "owned"]
OnConflict = Literal["report", "adopt_if_same_location", "source_priority"]
OnMissing = Literal["recreate", "report"]
OnDrift = Literal["fix", "report"]
Approval = Literal["guarded", "required"]
WindowScope = Literal["destructive", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Filters on what a table says of itself. Each entry is a pattern (``planning.selection.matches``); empty filters let everything
    through. ``properties`` are pairs of key and pattern, all of which must hold."""

    owner: tuple[str, ...] = ()
    location: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Replace:
    """A regular expression and what takes its place (``\\1`` is a group) in one level's names, or in the table's."""

    pattern: str
    text: str
    level: str = "table"


@dataclass(frozen=True, slots=True)
class Relocate:
    """A location's beginning at the origin, and what it is at the target."""

    origin: str
    target: str


@dataclass(frozen=True, kw_only=True)
class MirrorRule:
    """A mirror: what of ``origin`` appears where in ``target``, and what may be done about differences.

    ``include`` and ``exclude`` are patterns over a table's path in text form (``hive$sales$*``; ``*`` also spans ``$``; ``re:`` begins
    a regular expression). ``namespace`` is a template over the origin's level names (``{database}``; levels are joined by ``$``); None
    keeps the origin's levels. ``min_miss_interval``, ``max_origin_age`` and ``guard_window`` are
    seconds. docs/mirroring.md explains every key.
    """

    name: str
    origin: str
    target: str
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    where: Where = Where()
    only_valid: bool = False
    namespace: str | None = None
    table: str = "{table}"
    prefix: str = ""
    suffix: str = ""
    replace: tuple[Replace, ...] = ()
    location: tuple[Relocate, ...] = ()
    allow_properties: tuple[str, ...] = ("*",)
    deny_properties: tuple[str, ...] = ()
    doc: bool = True
    delete: Delete = "owned"
    on_conflict: OnConflict = "report"
    source_priority: tuple[str, ...] = ()
    on_missing: OnMissing = "report"
    on_drift: OnDrift = "fix"
    update_by_recreate: bool = False
    misses_before_delete: int = 2
    min_miss_interval: float = 600.0
    max_origin_age: float = 2.0
    max_delete_percent: float = 20.0
    max_changes: int = 10_000
    max_dropped_namespaces: int = 5
    guard_window: float = 86_400.0
    approval: Approval = "guarded"
    windows: tuple[str, ...] = ()
    window_scope: WindowScope = "destructive"
    timezone: str = "UTC"
    transitive: bool = False
    declare_missing: bool = False
    prune_unselected: bool = False

    @cached_property
    def digest(self) -> str:
        """Binds a plan and the ledger to what the mirror was configured to do."""
        return digest_of(asdict(self))

    @cached_property
    def mapping_digest(self) -> str:
        """Binds a settled declaration to how it was selected, mapped and built; thresholds do not count."""
        return digest_of({key: value for key, value in asdict(self).items() if key in _MAPPING})


_MAPPING = frozenset(
    {
        "origin", "target", "include", "exclude", "where", "namespace", "table", "prefix", "suffix", "replace", "location",
        "allow_properties", "deny_properties", "doc", "transitive",
    }
)  # fmt: skip
