"""A plan as a person reads it: what would be done and why, what would not and why, and what holds it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from federator.cli.context import Cli
from federator.cli.output import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from federator.model import TableRecord
    from federator.planning.changes import Change
    from federator.planning.plan import Plan
    from federator.planning.release import Approvals

SYMBOLS = {
    "create_namespace": ("+", "namespace"),
    "declare_table": ("+", "declare"),
    "update_table": ("~", "update"),
    "recreate_table": ("!", "recreate"),
    "adopt": ("=", "adopt"),
    "deregister_table": ("-", "deregister"),
    "drop_namespace": ("-", "drop namespace"),
}
_RENAME = (">", "rename")
_COLORS = {"+": "green", "~": "yellow", "=": "cyan", "-": "red", "!": "bold red", ">": "yellow"}
# Lines per action and per reason before the rest is only counted; --all shows everything.
CHANGES, REFUSALS = 200, 20
_SHORT = 12
#: states of a plan in which nothing waits and nothing goes
OVER = ("applied", "outdated")


def short(digest: str) -> str:
    """As much of a digest as a person types; any unambiguous beginning is accepted."""
    return digest[:_SHORT]


def subject(plan: Plan) -> str:
    """Whose plan it is."""
    from federator.planning.declaring import target_of

    target = target_of(plan.mirror)
    return f"mirror {plan.mirror}" if target is None else f"declare into {target}"


def show_plan(
    cli: Cli, plan: Plan, *, everything: bool = False, state: str | None = None, approvals: Approvals | None = None
) -> None:
    """Prints one plan. ``state`` is what became of it, where it was made before; ``approvals`` are those of its mirror that hold."""
    out = cli.out
    waits = _waits(plan, approvals or {}) if state not in OVER else {}
    counts = Counter(map(_kind, _lines(plan)))
    told = ", ".join(f"{symbol} {number:,} {word}" for (symbol, word), number in counts.items())
    refused = f"; {counted(len(plan.refusals), 'refusal')}" if plan.refusals else ""
    out.line(f"{subject(plan)}: {told or 'no changes'}{refused}", style="bold")
    if plan.changes or plan.held:
        out.line(f"plan {short(plan.digest)}{f' ({state})' if state else ''}")
    _show_changes(cli, plan, waits, everything=everything)
    _show_refusals(cli, plan, everything=everything)
    if plan.held and state not in ("approved", "rejected", *OVER):
        out.line("held by a guard:", style="yellow")
        for objection in plan.held:
            out.line(f"  {objection}")
        if waits and len(waits) < len(plan.changes):
            out.line(f"  {len(waits):,} of {counted(len(plan.changes), 'change')} wait, the others may go")
        out.line(f"  to apply it all the same: federator plans approve {short(plan.digest)}")


def _waits(plan: Plan, approvals: Approvals) -> dict[int, str]:
    """The guards that changes wait for, by the identity of the change."""
    from federator.planning.release import release

    return {id(waiting.change): waiting.hold.guard for waiting in release(plan, approvals).waiting}


def _show_changes(cli: Cli, plan: Plan, waits: Mapping[int, str], *, everything: bool) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    old = {change.pair: change for change in plan.changes if change.pair is not None and change.after is None}
    for change in _lines(plan):
        kind = _kind(change)
        seen[kind] += 1
        if everything or seen[kind] <= CHANGES:
            renamed = old.get(change.pair or "") if change.after is not None else None
            _show_change(cli, change, renamed, waits.get(id(change)))
    more = sum(number - CHANGES for number in seen.values() if number > CHANGES)
    if more and not everything:
        cli.out.line(f"  and {more:,} more; --all shows them")
    if any(change.action.value == "recreate_table" for change in plan.changes):
        cli.out.line(
            "  recreate: the object is dropped and declared anew; its grants and its history in the catalog may go", style="red"
        )


def _lines(plan: Plan) -> list[Change]:
    """The changes as people count them: the two halves of a rename are one."""
    new = {change.pair for change in plan.changes if change.after is not None}
    return [change for change in plan.changes if change.pair is None or change.after is not None or change.pair not in new]


def _kind(change: Change) -> tuple[str, str]:
    return _RENAME if change.pair is not None and change.after is not None else SYMBOLS[change.action.value]


def _show_change(cli: Cli, change: Change, old: Change | None, guard: str | None) -> None:
    symbol, word = _kind(change)
    path = f"{change.target_source}${change.target_path}"
    if old is not None:
        path = f"{change.target_source}${old.target_path} → {path}"
    place = f"  {change.after.location}" if change.before is None and change.after is not None and change.after.location else ""
    waits = f"  waits: {guard}" if guard else ""
    cli.out.line(f"  {symbol} {word:<10}  {path}{place}  ({change.reason}){waits}", style=_COLORS[symbol])
    if change.before is not None and change.after is not None:
        for line in _differences(change.before, change.after):
            cli.out.line(f"      {line}")


def _differences(before: TableRecord, after: TableRecord) -> Iterator[str]:
    if before.location != after.location:
        yield f"location: {before.location or '(none)'} → {after.location or '(none)'}"
    if before.doc != after.doc:
        yield f"doc: {_value(before.doc)} → {_value(after.doc)}"
    for key in sorted({*before.properties, *after.properties}):
        old, new = before.properties.get(key), after.properties.get(key)
        if old != new:
            yield f"{key}: {_value(old)} → {_value(new)}"


def _value(text: str | None) -> str:
    return "(none)" if text is None else repr(text) if text.strip() != text or not text else text


def _show_refusals(cli: Cli, plan: Plan, *, everything: bool) -> None:
    if not plan.refusals:
        return
    cli.out.line("  left as it is:")
    seen: Counter[str] = Counter()
    totals = Counter(refusal.reason.value for refusal in plan.refusals)
    for refusal in sorted(plan.refusals, key=lambda r: (r.reason.value, r.target_path, r.origin_path)):
        reason = refusal.reason.value
        seen[reason] += 1
        if seen[reason] == 1:
            cli.out.line(f"    {reason} ({totals[reason]:,})")
        if everything or seen[reason] <= REFUSALS:
            path = f"{refusal.target_source}${refusal.target_path}" if refusal.target_path else f"origin {refusal.origin_path}"
            cli.out.line(f"      {path}{f'  ({refusal.detail})' if refusal.detail else ''}")
        elif seen[reason] == totals[reason]:
            cli.out.line(f"      and {totals[reason] - REFUSALS:,} more; --all shows them")
