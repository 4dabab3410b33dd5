"""Facts of a plan: what the index and direct observations say of a mirror's candidates. The product and its proof collect them here.

The index and the catalogs are behind protocols. ``planner`` weighs the facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Protocol

from federator.connector import Capabilities, Catalog, CatalogError
from federator.model import NamespaceRecord, Path, parent, parse_key, path_key
from federator.planning.cells import Candidates, LedgerRow
from federator.planning.changes import Change
from federator.planning.guards import GuardFacts
from federator.planning.losses import Loss
from federator.planning.mapping import MirrorContext
from federator.planning.namespaces import MadeNamespace, without_tables
from federator.planning.planner import Facts, Look, ask
from federator.planning.rule import MirrorRule

# A rename of which only the first half was made is completed as it was meant for this long (seconds).
_RENAMES_SINCE = 30 * 86_400.0


class FactsIndex(Protocol):
    """What a plan reads from the index of its instance."""

    def paths_at(self, source: str, locations: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """A source's tables by canonical location."""
        ...

    def verified(self, locations: Sequence[str]) -> Mapping[str, str]:
        """Verification states by canonical location."""
        ...

    def namespaces(self, source: str) -> Collection[str]:
        """A source's namespaces."""
        ...

    def content(self, source: str, namespace: str) -> tuple[NamespaceRecord | None, int]:
        """The record of a namespace, and how many tables and namespaces are directly in it; one is enough."""
        ...

    def made_namespaces(self, rule: MirrorRule) -> Sequence[MadeNamespace]:
        """The namespaces that a mirror made at its target, by the ledger alone."""
        ...

    def destructive_since(self, mirror: str, since: float) -> Sequence[str]:
        """``journal_lines.removals`` of a mirror's lines since a time."""
        ...

    def dropped_since(self, mirror: str, since: float) -> int:
        """``journal_lines.count_dropped`` of a mirror's lines since a time."""
        ...

    def unfinished_renames(self, mirror: str, since: float) -> Sequence[Change]:
        """``journal_lines.unfinished_renames`` of a mirror's lines since a time."""
        ...

    def obstructed(self, mirror: str) -> Collection[str]:
        """Target paths where a declaration of a mirror met something else."""
        ...

    def unconfirmed(self, source: str) -> str | None:
        """Why a source's identity waits for a person."""
        ...

    def losses(self, rule: MirrorRule) -> Sequence[Loss]:
        """Losses of a mirror's sources that no plan was approved or applied with."""
        ...


class FactSources(Protocol):
    """Where the facts of one mirror's plan come from."""

    def read(self) -> AbstractContextManager[FactsIndex]:
        """The index at one moment."""
        ...

    def open_origin(self, namespaces: Collection[Path]) -> AbstractContextManager[Catalog]:
        """The origin, whose identity is accepted, also behind these namespaces. Raise CatalogError where it is not."""
        ...

    def open_target(self) -> AbstractContextManager[Catalog]: ...


def collect(
    context: MirrorContext, origin: Capabilities, entries: Sequence[LedgerRow], found: Candidates, sources: FactSources, *,
    now: float, origin_revision: int = 0, target_revision: int = 0,
) -> Facts:  # fmt: skip
    """Return what the plan needs to know of its candidates. ``entries`` are the mirror's tables in the ledger."""
    rule, questions = context.rule, ask(context, found)
    since = now - rule.guard_window
    targets = [entry.target_path for entry in entries]
    with sources.read() as index:
        deleted = index.destructive_since(rule.name, since)
        suspect = {*index.obstructed(rule.name), *targets}
        unconfirmed = [index.unconfirmed(name) for name in (rule.origin, rule.target)]
        known = Facts(
            declared=index.paths_at(rule.target, questions.locations),
            states=index.verified(questions.locations),
            namespaces=index.namespaces(rule.target),
            made=[_with_content(index, rule.target, each) for each in without_tables(index.made_namespaces(rule), targets)],
            halves=index.unfinished_renames(rule.name, now - _RENAMES_SINCE),
            now=now,
            unconfirmed=[text for text in unconfirmed if text is not None],
            losses=index.losses(rule),
            guards=GuardFacts(
                live=len(entries),
                live_by_namespace=_by_namespace(targets),
                there_by_origin=_by_namespace(entry.origin_path for entry in entries if entry.origin_there),
                deleted_in_window=len(deleted),
                deleted_by_namespace=_by_namespace(deleted),
                selected=found.selected,
                origin_filters_listings=origin.listing_filtered,
                dropped_in_window=index.dropped_since(rule.name, since),
            ),
            origin_revision=origin_revision,
            target_revision=target_revision,
        )
    taken = _find_foreign(sources, suspect.intersection(questions.targets))
    return replace(known, taken=taken, looks=_observe_origins(sources, questions.origins))


def _with_content(index: FactsIndex, target: str, made: MadeNamespace) -> MadeNamespace:
    record, inside = index.content(target, made.path)
    return replace(made, record=record, inside=inside)


def _find_foreign(sources: FactSources, paths: Collection[str]) -> dict[str, str]:
    """What is at these paths of the target and is no Lance table; a path that cannot be observed is left to apply."""
    found: dict[str, str] = {}
    if paths:
        with sources.open_target() as target:
            for key in sorted(paths):
                with suppress(CatalogError):
                    found[key] = target.observe(parse_key(key)).foreign or ""
    return found


def _observe_origins(sources: FactSources, origins: Sequence[str]) -> dict[str, Look]:
    if not origins:
        return {}
    try:
        with sources.open_origin({parent(parse_key(key)) for key in origins}) as origin:
            return {key: observe_origin(origin, key) for key in origins}
    except CatalogError as error:
        return {key: Look(error=error.message) for key in origins}


def observe_origin(origin: Catalog, key: str) -> Look:
    """A direct look at an origin that is to be gone."""
    try:
        seen = origin.observe(parse_key(key))
    except CatalogError as error:
        return Look(error=error.message)
    return Look() if seen.absent else Look(found=seen.foreign or "a direct look found it")


def _by_namespace(keys: Iterable[str]) -> Counter[str]:
    return Counter(path_key(parent(parse_key(key))) for key in keys)
