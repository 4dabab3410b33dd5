"""Access to locations outside a table: a principal reads them only if it may see a table that covers them."""

from __future__ import annotations

from collections.abc import Iterable

from federator.data.foreign_locations import ForeignLocations, Resolve, is_inside
from federator.model import LocationAliases, canonical_location, parent_locations, parse_path_key
from federator.model.scopes import EVERYTHING, Scopes
from federator.store import Index, records
from federator.views import datasets


def may_read_locations(
    index: Index, aliases: LocationAliases, scopes: Scopes, location: str | None, foreign: ForeignLocations, resolve: Resolve
) -> bool:
    """Return whether a principal may read what the table at ``location`` refers to outside of its own location.

    Each location must be declared, or be below a declared one, as a table that the scopes cover. The target of a table that is reached
    through a symbolic link may also be undeclared, but then no hidden table may lead there through links of its own.
    """
    if not all(_is_declared(index, spellings, scopes) for spellings in foreign.outside):
        return False
    own = canonical_location(location, aliases) if location else None
    root = [spelling for spelling in foreign.root if spelling != own]
    if not root or _is_declared(index, root, scopes):
        return True
    if _is_declared(index, root, EVERYTHING):
        return False
    # A visible table does not vouch for the target here: its own link may be somebody else's.
    declared = datasets.list_tables_that_may_overlap(index, root[0], aliases)
    hidden = sorted({written for name, written in declared.items() if not scopes.covers(parse_path_key(name))})
    return not any(is_inside(root[0], [resolved]) for resolved in resolve(hidden))


def _is_declared(index: Index, spellings: Iterable[str], scopes: Scopes) -> bool:
    """Return whether the scopes cover a table at one of the spellings of a location, or above it."""
    covering = [above for location in spellings for above in (location, *parent_locations(location))]
    with index.read() as connection:
        return bool(records.list_declarations_at(connection, covering, scopes))
