"""The facts of a plan, collected from the index and from direct observations. The product and its proof collect them here.

The index and the catalogs are behind protocols. ``planner`` evaluates the facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Protocol

from federator.connector import Capabilities, Catalog, CatalogError, Unsupported
from federator.model import NamespaceRecord, Path, TableRecord, parent_key, parent_path, parse_path_key
from federator.planning.cells import Candidates
from federator.planning.changes import Action, Change
from federator.planning.guards import GuardFacts
from federator.planning.journal_lines import (
    JournalLine,
    Question,
    count_dropped,
    list_obstructed_paths,
    list_refused_recreates,
    list_removals,
    list_unfinished_renames,
)
from federator.planning.ledger import OwnedObject
from federator.planning.losses import Loss, list_unapproved
from federator.planning.mapping import MirrorContext
from federator.planning.namespaces import OwnedNamespace, list_owned_namespaces, without_tables
from federator.planning.planner import OriginObservation, PlanFacts, required_facts
from federator.planning.reasons import ApplyCode

# For this long (seconds), a rename without its declaration is completed.
_PENDING_RENAME_SECONDS = 30 * 86_400.0


class FactsIndex(Protocol):
    """The reads of a plan from the index of its instance."""

    def paths_at(self, source: str, locations: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return a source's tables by canonical location."""
        ...

    def verified(self, locations: Sequence[str]) -> Mapping[str, str]:
        """Return verification states by canonical location."""
        ...

    def namespaces(self, source: str) -> Collection[str]:
        """Return a source's namespaces."""
        ...

    def content(self, source: str, namespace: str) -> tuple[NamespaceRecord | None, int]:
        """Return a namespace's record, and the number of tables and namespaces directly in it. The number may be capped at one."""
        ...

    def namespace_entries(self, mirror: str) -> Sequence[OwnedObject]:
        """Return a mirror's namespaces in the ledger, in all its targets."""
        ...

    def ledger_sides(self, mirror: str) -> Collection[tuple[str, str]]:
        """Return the sources of a mirror's ledger, each with its side, ``origin`` or ``target``."""
        ...

    def owned_tables(self, mirror: str, target: str, paths: Sequence[str]) -> Collection[str]:
        """Return those of the target paths that are tables in a mirror's ledger."""
        ...

    def lines(self, mirror: str, question: Question, since: float, /) -> Iterable[JournalLine]:
        """Return a mirror's journal lines since a time, in the journal's order: at least those that a question reads."""
        ...

    def table(self, source: str, path: str) -> TableRecord | None:
        """Return a source's table."""
        ...

    def unconfirmed(self, source: str) -> str | None:
        """Return why a source's identity needs a confirmation."""
        ...

    def accepted_revisions(self, mirror: str) -> Mapping[tuple[str, str], int]:
        """Return the revisions that a mirror's last approved or applied plan was made from (``losses.known_revisions``)."""
        ...

    def losses(self, source: str, revision: int, /) -> Iterable[Loss]:
        """Return a source's losses after a revision."""
        ...


class FactSources(Protocol):
    """The index and the catalogs of one mirror's plan."""

    def read(self) -> AbstractContextManager[FactsIndex]:
        """Open the index at one point in time."""
        ...

    def open_origin(self, namespaces: Collection[Path]) -> AbstractContextManager[Catalog]:
        """Open the origin after its identity was accepted, also behind these namespaces. Raise CatalogError if it was not."""
        ...

    def open_target(self) -> AbstractContextManager[Catalog]: ...


