"""Capabilities of a catalog as data, so that no code depends on its class."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from federator.model import Path, relative_location


@dataclass(frozen=True, slots=True)
class NameRules:
    """The rules for names in a catalog.

    ``pattern`` must match the complete name. ``folds_case``: the catalog stores names in lower case, so ``Orders`` and ``orders`` are
    one object; desired names are folded before they are compared. ``refusals`` are patterns of complete names that some servers
    refuse although ``pattern`` allows them, the mildest first. ``restricted_by`` learns from refused names which of them apply.
    """

    pattern: str = r"[^/\x00]+"
    max_length: int = 255
    folds_case: bool = False
    refusals: tuple[str, ...] = ()

    def restricted_by(self, refused_names: Collection[str]) -> NameRules:
        """Return the rules of a server that refused these names.

        Each name excludes all names of the first pattern of ``refusals`` that it matches; if it matches none, only itself.
        """
        if not refused_names:
            return self
        excluded = {
            next((pattern for pattern in self.refusals if re.fullmatch(pattern, name)), re.escape(name))
            for name in refused_names
        }
        return replace(self, pattern=f"(?!(?:{'|'.join(sorted(excluded))})\\Z)(?:{self.pattern})")

    def canonicalize(self, name: str) -> str:
        return name.lower() if self.folds_case else name

    def allows(self, name: str) -> bool:
        return 0 < len(name) <= self.max_length and re.fullmatch(self.pattern, name) is not None


@dataclass(frozen=True, slots=True)
class LocationRules:
    """The rules for locations of tables in a catalog.

    ``pattern`` must match the complete location of a new table; None accepts any. ``exclusive_in`` names the server in which each
    location belongs to one table; None if several tables may have one. Catalogs of the same server have the same name.
    ``directory`` is a location: tables are declared only below it, and a table ``x`` without namespace only as its subdirectory
    ``x.lance`` or ``x``. None if tables may be anywhere. ``obstacle`` is why the server accepts no location at all.
    """

    pattern: str | None = None
    exclusive_in: str | None = None
    directory: str | None = None
    obstacle: str | None = None

    def allows(self, location: str) -> bool:
        return self.pattern is None or re.fullmatch(self.pattern, location) is not None

    def find_obstacle(self, path: Path, location: str) -> str | None:
        """Return why no table with this path and location can be declared, and what to do. None if it can."""
        if self.obstacle is not None:
            return self.obstacle
        if not self.allows(location):
            return f"the target does not accept the characters of the location {location!r}"
        if self.directory is None:
            return None
        relative = relative_location(self.directory, location)
        if relative is None:
            return (
                f"the target declares only tables below {self.directory}, not {location}: choose a target that stores locations, "
                "or map the location to a copy below that directory"
            )
        if len(path) == 1 and relative not in (path[0], f"{path[0]}.lance"):
            return (
                f"without a namespace, the target has {path[0]!r} only at {self.directory}/{path[0]}.lance, not at {location}: map the "
                "table to a namespace, or to that name"
            )
        return None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a catalog. Depths count the levels above a table: Hive 2 has one, Hive 3 two, a directory none."""

    min_depth: int
    max_depth: int
    #: names of the levels above a table, for mapping templates: ``("catalog", "database")``
    levels: tuple[str, ...] = ()
    names: NameRules = NameRules()
    #: the rules for names of namespaces, if they differ; ``folds_case`` of ``names`` applies to both
    namespace_names: NameRules | None = None
    #: namespaces can be created and dropped at these depths (of the namespace itself)
    creates_namespaces_at: frozenset[int] = frozenset()
    #: the properties of namespaces of these depths can be changed in place
    alters_namespaces_at: frozenset[int] = frozenset()
    #: tables can be declared and deregistered
    writes_tables: bool = True
    #: a table's properties can be changed in place
    can_alter: bool = True
    #: a declaration stores the columns of the table (``TableRecord.schema``); mirrors then declare those of the origin
    keeps_columns: bool = False
    #: properties are returned as they were set, so that they can hold the ownership marker
    keeps_properties: bool = True
    #: listings omit objects that the catalog credentials may not see, so an empty listing may be caused by a revoked grant
    listing_filtered: bool = False
    #: declaring a table creates its location's directory
    makes_location: bool = False
    #: a namespace can be dropped with the declarations inside it (DropNamespace with CASCADE)
    cascade: bool = True
    #: the catalog drops a namespace with all its objects, also invisible ones; only the federator checks first that it is empty
    drop_cascades: bool = False
    #: the catalog has a change feed
    change_feed: bool = False
    #: the catalog knows cheaply which of its tables have no data yet (``Catalog.is_only_declared``)
    reports_unwritten: bool = False
    #: the level that repeats in deeper trees; None: the last one
    nested: str | None = None
    #: a table's doc is returned as it was set, so that it can hold the ownership marker
    keeps_comment: bool = True
    #: namespaces of these depths cannot have properties: their ownership marker is in the doc
    plain_namespaces_at: frozenset[int] = frozenset()
    #: the maximum length of a table's property names and values; None: no practical limit
    property_key_length: int | None = None
    property_value_length: int | None = None
    locations: LocationRules = LocationRules()
    #: the server that carries out several concurrent declarations of one name; None if it refuses all but one. Catalogs of the same
    #: server have the same name here, and the same paths. The federator makes its declarations there one after the other.
    declarations_race_in: str | None = None
    #: the catalog issues temporary credentials for the files of one table (``Catalog.issue_credentials``)
    vends_credentials: bool = False

    def restricted_by(self, refused_namespaces: Collection[str], refused_tables: Collection[str]) -> Capabilities:
        """Return the capabilities of a server that refused these names of namespaces and tables."""
        if not (refused_namespaces or refused_tables):
            return self
        namespace_names = self.name_rules(namespace=True).restricted_by(refused_namespaces)
        return replace(self, names=self.names.restricted_by(refused_tables), namespace_names=namespace_names)

    def name_rules(self, *, namespace: bool) -> NameRules:
        """Return the rules for names of namespaces, or of tables."""
        return (self.namespace_names or self.names) if namespace else self.names
