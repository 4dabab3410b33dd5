"""Namespaces at the target: create those that declarations need, drop owned ones that are proven empty."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from federator.connector import Capabilities
from federator.model import NamespaceRecord, iter_ancestors, parent_key, parent_path, parse_path_key, path_key
from federator.planning.changes import ABSENT, ANY, Action, Change, Decision, Refusal
from federator.planning.decision import CrawlEvidence
from federator.planning.evidence import is_covered
from federator.planning.ledger import OwnedObject
from federator.planning.mapping import MirrorContext
from federator.planning.ownership import OwnershipMarker, find_bound_marker
from federator.planning.reasons import Reason

_NOT_CREATABLE = "does not exist and cannot be created at the target"


@dataclass(frozen=True, slots=True)
class OwnedNamespace:
    """A namespace that the mirror created, according to the ledger.

    ``record`` is the namespace in the index (None: absent). ``child_count`` is the number of namespaces and tables directly in it,
    in the index. ``ledger_count`` is the number of the mirror's ledger entries anywhere below it.
    """

    path: str
    origin_path: str
    native_id: str | None = None
    record: NamespaceRecord | None = None
    child_count: int = 0
    ledger_count: int = 0


def list_owned_namespaces(target: str, entries: Iterable[OwnedObject]) -> list[OwnedNamespace]:
    """Return a mirror's namespaces in its current target. ``entries`` are its namespaces in the ledger. Those in an earlier target stay
    there."""
    current = (entry for entry in entries if entry.target_source == target)
    return [OwnedNamespace(entry.target_path, entry.origin_path, entry.native_id) for entry in current]


def add_missing_namespaces(
    context: MirrorContext, decisions: Iterable[Decision], existing: Collection[str]
) -> tuple[list[Change], list[Refusal]]:
    """Add the creation of missing namespaces. A declaration whose namespace cannot be created becomes a refusal.

    ``existing`` are the path keys of the target's namespaces.
    """
    changes: list[Change] = []
    refusals: list[Refusal] = []
    missing: dict[str, Change] = {}
    for decision in decisions:
        if isinstance(decision, Refusal):
            refusals.append(decision)
            continue
        needed = _missing_ancestors(decision, existing) if decision.action is Action.DECLARE_TABLE else []
        impossible = [key for key in needed if len(parse_path_key(key)) not in context.target.creates_namespaces_at]
        if impossible:
            detail = f"{impossible[0]} {_NOT_CREATABLE}"
            paths = (decision.target_source, decision.target_path, decision.origin_path)
            refusals.append(Refusal(Reason.NAMESPACE_MISSING, *paths, detail))
            continue
        for key in needed:
            missing.setdefault(key, _create_change(context, decision, key))
        changes.append(decision)
    return [*missing.values(), *changes], refusals


def drop_empty_namespaces(
    context: MirrorContext, evidence: CrawlEvidence, owned: Sequence[OwnedNamespace], changes: Iterable[Change]
) -> tuple[list[Change], list[Refusal]]:
    """Return the drops of owned namespaces that are proven empty, and the refusals of the others that look empty.

    A namespace must have no listed objects, no ledger entries, and no declaration in this plan. The target's listing may omit
    foreign objects: only empty namespaces are dropped, so the catalog itself refuses if such objects exist.
    """
    needed = {path_key(above) for change in changes for above in iter_ancestors(parse_path_key(change.target_path))}
    drops: list[Change] = []
    refusals: list[Refusal] = []
    for namespace in owned:
        if namespace.child_count or namespace.ledger_count or namespace.path in needed:
            continue
        refusal = _refusal_reason(context, evidence, namespace)
        if refusal is None:
            drops.append(_drop_change(context, namespace))
        else:
            refusals.append(Refusal(refusal[0], context.rule.target, namespace.path, namespace.origin_path, refusal[1]))
    return drops, refusals


def _refusal_reason(context: MirrorContext, evidence: CrawlEvidence, namespace: OwnedNamespace) -> tuple[Reason, str] | None:
    path, record = parse_path_key(namespace.path), namespace.record
    if record is None:
        known = is_covered(path, evidence.target)
        return None if known else (Reason.NOT_COVERED, "the target's listing does not prove that the namespace is absent")
    listing = evidence.target.get(namespace.path)
    if listing is None or not listing.complete or not listing.found:
        return Reason.NOT_COVERED, "no complete listing proves that the namespace is empty"
    marker = find_bound_marker(record)
    if marker is None or (marker.instance, marker.mirror) != (context.instance, context.rule.name):
        return Reason.NOT_OURS, "it is empty, and it does not have this mirror's ownership marker"
    if None not in (namespace.native_id, record.native_id) and namespace.native_id != record.native_id:
        return Reason.NOT_OURS, "it is empty, and another process dropped and recreated it"
    if context.rule.delete == "never":
        return Reason.DELETE_NEVER, "it is empty, and delete = never"
    detail = None if context.drops_confirmed else drop_refusal(context.target)
    return None if detail is None else (Reason.DROP_CASCADES, f"{detail}: federator mirror prune {context.rule.name}")


def drop_refusal(target: Capabilities) -> str | None:
    """Return why a namespace of this target needs a confirmation before it is dropped (``drop_cascades``). None if it needs none."""
    if not (target.drop_cascades and target.listing_filtered):
        return None
    return "it looks empty, but its catalog drops a namespace with all its objects, including objects that its listing hides"


def _drop_change(context: MirrorContext, namespace: OwnedNamespace) -> Change:
    record = namespace.record
    return Change(
        Action.DROP_NAMESPACE, context.rule.target, namespace.path, context.rule.origin, namespace.origin_path,
        "created by this mirror, and empty" if record else "created by this mirror, and absent",
        precondition={"target": record.digest if record else ABSENT, "origin": ANY}, namespace=record,
    )  # fmt: skip


def _create_change(context: MirrorContext, change: Change, key: str) -> Change:
    path = parse_path_key(key)
    origin = parent_key(change.origin_path)
    marker = OwnershipMarker(
        context.instance, context.rule.name, f"{context.rule.origin}${origin}" if origin else context.rule.origin
    )
    namespace = NamespaceRecord(change.target_source, path, marker.to_properties(path))
    if len(path) in context.target.plain_namespaces_at:
        namespace = replace(namespace, properties={}, doc=marker.to_comment(path))
    return Change(
        Action.CREATE_NAMESPACE, change.target_source, key, change.origin_source, origin, "needed by declarations of this plan",
        precondition={"target": ABSENT}, namespace=namespace,
    )  # fmt: skip


def _missing_ancestors(change: Change, existing: Collection[str]) -> list[str]:
    path = parent_path(parse_path_key(change.target_path))
    return [key for depth in range(1, len(path) + 1) if (key := path_key(path[:depth])) not in existing]


def without_tables(owned: Iterable[OwnedNamespace], namespaces: Collection[str]) -> list[OwnedNamespace]:
    """Return the namespaces below which the mirror has no table: only they can be empty. ``namespaces`` (path keys) contain its
    tables."""
    above = {path_key(namespace) for key in namespaces for namespace in iter_ancestors(parse_path_key(key))}
    return [namespace for namespace in owned if namespace.path not in namespaces and namespace.path not in above]