def collect_facts(
    context: MirrorContext, origin: Capabilities, candidates: Candidates, sources: FactSources, *,
    now: float, origin_revision: int = 0, target_revision: int = 0,
) -> PlanFacts:  # fmt: skip
    """Return the facts that the plan needs of its candidates."""
    rule, request = context.rule, required_facts(context, candidates)
    since = now - rule.guard_window
    counts = candidates.ledger
    with sources.read() as index:
        deleted = list_removals(index.lines(rule.name, Question.REMOVALS, since), index.table)
        suspects = {
            *set(list_obstructed_paths(index.lines(rule.name, Question.OBSTRUCTED, 0.0))).intersection(request.targets),
            *index.owned_tables(rule.name, rule.target, request.targets),
        }
        owned = without_tables(
            list_owned_namespaces(rule.target, index.namespace_entries(rule.name)), counts.by_target_namespace
        )
        recreates = list_refused_recreates(index.lines(rule.name, Question.RECREATES, since))
        unconfirmed = {name: index.unconfirmed(name) for name in (rule.origin, rule.target)}
        facts = PlanFacts(
            paths_by_location=index.paths_at(rule.target, request.locations),
            verification_states=index.verified(request.locations),
            namespaces=index.namespaces(rule.target),
            owned_namespaces=[_with_child_count(index, rule.target, namespace) for namespace in owned],
            pending_renames=list_unfinished_renames(index.lines(rule.name, Question.RENAMES, now - _PENDING_RENAME_SECONDS)),
            now=now,
            unconfirmed={name: text for name, text in unconfirmed.items() if text is not None},
            losses=list_unapproved(rule, index.accepted_revisions(rule.name), index.ledger_sides(rule.name), index.losses),
            guards=GuardFacts(
                live_tables=counts.by_target_namespace.total(),
                live_by_namespace=counts.by_target_namespace,
                existing_by_origin_namespace=counts.existing_by_origin_namespace,
                deleted_in_window=len(deleted),
                deleted_by_namespace=_count_by_namespace(deleted),
                selected_count=candidates.selected_count,
                origin_filters_listings=origin.listing_filtered,
                dropped_in_window=count_dropped(index.lines(rule.name, Question.DROPPED, since)),
            ),
            origin_revision=origin_revision,
            target_revision=target_revision,
        )
    foreign_targets = _observe_foreign_targets(sources, suspects)
    return replace(
        facts,
        foreign_targets=foreign_targets,
        origin_observations=_observe_origins(sources, request.origins),
        refused_recreates=_refused_recreates(sources, recreates, candidates.changes),
    )


def _with_child_count(index: FactsIndex, target: str, namespace: OwnedNamespace) -> OwnedNamespace:
    record, child_count = index.content(target, namespace.path)
    return replace(namespace, record=record, child_count=child_count)


def _observe_foreign_targets(sources: FactSources, paths: Collection[str]) -> dict[str, str]:
    """Return descriptions of foreign objects at these target paths. A path that cannot be observed is left to apply."""
    descriptions: dict[str, str] = {}
    if paths:
        with sources.open_target() as target:
            for key in sorted(paths):
                with suppress(CatalogError):
                    descriptions[key] = target.observe(parse_path_key(key)).foreign or ""
    return descriptions


def _refused_recreates(sources: FactSources, refused: Mapping[str, JournalLine], changes: Sequence[Change]) -> dict[str, str]:
    """Return by target path why a recreate would be refused again.

    The same declaration was refused and the old one restored, or the target still shows that it could not be restored.
    """
    repeated = [
        (change, refused[change.target_path])
        for change in changes
        if change.action is Action.RECREATE_TABLE and change.target_path in refused
    ]
    reasons = {
        change.target_path: "the catalog refused the same declaration, and the old one was restored"
        for change, line in repeated
        if line.code == ApplyCode.RESTORED and _declares_the_same(change, line.change)
    }
    observed = [change.target_path for change, line in repeated if line.code == ApplyCode.NOT_RESTORABLE]
    if observed:
        with sources.open_target() as target:
            for key in observed:
                if loss := _find_recreate_loss(target, parse_path_key(key)):
                    reasons[key] = loss
    return reasons


def _declares_the_same(change: Change, earlier: Change) -> bool:
    one, other = change.after, earlier.after
    if one is None or other is None:
        return False
    same_content = (one.properties, one.doc, one.schema) == (other.properties, other.doc, other.schema)
    return one.canonical == other.canonical and same_content


def _find_recreate_loss(target: Catalog, path: Path) -> str | None:
    """Return what a recreate would lose. None if it would lose nothing, or if that is not known: apply looks again."""
    try:
        return target.describe_recreate_loss(target.read_native(path))
    except Unsupported as error:
        return error.message
    except CatalogError:
        return None


def _observe_origins(sources: FactSources, origins: Sequence[str]) -> dict[str, OriginObservation]:
    if not origins:
        return {}
    try:
        with sources.open_origin({parent_path(parse_path_key(key)) for key in origins}) as origin:
            return {key: observe_origin(origin, key) for key in origins}
    except CatalogError as error:
        return {key: OriginObservation(error=error.message) for key in origins}


def observe_origin(origin: Catalog, key: str) -> OriginObservation:
    """Observe an origin that should be absent."""
    try:
        observation = origin.observe(parse_path_key(key))
    except CatalogError as error:
        return OriginObservation(error=error.message)
    return (
        OriginObservation()
        if observation.is_absent
        else OriginObservation(existing=observation.foreign or "it was observed directly")
    )


def _count_by_namespace(keys: Iterable[str]) -> Counter[str]:
    return Counter(map(parent_key, keys))
