"""What a crawl is to read of a source: everything, or what the source's feed of changes and the index's own gaps ask for.

The cursor is taken before anything is read. Where the feed cannot tell, for whatever reason, everything is read, and it is said why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from federator.connector import Catalog, Changes, FederatorError, IdentityChanged, Unsupported
from federator.index import feeds, records
from federator.model import Coverage, Path
from federator.planning.identity import IdentityReading
from federator.planning.rereading import carried, full_because, to_read
from federator.registry import connector
from federator.sync.work import Work


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read (``namespaces``; None: everything) and what to know of the rest without reading it (``carried``).

    ``cursor`` is where the next crawl goes on; None: there is no place. ``full_because`` says why everything is read, where a feed of
    changes might have told; None where it is not worth a word. ``went_back`` is set where the feed's past is not the one that the
    cursor saw. ``identities`` are those of the connections that read the feed.
    """

    cursor: str | None = None
    namespaces: Collection[Path] | None = None
    carried: Mapping[str, Coverage] = field(default_factory=dict)
    full_because: str | None = None
    went_back: bool = False
    identities: tuple[IdentityReading, ...] = ()


def follow(work: Work, name: str, now: float, *, full: bool = False) -> Reading:
    """Asks the feed of a source; runs under the source's lease."""
    from federator.pipeline.reading import answer

    source = work.settings.source(name)
    if not source.incremental or not connector(source.impl).capabilities.change_feed:
        return Reading()
    with work.index.read() as connection:
        before = feeds.followed(connection, name)
    because = full_because(before, config=source.digest, every=source.full_every, now=now, asked=full)
    try:
        if because is not None or before.cursor is None:
            identity, cursor = answer(source.spec, lambda catalog: (_read(catalog), catalog.change_cursor()), source.deadline)
            return Reading(cursor, full_because=because or None, identities=(identity,))
        cursor = before.cursor
        identity, changes = answer(
            source.spec, lambda catalog: (_read(catalog), catalog.changes_since(cursor)), source.deadline
        )
    except Unsupported:
        # The server keeps no feed: then this is how each crawl goes.
        return Reading()
    except IdentityChanged as error:
        # The feed's connections met two catalogs: then the crawl has, too.
        return Reading(identities=(IdentityReading(error=str(error)),))
    except FederatorError as error:
        return Reading(full_because=f"its feed of changes could not be read: {error.message}")
    return replace(_reading(work, name, changes), went_back=changes.went_back, identities=(identity,))


def _read(catalog: Catalog) -> IdentityReading:
    return IdentityReading(catalog.identity())


def _reading(work: Work, name: str, changes: Changes) -> Reading:
    if changes.full_crawl is not None:
        return Reading(changes.cursor, full_because=changes.full_crawl)
    rules = [rule for rule in work.settings.rules.values() if rule.origin == name]
    with work.index.read() as connection:
        revision = records.published(connection, name)
        known = feeds.known(connection, name, revision, rules)
    namespaces = to_read(changes, known)
    return Reading(changes.cursor, namespaces, carried(known.coverage, namespaces, revision))
