"""Which tables a mirror selects, under which name they appear at the target, and what exactly is declared there.

The target's own rules (lower case, name patterns, depth) are applied here, before anything is compared, so that nothing flaps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from federator.connector import Capabilities, is_endpoint_key, is_secret_key
from federator.model import Path, TableRecord, is_location, path_key, stable_properties
from federator.planning.marks import Mark, bound_mark, unmarked
from federator.planning.reasons import Reason
from federator.planning.rule import MirrorRule


@dataclass(frozen=True, slots=True)
class MirrorContext:
    """Everything that mapping and decisions need to know besides the records. Picklable.

    ``home`` are the levels that the target puts before a path given without them (Glue's account).
    """

    rule: MirrorRule
    instance: str
    origin_levels: tuple[str, ...]
    target: Capabilities
    home: Path = ()


@dataclass(frozen=True, slots=True)
class Desired:
    """A selected origin table: what it should be at the target, or why it cannot be there."""

    origin: TableRecord
    record: TableRecord | None = None
    refusal: Reason | None = None
    detail: str = ""


def selected(rule: MirrorRule, path: Path) -> bool:
    """Whether a mirror's globs take a table in."""
    key = path_key(path)
    return any(fnmatchcase(key, glob) for glob in rule.include) and not any(fnmatchcase(key, glob) for glob in rule.exclude)


def desire(context: MirrorContext, origin: TableRecord) -> Desired:
    """What a selected origin table should be at the target."""
    rule = context.rule
    mark = bound_mark(origin)
    if mark is not None and (not rule.transitive or mark.origin.startswith(f"{rule.target}$")):
        return Desired(
            origin, refusal=Reason.LOOP, detail=f"declared there by {mark.instance}/{mark.mirror} from {mark.origin}"
        )
    path = target_path(context, origin.path)
    refusal, detail = _name_refusal(context, path)
    if refusal is not None:
        return Desired(origin, refusal=refusal, detail=detail)
    if not is_location(origin.location):
        return Desired(origin, refusal=Reason.NO_LOCATION, detail=f"the origin's location is {origin.location!r}")
    first = mark.origin if mark is not None else f"{rule.origin}${origin.key}"
    properties = {key: value for key, value in unmarked(stable_properties(origin.properties)).items() if _may_travel(key)}
    properties |= Mark(context.instance, rule.name, first).properties(path)
    return Desired(origin, TableRecord(rule.target, path, origin.location, properties, doc=origin.doc))


def target_path(context: MirrorContext, origin: Path) -> Path:
    """The path at the target: templates over the origin's level names, then the target's case and home."""
    rule = context.rule
    names = _level_names(context.origin_levels, origin)
    levels = origin[:-1] if rule.namespace is None else _render(rule.namespace, names)
    table = "".join(_render(rule.table, {**names, "table": origin[-1]}))
    path = tuple(context.target.names.canonical(name) for name in (*levels, table))
    return (*context.home, *path) if context.home and len(path) == context.target.min_depth + 1 else path


def _level_names(levels: tuple[str, ...], path: Path) -> dict[str, str]:
    above = path[:-1]
    return {name: above[-len(levels) + i] for i, name in enumerate(levels) if -len(above) <= -len(levels) + i}


def _render(template: str, names: dict[str, str]) -> tuple[str, ...]:
    # Split before filling in, so that a "$" inside a name stays a part of that name.
    filled = (re.sub(r"\{([^{}]*)\}", lambda m: names.get(m[1], ""), part) for part in template.split("$"))
    return tuple(part for part in filled if part)


def _name_refusal(context: MirrorContext, path: Path) -> tuple[Reason | None, str]:
    target = context.target
    if not target.min_depth <= len(path) - 1 <= target.max_depth:
        allowed = f"{target.min_depth} to {target.max_depth}" if target.min_depth != target.max_depth else str(target.min_depth)
        return Reason.DEPTH, f"{path_key(path)} has {len(path) - 1} levels above the table, the target takes {allowed}"
    for name in path[len(context.home) :] if path[: len(context.home)] == context.home else path:
        if not target.names.allows(name):
            return Reason.NAME_NOT_ALLOWED, f"the target does not take the name {name[:80]!r}"
    return None, ""


def _may_travel(key: str) -> bool:
    # A secret or an endpoint in a table's properties would follow the table to people who never had it.
    return not is_secret_key(key) and not is_endpoint_key(key)
