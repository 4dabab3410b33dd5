"""``datasets`` and ``drift``: datasets with their declarations, and drift. They use neither Spark nor a catalog."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli import completion
from federator.cli.context import Cli, command, cut_list
from federator.cli.printer import Printer, format_age, format_time
from federator.cli.terminal import Column
from federator.cli.tree import AS_OF
from federator.model.drift import DriftKind, DriftSeverity
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from federator.views.datasets import Dataset, DatasetFilter, DatasetVerification
    from federator.views.drift import DriftView
    from federator.views.history import PastDataset


_COLUMNS = [Column("location", cut=True), Column("state"), Column("declared as", wide=True), Column("note", wide=True)]


def datasets(
    cli: Cli,
    location: Annotated[
        str | None,
        typer.Argument(
            metavar="LOCATION", help="Location of one dataset to show in detail, in any spelling: s3a://lake/orders."
        ),
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", help="Only datasets in this verification state: valid, missing, ... or unverified.")
    ] = None,
    declared_in: Annotated[
        str | None,
        typer.Option(
            "--declared-in", autocompletion=completion.complete_sources, help="Only datasets that this source declares."
        ),
    ] = None,
    conflicts: Annotated[
        bool, typer.Option("--conflicts", help="Only datasets with two declarations in one source, or with a disagreement.")
    ] = False,
    as_of: AS_OF = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of entries.")] = 200,
) -> None:
    """List datasets with their declarations, or show one dataset."""
    from federator.connector.errors import ConfigError
    from federator.store import verifications
    from federator.views import datasets as views
    from federator.views.freshness import get_freshness

    if state is not None and state not in verifications.VERIFICATION_STATES:
        raise ConfigError(
            f"{state!r} is not a verification state", hint=f"use one of {', '.join(verifications.VERIFICATION_STATES)}"
        )
    filters = views.DatasetFilter(state, declared_in, conflicts)
    if as_of is not None:
        _print_datasets_at(cli, location, as_of, filters, limit=limit)
        return
    if location is not None:
        with cli.index() as index:
            aliases = cli.settings.location_aliases
            _print_dataset(cli, views.get_dataset(index, location, aliases, declared_in=declared_in))
        return
    with cli.index() as index:
        if declared_in is not None:
            get_freshness(index, declared_in)
        page = views.list_datasets(index, filters, limit=limit)
    if cli.json:
        document = {"datasets": [asdict(view) for view in page.datasets], "more": page.next is not None}
        cli.out.document(document, rows="datasets", columns=views.Dataset)
        return
    if not page.datasets:
        cli.print_note("no dataset matches")
        return
    cli.out.table(_COLUMNS, [(v.location, v.state.replace("_", " "), _format_names(v), _format_note(v)) for v in page.datasets])
    if page.next is not None:
        cli.print_more(limit)


def _print_datasets_at(cli: Cli, location: str | None, as_of: str, filters: DatasetFilter, *, limit: int) -> None:
    from federator.store.snapshots import resolve_snapshot
    from federator.views import history

    with cli.index() as index:
        snapshot = resolve_snapshot(index, as_of)
        if location is not None:
            aliases, source = cli.settings.location_aliases, filters.declared_in
            datasets, more = [history.get_dataset_at(index, location, aliases, snapshot, declared_in=source)], False
        else:
            page = history.list_datasets_at(index, snapshot, filters, limit=limit)
            datasets, more = page.datasets, page.next is not None
    if cli.json:
        document = {"at": snapshot.at, "datasets": [asdict(view) for view in datasets], "more": more}
        cli.out.document(document, rows="datasets", columns=history.PastDataset)
        return
    if not datasets:
        cli.print_note("no dataset matched at that time")
        return
    cli.out.table(
        _COLUMNS, [(v.location, (v.state or "not kept").replace("_", " "), _format_names(v), _format_note(v)) for v in datasets]
    )
    if more:
        cli.print_more(limit)


def _format_names(view: Dataset | PastDataset) -> str:
    return ", ".join(declaration.id for declaration in view.declarations)


def _format_note(view: Dataset | PastDataset) -> str:
    notes = [
        "declared twice in a source" if view.duplicates else "",
        f"they disagree on {', '.join(disagreement.field for disagreement in view.disagreements)}"
        if view.disagreements
        else "",
        f"inside {inside[0]}" if (inside := getattr(view, "inside", ())) else "",
    ]
    return "; ".join(note for note in notes if note)


def _print_dataset(cli: Cli, view: Dataset) -> None:
    if cli.json:
        cli.out.document(asdict(view))
        return
    out = cli.out
    out.line(view.location, style="bold")
    out.pairs(_verification_rows(view.state, view.verified), indent="  ")
    out.line(f"declared as ({format_count(len(view.declarations), 'declaration')})", style="bold")
    out.pairs([(declaration.id, declaration.location) for declaration in view.declarations], indent="  ")
    out.titled_lines("declared more than once in its source", view.duplicates)
    for disagreement in view.disagreements:
        out.titled_lines(f"they disagree on {disagreement.field}", [", ".join(side) for side in disagreement.sides])
    out.titled_lines("inside another table's directory", view.inside)
    out.titled_lines("contains other tables", view.holds)


def _verification_rows(state: str, verified: DatasetVerification | None) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [("state", state.replace("_", " "))]
    if verified is not None:
        rows += [
            ("why", verified.message), ("version", verified.version), ("rows", _number(verified.rows)),
            ("bytes", _number(verified.size)), ("fragments", verified.fragments), ("indices", verified.indices),
            ("file format", verified.format), ("schema", verified.fingerprint),
            ("changed", format_time(verified.changed_at) if verified.changed_at else None),
            ("opened", format_time(verified.checked_at)), ("through", verified.checked_through),
        ]  # fmt: skip
    return [(name, value) for name, value in rows if value is not None]


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def drift(
    cli: Cli,
    kind: Annotated[
        DriftKind | None, typer.Option("--kind", metavar="KIND", help=f"Only drift of this kind: {', '.join(DriftKind)}.")
    ] = None,
    severity: Annotated[DriftSeverity | None, typer.Option("--severity", help="Only drift of this severity.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", autocompletion=completion.complete_sources, help="Only drift of this source's tables."),
    ] = None,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Only drift that is resolved. Default: only open drift.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of entries.")] = 200,
) -> None:
    """List drift: persistent differences between catalogs, or between a catalog and its storage. Each run updates it."""
    from federator.views import drift as drift_views
    from federator.views.freshness import get_freshness

    with cli.index() as index:
        if source is not None:
            get_freshness(index, source)
        findings = drift_views.list_drift(
            index, kind=kind, severity=severity, source=source, resolved=resolved, severe_first=True, limit=limit + 1
        )
    page, more = cut_list(findings, limit)
    if cli.json:
        document = {"drift": [asdict(finding) for finding in page], "more": more}
        cli.out.document(document, rows="drift", columns=drift_views.DriftView)
        return
    if not page:
        cli.print_note("no drift")
        return
    print_drift(cli.out, page)
    if more:
        cli.print_more(limit)


def print_drift(out: Printer, findings: Sequence[DriftView]) -> None:
    """Print drift, one line per difference."""
    columns = [Column("severity"), Column("kind"), Column("table", wide=True), Column("against", wide=True), Column("since")]
    columns.append(Column("what", wide=True))
    out.table(
        columns,
        [
            (
                drift.severity,
                drift.kind.replace("_", " "),
                drift.subject,
                drift.other,
                format_age(drift.first_seen),
                drift.detail,
            )
            for drift in findings
        ],
    )


def register(app: typer.Typer) -> None:
    for function in (datasets, drift):
        command(app, function.__name__, paged=True)(function)
