"""``audit``: the record of what was done, and its proof."""

from __future__ import annotations

import getpass
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli.context import Cli, command
from federator.cli.errors import FAILED, OK, PARTIAL, say_error
from federator.cli.output import Column, at, counted
from federator.connector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from federator.audit import Proof

group = typer.Typer(help="The append-only record of what was done.", no_args_is_help=True, rich_markup_mode=None)

PUBLIC_KEY = Annotated[
    list[Path] | None, typer.Option("--public-key", metavar="FILE", help="A key that signed; may be given more than once.")
]


def list_(
    cli: Cli,
    kind: Annotated[str | None, typer.Option("--kind", help="Only events of this kind, e.g. write.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="Only events about this, e.g. 'aws$sales$orders'.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Only events of this run.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Only events since then: 24h, or 2026-01-31T12:00:00Z.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, newest first.")] = 50,
) -> None:
    """List sealed events, newest first."""
    from federator.index import audit_log

    wanted = audit_log.Filter(kind, subject, run, _moment(since) if since is not None else None)
    with cli.index() as index:
        rows = [{**row, "event": None, "detail": _detail(row)} for row in audit_log.newest(index, wanted, limit=limit)]
    if cli.json:
        cli.out.document({"events": [{name: value for name, value in row.items() if name != "event"} for row in rows]})
    elif not rows:
        cli.note("no such event")
    else:
        columns = [Column("event", right=True), Column("at"), Column("kind"), Column("by"), Column("subject", wide=True),
                   Column("what", wide=True)]  # fmt: skip
        shown = [(row["seq"], at(row["at"]), row["kind"], row["actor"], row["subject"], _what(row["detail"])) for row in rows]
        cli.out.table(columns, shown)


def verify(
    cli: Cli,
    file: Annotated[Path | None, typer.Option("--file", metavar="PATH", help="Check an export, without the index.")] = None,
    public_key: PUBLIC_KEY = None,
) -> int:
    """Check that no event was altered, removed, added or moved, that the signatures are ours and the anchor agrees."""
    from federator.audit.keys import public_keys

    keys = public_keys(public_key) if public_key else {}
    if file is not None:
        from federator.audit.export import prove_export

        return _told(cli, prove_export(file, keys=keys), signs=bool(keys))
    from federator.audit import prove
    from federator.audit.publish import anchor_of, signer_of

    signer = signer_of(cli.settings)
    if signer is not None:
        keys = {**keys, signer.id: signer.public}
    anchor = anchor_of(cli.settings)
    with cli.index() as index:
        proof = prove(index, keys=keys, anchor=anchor)
    return _told(cli, proof, signs=bool(keys), anchors=anchor is not None)


def export(
    cli: Cli,
    target: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="A directory, or a file *.jsonl or *.parquet.")],
    start: Annotated[int, typer.Option("--from", min=1, metavar="SEQ", help="The first event.")] = 1,
) -> None:
    """Export sealed events as JSON lines and Parquet, with the signed heads that prove them anywhere."""
    from federator.audit import seal_and_publish
    from federator.audit.export import export as write
    from federator.audit.publish import signer_of

    with cli.index() as index:
        seal_and_publish(index, cli.settings)
        made = write(index, target, start=start, signer=signer_of(cli.settings))
    if cli.json:
        cli.out.document({"path": str(target), "from": made.after[0] + 1, "through": made.through[0], "signed_by": made.key})
    else:
        signed = f"signed by key {made.key}" if made.key else "not signed: [audit] key is not set"
        cli.out.line(f"{target}: {counted(made.through[0] - made.after[0], 'event')}, {signed}")


