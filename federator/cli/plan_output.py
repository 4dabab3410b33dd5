"""A plan as a person reads it: what would be done and why, what would not and why, and what holds it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from federator.cli.context import Cli
from federator.cli.printer import format_age
from federator.connector.options import mask_secrets
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from federator.model import TableRecord
    from federator.planning.changes import Change
    from federator.planning.plan import Plan
    from federator.planning.release import Approvals
    from federator.views.plan_outcomes import ChangeOutcome

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
# Maximum number of lines per action and per reason without --all.
CHANGES, REFUSALS = 200, 20
_SHORT_DIGEST_LENGTH = 12
#: states of a plan that can no longer be applied
OVER = ("applied", "outdated")


def shorten_digest(digest: str) -> str:
    """Return the prefix of a digest that is shown. Commands accept any unambiguous prefix."""
    return digest[:_SHORT_DIGEST_LENGTH]


def plan_title(plan: Plan) -> str:
    """Return the title of a plan: its mirror, or the target of user declarations."""
    from federator.planning.user_declarations import user_plan_target

    target = user_plan_target(plan.mirror)
    return f"mirror {plan.mirror}" if target is None else f"declare into {target}"


def print_plan(
    cli: Cli, plan: Plan, *, everything: bool = False, state: str | None = None, approvals: Approvals | None = None,
    outcomes: Sequence[ChangeOutcome] = (),
) -> None:  # fmt: skip
    """Print one plan. ``state`` and ``outcomes`` are those of a stored plan; ``approvals``: the valid approvals of its mirror."""
    out = cli.out
    waiting = _waits(plan, approvals or {}) if state not in OVER else {}
    happened = {id(plan.changes[outcome.change]): _describe_outcome(outcome) for outcome in outcomes}
    counts = Counter(map(_change_symbol, _merge_rename_pairs(plan)))
    summary = ", ".join(f"{symbol} {number:,} {label}" for (symbol, label), number in counts.items())
    refused = f"; {format_count(len(plan.refusals), 'refusal')}" if plan.refusals else ""
    # A pattern that matches nothing must not look like a mirror that has nothing to do.
    unchanged = "no changes" if plan.selected else "no changes, because the mirror selects no table of its origin"
    out.line(f"{plan_title(plan)}: {summary or unchanged}{refused}", style="bold")
    if plan.changes or plan.held:
        out.line(f"plan {shorten_digest(plan.digest)}{f' ({state})' if state else ''}")
    _show_changes(cli, plan, {**waiting, **happened}, everything=everything)
    _show_refusals(cli, plan, everything=everything)
    if plan.held and state not in ("approved", "rejected", *OVER):
        out.line("held by a guard:", style="yellow")
        for hold in plan.held:
            out.line(f"  {hold}")
        if waiting and len(waiting) < len(plan.changes):
            done = sum(outcome.state == "done" for outcome in outcomes)
            others = f"{done:,} carried out" if done else "the others can be applied"
            out.line(f"  {len(waiting):,} of {format_count(len(plan.changes), 'change')} wait, {others}")
        out.line(f"  to apply it nevertheless: {plan.release_command}")


def _waits(plan: Plan, approvals: Approvals) -> dict[int, str]:
    """Return the guards that changes wait for, as text, by the ``id()`` of the change."""
    from federator.planning.release import release_changes

    return {id(waiting.change): f"waits: {waiting.hold.guard}" for waiting in release_changes(plan, approvals).waiting}


def _describe_outcome(outcome: ChangeOutcome) -> str:
    text = {"done": "carried out", "intent": "no outcome yet"}.get(outcome.state, outcome.state)
    return f"{text}: {outcome.message}" if outcome.message else f"{text} {format_age(outcome.at)}"


def _show_changes(cli: Cli, plan: Plan, notes: Mapping[int, str], *, everything: bool) -> None:
    """Print the changes. ``notes``: what is known of a change, by its ``id()``."""
    counts: Counter[tuple[str, str]] = Counter()
    removals = {change.pair: change for change in plan.changes if change.pair is not None and change.after is None}
    for change in _merge_rename_pairs(plan):
        kind = _change_symbol(change)
        counts[kind] += 1
        if everything or counts[kind] <= CHANGES:
            renamed = removals.get(change.pair or "") if change.after is not None else None
            _show_change(cli, change, renamed, notes.get(id(change)))
    more = sum(number - CHANGES for number in counts.values() if number > CHANGES)
    if more and not everything:
        cli.out.line(f"  and {more:,} more; --all shows them")
    if any(change.action.value == "recreate_table" for change in plan.changes):
        cli.out.line(
            "  recreate: the object is dropped and declared again; its grants and its history in the catalog can get lost",
            style="red",
        )


def _merge_rename_pairs(plan: Plan) -> list[Change]:
    """Return the changes with each rename pair as one change."""
    declared_pairs = {change.pair for change in plan.changes if change.after is not None}
    return [
        change
        for change in plan.changes
        if change.pair is None or change.after is not None or change.pair not in declared_pairs
    ]


def _change_symbol(change: Change) -> tuple[str, str]:
    return _RENAME if change.pair is not None and change.after is not None else SYMBOLS[change.action.value]


def _show_change(cli: Cli, change: Change, old: Change | None, note: str | None) -> None:
    symbol, label = _change_symbol(change)
    path = f"{change.target_source}${change.target_path}"
    if old is not None:
        path = f"{change.target_source}${old.target_path} → {path}"
    location = (
        f"  {change.after.location}" if change.before is None and change.after is not None and change.after.location else ""
    )
    noted = f"  {note}" if note else ""
    cli.out.line(f"  {symbol} {label:<10}  {path}{location}  ({change.reason}){noted}", style=_COLORS[symbol])
    if change.before is not None and change.after is not None:
        for line in _differences(change.before, change.after):
            cli.out.line(f"      {line}")


def _differences(before: TableRecord, after: TableRecord) -> Iterator[str]:
    if before.location != after.location:
        yield f"location: {before.location or '(none)'} → {after.location or '(none)'}"
    if before.doc != after.doc:
        yield f"doc: {_value(before.doc)} → {_value(after.doc)}"
    shown_before, shown_after = mask_secrets(before.properties), mask_secrets(after.properties)
    for key in sorted({*before.properties, *after.properties}):
        if before.properties.get(key) != after.properties.get(key):
            yield f"{key}: {_value(shown_before.get(key))} → {_value(shown_after.get(key))}"


def _value(text: str | None) -> str:
    return "(none)" if text is None else repr(text) if text.strip() != text or not text else text


def _show_refusals(cli: Cli, plan: Plan, *, everything: bool) -> None:
    if not plan.refusals:
        return
    cli.out.line("  refused:")
    counts: Counter[str] = Counter()
    totals = Counter(refusal.reason.value for refusal in plan.refusals)
    for refusal in sorted(plan.refusals, key=lambda r: (r.reason.value, r.target_path, r.origin_path)):
        reason = refusal.reason.value
        counts[reason] += 1
        if counts[reason] == 1:
            cli.out.line(f"    {reason} ({totals[reason]:,})")
        if everything or counts[reason] <= REFUSALS:
            path = f"{refusal.target_source}${refusal.target_path}" if refusal.target_path else f"origin {refusal.origin_path}"
            cli.out.line(f"      {path}{f'  ({refusal.detail})' if refusal.detail else ''}")
        elif counts[reason] == totals[reason]:
            cli.out.line(f"      and {totals[reason] - REFUSALS:,} more; --all shows them")
