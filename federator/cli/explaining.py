"""``explain``: why an object is where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from federator.cli.browse import parsed
from federator.cli.context import Cli, command
from federator.cli.output import Column, at

if TYPE_CHECKING:
    from federator.sync.explaining import Explanation


def explain(
    cli: Cli,
    id: Annotated[str, typer.Argument(metavar="ID", help="A table or namespace, as tree shows it: source$namespace$table.")],
) -> None:
    """Explain why an object is here or not: evidence, mirrors, history, and what would happen next."""
    from federator.sync.explaining import explain as explained

    with cli.index() as index:
        found = explained(cli.settings, index, parsed(id))
    if cli.json:
        cli.out.document(found.to_json())
        return
    show_explanation(cli, found)


def show_explanation(cli: Cli, found: Explanation) -> None:
    """Prints an explanation: the summary, its evidence, each mirror's part, the history."""
    cli.out.line(found.summary, style="bold")
    proof = "proves what is there" if found.evidence.proves else "proves nothing"
    listing = f"{found.evidence.namespace or 'the root'}: {found.evidence.state}, {proof}"
    _pairs(cli, [
        ("id", found.id), ("kind", found.kind), ("location", found.location), ("verified", found.verified),
        ("listing", listing), ("crawled", at(found.evidence.crawled_at)),
    ])  # fmt: skip
    for part in found.parts:
        far = f" {'to' if part.role == 'origin' else 'from'} {part.other}" if part.other else ""
        cli.out.line("")
        cli.out.line(f"mirror {part.mirror}, as {part.role}{far}", style="bold")
        ours = "ours, in the ledger" if part.in_ledger else "not in the ledger"
        missed = f"; missed {part.misses} times" if part.misses else ""
        _pairs(cli, [("ledger", ours + missed), ("reason", part.reason), ("next", part.next)])
    if found.history:
        cli.out.line("")
        columns = [Column("when"), Column("what", wide=True), Column("mirror"), Column("run"), Column("why", wide=True)]
        cli.out.table(columns, [(at(e.at), e.what, e.mirror or "", e.run_id, e.detail) for e in found.history])


def _pairs(cli: Cli, pairs: list[tuple[str, str | None]]) -> None:
    cli.out.pairs([(name, text.replace("_", " ") if name in ("kind", "verified") else text) for name, text in pairs if text])


def register(app: typer.Typer) -> None:
    command(app, "explain")(explain)