def rotate(
    cli: Cli,
    target: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the removed events are kept.")],
    keep: Annotated[str, typer.Option("--keep", metavar="DURATION", help="How old an event must be to leave.")] = "90d",
    through: Annotated[
        int | None, typer.Option("--through", metavar="SEQ", help="The last event to leave; not --keep.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="The index as its owner, e.g. '${OWNER_URL}'. Default: [index] url.")
    ] = None,
) -> None:
    """Move old events out of the index into an export, with a signed checkpoint in their place."""
    from federator.audit import seal_and_publish
    from federator.audit.publish import signer_of
    from federator.audit.rotate import rotate as move
    from federator.connector.options import resolve
    from federator.index import audit_log, open_index

    settings = cli.settings
    signer = signer_of(settings)
    if signer is None:
        raise ConfigError(f"{settings.path}: [audit] key: rotation signs a checkpoint", hint="federator audit keygen")
    with cli.index() as index:
        owner = open_index(resolve(url, where="--url"), base=settings.base) if url is not None else index
        try:
            with index.read() as connection:
                last = audit_log.last_before(connection, _moment(keep)) if through is None else through
            removed = move(owner, target, through=last, signer=signer, actor=getpass.getuser()) if last > 0 else 0
            seal_and_publish(index, settings)
        finally:
            if owner is not index:
                owner.close()
    if cli.json:
        cli.out.document({"path": str(target) if removed else None, "removed": removed, "through": last})
    else:
        cli.out.line(f"{counted(removed, 'event')} moved to {target}" if removed else "no event is old enough")


def keygen(
    cli: Cli,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The private key; the public one is FILE.pub.")],
) -> None:
    """Make a pair of Ed25519 keys that sign the audit's heads."""
    from federator.audit.keys import generate

    key = generate(file)
    if cli.json:
        cli.out.document({"key": key, "private": str(file), "public": f"{file}.pub"})
    else:
        cli.out.line(f"key {key}: {file} (keep it), {file}.pub (give it to who verifies)")
        cli.note(f'[audit] key = "file:{file.absolute()}"')


def _told(cli: Cli, proof: Proof, *, signs: bool, anchors: bool = False) -> int:
    finding, held = proof.finding, max(proof.last - proof.first + 1, 0)
    if cli.json:
        cli.out.document({
            "intact": proof.intact, "events": held, "first": proof.first, "last": proof.last, "unsealed": proof.unsealed,
            "first_broken": finding.seq if finding else None, "finding": finding.what if finding else None,
            "signed": proof.signed, "anchored": proof.anchored, "tail": proof.tail, "head": proof.digest,
        })  # fmt: skip
    elif finding is None:
        cli.out.line(f"intact: {counted(held, 'event')}, head {proof.digest[:12] or '(none)'}")
        cli.out.line(_said(proof, signs=signs, anchors=anchors))
    if finding is not None:
        say_error(f"first bad event {finding.seq}: {finding.what}")
        return FAILED
    behind = (signs and proof.signed < proof.last) or (anchors and proof.anchored < proof.last)
    return PARTIAL if behind else OK


def _said(proof: Proof, *, signs: bool, anchors: bool) -> str:
    signed = f"signed up to event {proof.signed}" if signs else "signatures not checked: no key"
    if proof.tail == "proven":
        return f"{signed}; anchored up to event {proof.anchored}: the tail is proven"
    reason = f"anchored up to event {proof.anchored}" if anchors else "no anchor"
    return f"{signed}; the tail is unproven: {reason}, and events after that could have been cut off"


def _detail(row: Mapping[Any, Any]) -> dict[str, Any]:
    from federator.connector.options import masked

    detail: dict[str, Any] = masked(json.loads(row["event"])["detail"])
    return detail


def _what(detail: dict[str, Any]) -> str:
    parts = [str(detail[name]) for name in ("action", "state", "code", "message", "trigger", "plan") if detail.get(name)]
    return " ".join(parts) or ", ".join(detail)


def _moment(text: str) -> float:
    """Seconds since the epoch of a time, or of so long ago."""
    from datetime import UTC, datetime

    from federator.settings import seconds

    try:
        return time.time() - seconds(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is no time", hint="24h, or 2026-01-31T12:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def register(app: typer.Typer) -> None:
    command(group, "list")(list_)
    command(group, "verify")(verify)
    command(group, "export")(export)
    command(group, "rotate")(rotate)
    command(group, "keygen")(keygen)
    app.add_typer(group, name="audit")
