"""Access to locations outside a table that it refers to: a principal needs a visible table at or above each of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from federator.connector import FederatorError
from federator.lance.foreign_locations import ForeignLocations, Resolve, is_inside, is_part_of
from federator.lance.opening import opening_options
from federator.model import LocationAliases, TableRecord, canonical_location, local_path, parent_locations, parse_path_key
from federator.model.scopes import Scopes
from federator.registry import parse_connector_settings, read_root
from federator.settings import Settings, SourceSettings
from federator.store import Index, records
from federator.views import datasets

# Characters of all locations to compare with declarations: a table may have a thousand links, each with hundreds of directories above
# its target.
_MAX_CHARACTERS = 4_000_000


def may_read_locations(
    index: Index,
    settings: Settings,
    scopes: Scopes,
    source: SourceSettings,
    location: str | None,
    foreign: ForeignLocations,
    resolve: Resolve,
) -> bool:
    """Return whether a principal may read the locations outside of the table at ``location`` that opening it would read.

    A location of ``foreign.outside`` belongs to its nearest declarations, at it or above it. It is readable if the scopes cover one of
    these that has the location among its files, without a hidden source's root in between, and, in an object store, opens it with the
    options of ``source``.

    ``foreign.root``, the target of a symbolic link at the table itself, follows the same rule, or is undeclared: then no table outside
    the scopes may be at it, inside it or around it, and the scopes must cover the source with the nearest root around it.

    ``resolve`` resolves symbolic links. Return False, too, if the reference of a root cannot be resolved, and for more or deeper
    locations than can be compared in a short time.
    """
    aliases = settings.location_aliases
    own_location = canonical_location(location, aliases) if location else None
    link_target = _with_aliases([spelling for spelling in foreign.root if spelling != own_location], aliases)
    outside = [_with_aliases(spellings, aliases) for spellings in foreign.outside]
    if sum(len(text) * text.count("/") for spellings in (*outside, link_target) for text in spellings) > _MAX_CHARACTERS:
        return False
    *nearest_to_outside, nearest_to_link_target = _list_nearest_declarations(index, [*outside, link_target])
    try:
        roots, hidden_roots = _list_roots(settings, scopes, resolve)
    except FederatorError:
        return False

    def is_readable(spellings: Sequence[str], nearest: Sequence[TableRecord]) -> bool:
        return any(
            scopes.covers((table.source, *table.path))
            and _opens_alike(settings, source, table.source, spellings[0])
            and _covers_location(table, spellings, aliases, hidden_roots)
            for table in nearest
        )

    if not all(map(is_readable, outside, nearest_to_outside)):
        return False
    if not link_target or is_readable(link_target, nearest_to_link_target):
        return True
    if nearest_to_link_target or not _may_be_undeclared(link_target, settings, scopes, roots, hidden_roots):
        return False
    # That the table with the link is visible is no permission for its target: another principal may have made the link.
    locations = datasets.list_tables_that_may_overlap(index, link_target[0], aliases)
    hidden = sorted({canonical for object_id, canonical in locations.items() if not scopes.covers(parse_path_key(object_id))})
    return not any(
        is_inside(spelling, [location]) or is_inside(location, [spelling])
        for location in (*hidden, *resolve(hidden))
        for spelling in link_target
    )


def _with_aliases(spellings: Sequence[str], aliases: LocationAliases) -> list[str]:
    """Return the spellings, and those that the index has instead of them."""
    return list(dict.fromkeys([*spellings, *(canonical_location(spelling, aliases) for spelling in spellings)]))


def _list_nearest_declarations(index: Index, locations: Sequence[Sequence[str]]) -> list[list[TableRecord]]:
    """Return the declarations nearest to each location, at it or above, in any of its spellings. Empty if there are none."""
    # For each location: its spellings, then their parents, level by level upwards.
    levels_by_location = [_list_levels(spellings) for spellings in locations]
    candidates = {candidate for levels in levels_by_location for level in levels for candidate in level}
    with index.read() as connection:
        declared = records.list_declarations_at(connection, sorted(candidates))

    def find_nearest(levels: Sequence[Sequence[str]]) -> list[TableRecord]:
        for level in levels:
            tables = [table for candidate in level for table in declared.get(candidate, ())]
            if tables:
                return tables
        return []

    return list(map(find_nearest, levels_by_location))


def _list_levels(spellings: Sequence[str]) -> list[list[str]]:
    """Return the spellings of a location, then those of its parent, and so on to the bucket or root."""
    levels = zip_longest(*([spelling, *parent_locations(spelling)] for spelling in spellings))
    return [[candidate for candidate in level if candidate is not None] for level in levels]


def _covers_location(
    table: TableRecord, spellings: Sequence[str], aliases: LocationAliases, hidden_roots: Sequence[str]
) -> bool:
    """Return whether a location is that of the table or of one of its files, and no hidden root is between the two."""
    declared = canonical_location(str(table.location), aliases)
    for spelling in spellings:
        if any(is_inside(spelling, [root]) and is_inside(root, [declared]) for root in hidden_roots):
            return False
    return any(spelling == declared or is_part_of(spelling, declared) for spelling in spellings)


def _may_be_undeclared(
    spellings: Sequence[str], settings: Settings, scopes: Scopes, roots: Sequence[str], hidden_roots: Sequence[str]
) -> bool:
    """Return whether no undeclared table of a source outside the scopes can be at a location, in it or around it."""
    if all(scopes.covers((name,)) for name in settings.sources):
        return True
    if any(is_inside(hidden, [spelling]) for spelling in spellings for hidden in hidden_roots):
        return False
    hidden_around = [root for root in hidden_roots if any(is_inside(spelling, [root]) for spelling in spellings)]
    return any(
        is_inside(spelling, [root]) and not any(hidden != root and is_inside(hidden, [root]) for hidden in hidden_around)
        for spelling in spellings
        for root in roots
    )


def _list_roots(settings: Settings, scopes: Scopes, resolve: Resolve) -> tuple[list[str], list[str]]:
    """Return the canonical roots of the sources that the scopes cover as a whole, and those of the others, as configured and with
    links resolved. Raise ConfigError if one cannot be known.

    A source without a configured root has none here: its default, the working directory, may contain other files.
    """
    roots = {name: root for name, source in settings.sources.items() if (root := read_root(source.spec))}
    configured = list(map(canonical_location, roots.values()))
    visible: list[str] = []
    hidden: list[str] = []
    for name, *spellings in zip(roots, configured, resolve(configured), strict=True):
        (visible if scopes.covers((name,)) else hidden).extend(spellings)
    return _with_aliases(visible, settings.location_aliases), _with_aliases(hidden, settings.location_aliases)


def _opens_alike(settings: Settings, source: SourceSettings, other: str, location: str) -> bool:
    """Return whether two sources open a location with equal options. Paths are opened by this service itself."""
    if other == source.name or local_path(location) is not None:
        return True
    if other not in settings.sources:
        return False
    try:
        return _opening_options(source, location) == _opening_options(settings.sources[other], location)
    except FederatorError:
        return False


def _opening_options(source: SourceSettings, location: str) -> dict[str, str]:
    return opening_options(parse_connector_settings(source.spec), location)
