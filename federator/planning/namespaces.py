"""Namespaces at the target: made where a declaration needs them, dropped again when nothing is in those that we made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from federator.connector import Capabilities
from federator.model import NamespaceRecord, ancestors, parent, parse_key, path_key
from federator.planning.changes import Action, Change, Decision, Refusal
from federator.planning.decide import Knowledge
from federator.planning.evidence import covered
from federator.planning.mapping import MirrorContext
from federator.planning.marks import Mark, bound_mark
from federator.planning.reasons import Reason

_NOT_MADE = "does not exist and cannot be created there"


@dataclass(frozen=True, slots=True)
class MadeNamespace:
    """A namespace that the ledger says we made.

    ``record`` is it as the index has it (None: not there), ``inside`` how many namespaces and tables the index has right below it,
    ``ours`` how many entries the mirror's ledger has anywhere below it.
    """

    path: str
    origin_path: str
    native_id: str | None = None
    record: NamespaceRecord | None = None
    inside: int = 0
    ours: int = 0


def with_namespaces(
    context: MirrorContext, decisions: Iterable[Decision], existing: Collection[str]
) -> tuple[list[Change], list[Refusal]]:
    """Adds the creation of missing namespaces; declarations whose namespace cannot be created become refusals.

    ``existing`` holds the target's namespaces in text form.
    """
    changes: list[Change] = []
    refusals: list[Refusal] = []
    missing: dict[str, Change] = {}
    for decision in decisions:
        if isinstance(decision, Refusal):
            refusals.append(decision)
            continue
        wanted = _missing_above(decision, existing) if decision.action is Action.DECLARE_TABLE else []
        impossible = [key for key in wanted if len(parse_key(key)) not in context.target.creates_namespaces_at]
        if impossible:
            detail = f"{impossible[0]} {_NOT_MADE}"
            where = (decision.target_source, decision.target_path, decision.origin_path)
            refusals.append(Refusal(Reason.NAMESPACE_MISSING, *where, detail))
            continue
        for key in wanted:
            missing.setdefault(key, _create(context, decision, key))
        changes.append(decision)
    return [*missing.values(), *changes], refusals


def without_empty(
    context: MirrorContext, knowledge: Knowledge, made: Sequence[MadeNamespace], changes: Iterable[Change]
) -> tuple[list[Change], list[Refusal]]:
    """Drops of namespaces that we made and that are proven empty, and what keeps others from being dropped.

    Nothing may be inside that the target lists, nothing of ours in the ledger, nothing that this plan puts there. What the target
    does not list (a table that is no Lance table) is the catalog's own to refuse: a namespace is dropped only when it is empty.
    """
    needed = {path_key(above) for change in changes for above in ancestors(parse_key(change.target_path))}
    found: list[Change] = []
    refusals: list[Refusal] = []
    for namespace in made:
        if namespace.inside or namespace.ours or namespace.path in needed:
            continue
        objection = _objection(context, knowledge, namespace)
        if objection is None:
            found.append(_drop(context, namespace))
        else:
            refusals.append(Refusal(objection[0], context.rule.target, namespace.path, namespace.origin_path, objection[1]))
    return found, refusals


def _objection(context: MirrorContext, knowledge: Knowledge, namespace: MadeNamespace) -> tuple[Reason, str] | None:
    path, record = parse_key(namespace.path), namespace.record
    if record is None:
        known = covered(path, knowledge.target)
        return None if known else (Reason.NOT_COVERED, "the target's listing does not prove that the namespace is gone")
    listing = knowledge.target.get(namespace.path)
    if listing is None or not listing.complete or not listing.found:
        return Reason.NOT_COVERED, "no complete listing proves that the namespace is empty"
    mark = bound_mark(record)
    if mark is None or (mark.instance, mark.mirror) != (context.instance, context.rule.name):
        return Reason.NOT_OURS, "it is empty, and it does not carry our mark"
    if None not in (namespace.native_id, record.native_id) and namespace.native_id != record.native_id:
        return Reason.NOT_OURS, "it is empty, and it was dropped and made again by somebody"
    if context.rule.delete == "never":
        return Reason.DELETE_NEVER, "it is empty, and delete = never"
    detail = None if context.drops_confirmed else drop_refusal(context.target)
    return None if detail is None else (Reason.DROP_CASCADES, detail)


def drop_refusal(target: Capabilities) -> str | None:
    """Why a namespace of this target is not dropped (``drop_cascades``) unless a person confirms it; None if it may be."""
    if not (target.drop_cascades and target.listing_filtered):
        return None
    return "it looks empty, and its catalog drops a namespace with all that is in it, also what its listing leaves out"


def _drop(context: MirrorContext, namespace: MadeNamespace) -> Change:
    record = namespace.record
    return Change(
        Action.DROP_NAMESPACE, context.rule.target, namespace.path, context.rule.origin, namespace.origin_path,
        "made by us, and nothing is in it" if record else "made by us, and gone",
        precondition={"target": record.digest if record else "absent", "origin": "any"}, namespace=record,
    )  # fmt: skip


def _create(context: MirrorContext, change: Change, key: str) -> Change:
    path = parse_key(key)
    origin = path_key(parent(parse_key(change.origin_path)))
    mark = Mark(context.instance, context.rule.name, f"{context.rule.origin}${origin}" if origin else context.rule.origin)
    namespace = NamespaceRecord(change.target_source, path, mark.properties(path))
    if len(path) in context.target.plain_namespaces_at:
        namespace = replace(namespace, properties={}, doc=mark.comment(path))
    return Change(
        Action.CREATE_NAMESPACE, change.target_source, key, change.origin_source, origin, "holds what will be declared",
        precondition={"target": "absent"}, namespace=namespace,
    )  # fmt: skip


def _missing_above(change: Change, existing: Collection[str]) -> list[str]:
    path = parent(parse_key(change.target_path))
    return [key for depth in range(1, len(path) + 1) if (key := path_key(path[:depth])) not in existing]


def without_tables(made: Iterable[MadeNamespace], tables: Iterable[str]) -> list[MadeNamespace]:
    """Return the namespaces that have none of a mirror's tables (target paths in text form) anywhere below: only they can be empty."""
    above = {path_key(namespace) for key in tables for namespace in ancestors(parse_key(key))}
    return [namespace for namespace in made if namespace.path not in above]
