"""Under which name an origin table appears at the target, and what exactly is declared there.

The target's own rules (lower case, name patterns, depth) are applied here, before anything is compared, so that nothing flaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from federator.connector import Capabilities, is_endpoint_key, is_secret_key
from federator.model import Path, TableRecord, is_location, path_key, stable_properties
from federator.planning.marks import Mark, bound_mark, plain_doc, unmarked, with_comment
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule
from federator.planning.selection import matches

#: ``{level}`` in a template, or one name of a level that repeats: ``{level[0]}``, ``{level[-1]}``
PLACEHOLDER = re.compile(r"\{(\w+)(?:\[(-?[0-9]+)\])?\}")
# What joins the names of a repeated level inside a name: every catalog takes it.
_JOINT = "_"

Names = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class MirrorContext:
    """Everything that mapping and decisions need to know besides the records. Picklable.

    ``home`` are the levels that the target puts before a path given without them (Glue's account). ``nested`` is the origin's level
    that repeats in deeper trees (default: the last). ``rivals`` are this instance's other mirrors into the target, with their origins.
    """

    rule: MirrorRule
    instance: str
    origin_levels: tuple[str, ...]
    target: Capabilities
    home: Path = ()
    nested: str | None = None
    rivals: Mapping[str, str] = field(default_factory=dict)
    #: a person asked for this plan, and confirms that dropping a namespace may cascade
    drops_confirmed: bool = False

    @classmethod
    def of(
        cls, rule: MirrorRule, instance: str, origin: Capabilities, target: Capabilities, home: Path, rules: Iterable[MirrorRule]
    ) -> Self:  # fmt: skip
        """With what the catalogs of both sides can do. ``rules`` are all of the instance's mirrors."""
        rivals = {other.name: other.origin for other in rules if other.target == rule.target and other.name != rule.name}
        return cls(rule, instance, origin.levels, target, home, origin.nested, rivals)


@dataclass(frozen=True, slots=True)
class Desired:
    """A selected origin table: what it should be at the target, or why it cannot be there."""

    origin: TableRecord
    record: TableRecord | None = None
    refusal: Reason | None = None
    detail: str = ""


def desire(context: MirrorContext, origin: TableRecord) -> Desired:
    """What a selected origin table should be at the target."""
    rule, target = context.rule, context.target
    mark = bound_mark(origin)
    if mark is not None and (not rule.transitive or rule.target in mark.passed):
        return Desired(
            origin, refusal=Reason.LOOP, detail=f"declared there by {mark.instance}/{mark.mirror} from {mark.origin}"
        )
    path = target_path(context, origin.path)
    refusal, detail = _name_refusal(context, path)
    if refusal is None and not is_location(origin.location):
        refusal, detail = Reason.NO_LOCATION, f"the origin's location is {origin.location!r}"
    properties = mirrored_properties(rule, origin.properties) if target.keeps_properties else {}
    if refusal is None and (unfit := _unfit(target, properties)):
        refusal, detail = Reason.PROPERTY_REFUSED, unfit
    if refusal is not None:
        return Desired(origin, refusal=refusal, detail=detail)
    first = mark.origin if mark is not None else f"{rule.origin}${origin.key}"
    ours = Mark(context.instance, rule.name, first, via=(*mark.via, rule.origin) if mark is not None else ())
    doc = plain_doc(origin.doc) if target.keeps_comment else None
    if target.keeps_properties:
        properties |= ours.properties(path)
    elif target.keeps_comment:
        doc = with_comment(doc, ours, path)
    return Desired(origin, TableRecord(rule.target, path, relocated(rule, str(origin.location)), properties, doc=doc))


def target_path(context: MirrorContext, origin: Path) -> Path:
    """The path at the target: replacements, templates over the origin's level names, prefix and suffix, then the target's case and
    home."""
    rule = context.rule
    names = {
        level: tuple(_replaced(rule, level, name) for name in values)
        for level, values in level_names(context.origin_levels, context.nested, origin).items()
    }
    table = _replaced(rule, "table", origin[-1])
    if rule.namespace is not None:
        levels = _levels(rule.namespace, names)
    else:
        levels = tuple(name for values in names.values() for name in values) if names else origin[:-1]
    own = "".join(_levels(rule.table, {**names, "table": (table,)}))
    # An empty name stays one, and is refused: a prefix must not make a table of it.
    path = tuple(context.target.names.canonical(name) for name in (*levels, own and f"{rule.prefix}{own}{rule.suffix}"))
    return (*context.home, *path) if context.home and len(path) == context.target.min_depth + 1 else path


def level_names(levels: tuple[str, ...], nested: str | None, path: Path) -> dict[str, tuple[str, ...]]:
    """The names above a table by level. A shorter path lacks the first levels; in a longer one, the nested level has the surplus."""
    above = path[:-1]
    missing = max(len(levels) - len(above), 0)
    surplus = max(len(above) - len(levels), 0)
    found: dict[str, tuple[str, ...]] = {}
    at = 0
    for level in levels[missing:]:
        width = 1 + (surplus if level == (nested or levels[-1]) else 0)
        found[level] = above[at : at + width]
        at += width
    return found


def relocated(rule: MirrorRule, location: str) -> str:
    """A location at the target: the first beginning that fits, up to a slash, is exchanged."""
    for move in rule.location:
        rest = location.removeprefix(move.origin)
        fits = location.startswith(move.origin) and (not rest or rest.startswith("/") or move.origin.endswith("/"))
        if fits:
            return move.target + rest
    return location


def at_origin(rule: MirrorRule, location: str) -> str:
    """The inverse of ``relocated``, for locations that it made."""
    for move in rule.location:
        rest = location.removeprefix(move.target)
        if location.startswith(move.target) and (not rest or rest.startswith("/") or move.target.endswith("/")):
            return move.origin + rest
    return location


def mirrored_properties(rule: MirrorRule, properties: Mapping[str, str]) -> dict[str, str]:
    """What of an origin's properties travels: allowed, not denied, and neither a mark, a statistic, a secret nor an endpoint."""
    # A secret or an endpoint in a table's properties would follow the table to people who never had it.
    return {
        key: value
        for key, value in unmarked(stable_properties(properties)).items()
        if not is_secret_key(key)
        and not is_endpoint_key(key)
        and any(matches(pattern, key) for pattern in rule.allow_properties)
        and not any(matches(pattern, key) for pattern in rule.deny_properties)
    }


def _replaced(rule: MirrorRule, level: str, name: str) -> str:
    for change in rule.replace:
        if change.level == level:
            name = re.sub(change.pattern, change.text, name)
    return name


def _levels(template: str, names: Names) -> tuple[str, ...]:
    # Split before filling in, so that a "$" inside a name stays a part of that name.
    filled: list[str] = []
    for part in template.split("$"):
        whole = PLACEHOLDER.fullmatch(part)
        if whole is not None and whole[2] is None:
            filled += names.get(whole[1], ())
        else:
            filled.append(PLACEHOLDER.sub(lambda match: _text(match, names), part))
    return tuple(part for part in filled if part)


def _text(match: re.Match[str], names: Names) -> str:
    values = names.get(match[1], ())
    if match[2] is None:
        return _JOINT.join(values)
    number = int(match[2])
    return values[number] if -len(values) <= number < len(values) else ""


def _unfit(target: Capabilities, properties: Mapping[str, str]) -> str:
    key_limit, value_limit = target.property_key_length, target.property_value_length
    for key, value in properties.items():
        if key_limit is not None and len(key) > key_limit:
            return f"the target takes property names of up to {key_limit} characters, not {key[:80]!r}; deny_properties leaves it out"
        if value_limit is not None and len(value) > value_limit:
            return (
                f"the target takes values of up to {value_limit} characters, not that of {key!r}; deny_properties leaves it out"
            )
    return ""


def _name_refusal(context: MirrorContext, path: Path) -> tuple[Reason | None, str]:
    target = context.target
    if not target.min_depth <= len(path) - 1 <= target.max_depth:
        allowed = f"{target.min_depth} to {target.max_depth}" if target.min_depth != target.max_depth else str(target.min_depth)
        return Reason.DEPTH, f"{path_key(path)} has {len(path) - 1} levels above the table, the target takes {allowed}"
    home = len(context.home) if path[: len(context.home)] == context.home else 0
    for level, name in enumerate(path[home:], home + 1):
        if not target.rules(namespace=level < len(path)).allows(name):
            return Reason.NAME_NOT_ALLOWED, f"the target does not take the name {name[:80]!r}"
    return None, ""
