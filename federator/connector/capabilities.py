"""What a catalog can and cannot do, as data, so that nobody asks for its class."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NameRules:
    """What a catalog accepts as a name.

    ``pattern`` must match the whole name. ``folds_case``: the catalog stores names in lower case, so that ``Orders`` and
    ``orders`` are one object there; desired names are folded before the diff.
    """

    pattern: str = r"[^/\x00]+"
    max_length: int = 255
    folds_case: bool = False

    def canonical(self, name: str) -> str:
        return name.lower() if self.folds_case else name

    def allows(self, name: str) -> bool:
        return 0 < len(name) <= self.max_length and re.fullmatch(self.pattern, name) is not None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One catalog's abilities. Depths count the levels above a table: Hive 2 has one, Hive 3 two, a directory none."""

    min_depth: int
    max_depth: int
    #: names of the levels above a table, for mapping templates: ``("catalog", "database")``
    levels: tuple[str, ...] = ()
    names: NameRules = NameRules()
    #: what it accepts as the name of a namespace, where those rules differ; the case of names is one for both
    namespace_names: NameRules | None = None
    #: CreateNamespace and DropNamespace work at these depths (of the namespace itself)
    creates_namespaces_at: frozenset[int] = frozenset()
    #: the properties of namespaces of these depths can be changed in place
    alters_namespaces_at: frozenset[int] = frozenset()
    #: tables can be declared and deregistered
    writes_tables: bool = True
    #: a table's properties can be changed in place
    can_alter: bool = True
    #: properties that we set come back as they are, so that the ownership mark can live there
    keeps_properties: bool = True
    #: the catalog itself compares before it writes (Glue VersionId, Hive expected parameters)
    conditional_write: bool = False
    #: listings leave out what the principal may not see, so that an emptied namespace may be a revoked grant
    listing_filtered: bool = False
    #: declaring a table creates its location's directory
    makes_location: bool = False
    #: a namespace can be dropped with the declarations inside it (DropNamespace with CASCADE)
    cascade: bool = True
    #: the catalog drops a namespace with all that is in it, also what the principal may not see: nothing but our own look is before it
    drop_cascades: bool = False
    #: the catalog has a feed of changes
    change_feed: bool = False
    #: the level that repeats in deeper trees; None: the last one
    nested: str | None = None
    #: a table's doc comes back as it was set, so that the ownership mark can live there
    keeps_comment: bool = True
    #: namespaces of these depths refuse properties: their mark goes into the doc
    plain_namespaces_at: frozenset[int] = frozenset()
    #: the longest property name and value that a table may have; None: no limit that anybody meets
    property_key_length: int | None = None
    property_value_length: int | None = None

    def rules(self, *, namespace: bool) -> NameRules:
        """The rules for the names of namespaces, or of tables."""
        return (self.namespace_names or self.names) if namespace else self.names
