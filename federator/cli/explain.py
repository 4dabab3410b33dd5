"""``explain``: why an object exists or is absent."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.completion import complete_paths
from federator.cli.context import Cli, command
from federator.cli.printer import format_column_time, format_time
from federator.cli.terminal import Column
from federator.cli.tree import parse_path

if TYPE_CHECKING:
    from federator.views.explain import Explanation


def explain(
    cli: Cli,
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            autocompletion=complete_paths,
            help="Table or namespace: 'lake$sales$orders', or lake/sales/orders without quotes.",
        ),
    ],
) -> None:
    """Explain why an object exists or is absent: evidence, mirrors, history and the next planned action."""
    from federator.views.explain import explain_object

    with cli.index() as index:
        explanation = explain_object(cli.settings, index, parse_path(id))
    if cli.json:
        data = asdict(explanation)
        del data["freshness"]
        cli.out.document(data)
        return
    print_explanation(cli, explanation)


def print_explanation(cli: Cli, explanation: Explanation) -> None:
    """Print an explanation: its summary and evidence, the role in each mirror, and the history."""
    cli.out.line(explanation.summary, style="bold")
    proof = "proves which objects exist" if explanation.evidence.proves else "proves nothing"
    listing = f"{explanation.evidence.namespace or 'the root'}: {explanation.evidence.state}, {proof}"
    _print_pairs(cli, [
        ("id", explanation.id), ("kind", explanation.kind), ("location", explanation.location), ("verified", explanation.verified),
        ("listing", listing), ("crawled", format_time(explanation.evidence.crawled_at)),
    ])  # fmt: skip
    for part in explanation.parts:
        other_side = f" {'to' if part.role == 'origin' else 'from'} {part.other}" if part.other else ""
        cli.out.line("")
        cli.out.line(f"mirror {part.mirror}, as {part.role}{other_side}", style="bold")
        ledger_state = "owned, in the ledger" if part.in_ledger else "not in the ledger"
        missed = f"; missed {part.misses} times" if part.misses else ""
        _print_pairs(cli, [("ledger", ledger_state + missed), ("reason", part.reason), ("next", part.next)])
    if explanation.history:
        cli.out.line("")
        columns = [Column("when"), Column("what", wide=True), Column("mirror"), Column("run"), Column("why", wide=True)]
        cli.out.table(
            columns,
            [
                (format_column_time(event.at), event.what, event.mirror or "", event.run_id, event.detail)
                for event in explanation.history
            ],
        )


def _print_pairs(cli: Cli, pairs: list[tuple[str, str | None]]) -> None:
    cli.out.pairs([(name, text.replace("_", " ") if name in ("kind", "verified") else text) for name, text in pairs if text])


def register(app: typer.Typer) -> None:
    command(app, "explain", paged=True)(explain)
