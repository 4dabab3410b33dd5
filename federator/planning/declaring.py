"""What a person declares: a physical table into a catalog, as a plan like a mirror's, that makes nothing ours. Pure.

The declarations carry no mark and get no entry in the ledger (ADR 9): they belong to whoever asked, as if they had been made with the
catalog's own tools. A mirror takes them for ordinary origins, and never changes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from federator.connector import Capabilities, ConfigError
from federator.model import NamespaceRecord, Path, TableRecord, path_key, places_above
from federator.planning.changes import Action, Change, Refusal
from federator.planning.guards import GuardFacts, objections
from federator.planning.plan import Plan, ordered
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule

#: of the name under which such plans and their journal stand, in place of a mirror's: mirrors' names have no colon
PREFIX = "declare:"
_VALID = "valid"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place to be declared as ``path``, with what looks at it and at the target found.

    ``state`` and ``message`` are what opening it came to. ``there``: what the target has of that name (None: nothing, or ``foreign``,
    which is no Lance table). ``others`` are the target's other names for the place; ``missing`` the namespaces above that are not
    there, outermost first.
    """

    path: Path
    location: str
    canonical: str
    state: str
    message: str | None = None
    there: TableRecord | None = None
    foreign: str | None = None
    others: Sequence[str] = ()
    missing: Sequence[Path] = ()


def rule_into(target: str) -> MirrorRule:
    """What stands where an executor wants a mirror's rule: it asks for no approval, and deletes nothing."""
    return MirrorRule(name=f"{PREFIX}{target}", origin=target, target=target, delete="never")


def target_of(name: str) -> str | None:
    """The target of a person's plan by the name it stands under; None for a mirror's."""
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else None


def named(template: str | None, canonical: str, levels: int) -> Path:
    """The path that a place gets: ``template`` (levels joined by ``$``), or its own directories' names as far as the target has
    ``levels``. ``{table}`` is the directory's name without ``.lance``, ``{1}`` the name above it, ``{2}`` the one above that.

    Raises ConfigError for a template that asks for what is not there.
    """
    names = [place.rstrip("/").rpartition("/")[2] for place in (canonical, *places_above(canonical))]
    names[0] = names[0].removesuffix(".lance")
    template = template or "$".join([*(f"{{{level}}}" for level in range(levels, 0, -1)), "{table}"])

    def filled(match: re.Match[str]) -> str:
        number = 0 if match[1] == "table" else int(match[1]) if match[1].isdecimal() else len(names)
        if number >= len(names) or not names[number] or (number == 0 and match[1] != "table"):
            raise ConfigError(
                f"{match[0]} is no part of {canonical}",
                hint="--as takes names, {table}, {1} for the directory above it, {2} ...",
            )
        return names[number]

    return tuple(_PLACEHOLDER.sub(filled, part) for part in template.split("$"))


def plan_declarations(target: str, able: Capabilities, candidates: Sequence[Candidate], *, revision: int) -> Plan:
    """The plan that declares what may be declared; the rest are its refusals."""
    rule = rule_into(target)
    changes: dict[str, Change] = {}
    refusals: list[Refusal] = []
    for each in candidates:
        why = _objection(able, each)
        if why is None and path_key(each.path) in changes:
            why = Reason.NAME_CLASH, "another table of this plan gets the same name"
        if why is not None:
            refusals.append(Refusal(why[0], target, path_key(each.path), "", f"{each.location}: {why[1]}"))
            continue
        for namespace in each.missing:
            changes.setdefault(path_key(namespace), _create(target, namespace, each))
        changes[path_key(each.path)] = _declare(target, each)
    made = ordered(changes.values())
    facts = GuardFacts(0, {}, {}, 0, {}, len(changes), origin_filters_listings=False)
    holds = tuple(objections(rule, made, facts))
    return Plan(rule.name, rule.digest, revision, revision, made, tuple(refusals), holds, len(candidates))


def _objection(able: Capabilities, each: Candidate) -> tuple[Reason, str] | None:
    if each.there is not None and each.there.canonical == each.canonical:
        return Reason.LOCATION_DECLARED, "it is declared there already"
    if each.others:
        return Reason.LOCATION_DECLARED, f"it is declared there as {', '.join(sorted(each.others))}"
    above = len(each.path) - 1
    if not able.min_depth <= above <= able.max_depth:
        return Reason.DEPTH, f"{path_key(each.path)} has {above} levels above the table, the target takes {able.min_depth}"
    for level, name in enumerate(each.path, 1):
        if not able.rules(namespace=level <= above).allows(name):
            return Reason.NAME_NOT_ALLOWED, f"the target does not take the name {name[:80]!r}"
    if each.state != _VALID:
        told = f" ({each.message})" if each.message else ""
        return Reason.NOT_VALID, f"no table could be opened there: {each.state.replace('_', ' ')}{told}"
    if each.there is not None or each.foreign is not None:
        what = each.foreign or f"it points to {each.there.location if each.there else ''}"
        return Reason.NAME_TAKEN, f"the name is taken: {what}"
    for namespace in each.missing:
        if len(namespace) not in able.creates_namespaces_at:
            return Reason.NAMESPACE_MISSING, f"{path_key(namespace)} does not exist and cannot be created there"
    return None


def _create(target: str, namespace: Path, each: Candidate) -> Change:
    return Change(
        Action.CREATE_NAMESPACE, target, path_key(namespace), "", "", f"for {path_key(each.path)}",
        namespace=NamespaceRecord(target, namespace),
    )  # fmt: skip


def _declare(target: str, each: Candidate) -> Change:
    after = TableRecord(target, each.path, each.location)
    return Change(
        Action.DECLARE_TABLE, target, path_key(each.path), "", "", "a person declares it", after=after,
        precondition={"target": "absent", "origin": "any"},
    )  # fmt: skip
