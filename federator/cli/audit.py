"""``audit``: list, verify, export and rotate audit events."""

from __future__ import annotations

import getpass
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federator.cli.context import Cli, command, create_group, cut_list
from federator.cli.errors import FAILED, OK, PARTIAL, print_message
from federator.cli.plan_output import shorten_digest
from federator.cli.printer import format_column_time
from federator.cli.terminal import Column
from federator.connector.errors import ConfigError
from federator.model.audit_kinds import AuditKind
from federator.runtime.text import format_count

if TYPE_CHECKING:
    from federator.audit import AuditProof

# Maximum number of shown keys of a changed configuration; JSON has all of them.
_MAX_KEYS = 5

group = create_group("The audit log: list, verify, export, rotate.")

PUBLIC_KEY = Annotated[
    list[Path] | None, typer.Option("--public-key", metavar="FILE", help="Public key to check signatures with. Repeatable.")
]


def list_(
    cli: Cli,
    kind: Annotated[
        AuditKind | None, typer.Option("--kind", metavar="KIND", help="Only events of this kind, e.g. write.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", help="Only events about this object, e.g. 'aws$sales$orders'.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", help="Only events of this run.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only events since this time: 24h, or 2026-01-31T12:00:00Z.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of events, newest first.")] = 50,
) -> None:
    """List sealed events, newest first."""
    from federator.store import audit_log

    filters = audit_log.AuditFilter(kind, subject, run, _parse_since(since) if since is not None else None)
    with cli.index() as index:
        found = audit_log.list_recent_events(index, filters, limit=limit + 1)
    events, more = cut_list(found, limit)
    if cli.json:
        document = {"events": [asdict(event) for event in events], "more": more}
        cli.out.document(document, rows="events", columns=audit_log.AuditEvent)
    elif not events:
        cli.print_note("no event matches")
    else:
        columns = [Column("event", right=True), Column("at"), Column("kind"), Column("by"), Column("what", wide=True)]
        rows = [
            (event.seq, format_column_time(event.at), event.kind, event.actor,
             "  ".join(filter(None, (event.subject, _format_detail(event.detail)))))
            for event in events
        ]  # fmt: skip
        cli.out.table(columns, rows)
        if more:
            cli.print_more(limit)


def verify(
    cli: Cli,
    file: Annotated[Path | None, typer.Option("--file", metavar="PATH", help="Export to check, instead of the index.")] = None,
    public_key: PUBLIC_KEY = None,
) -> int:
    """Verify the chain: no event was altered, removed, added or moved, the signatures are valid, and the anchor agrees."""
    from federator.audit.keys import load_public_keys

    keys = load_public_keys(public_key) if public_key else {}
    if file is not None:
        from federator.audit.export import verify_export

        return _print_proof(cli, verify_export(file, keys=keys), checks_signatures=bool(keys))
    from federator.audit import verify_log
    from federator.audit.sealing import configured_anchor, configured_signer

    signer = configured_signer(cli.settings)
    if signer is not None:
        keys = {**keys, signer.id: signer.public}
    anchor = configured_anchor(cli.settings)
    with cli.index() as index:
        proof = verify_log(index, keys=keys, anchor=anchor)
    return _print_proof(cli, proof, checks_signatures=bool(keys), checks_anchor=anchor is not None)


def export(
    cli: Cli,
    target: Annotated[
        Path, typer.Option("--out", "-o", metavar="PATH", help="Target: a directory, or a file *.jsonl or *.parquet.")
    ],
    start: Annotated[int, typer.Option("--from", min=1, metavar="SEQ", help="Sequence number of the first event.")] = 1,
) -> None:
    """Export sealed events as JSON lines and Parquet, with the signed heads, so that they can be verified anywhere."""
    from federator.audit import seal_and_publish
    from federator.audit.export import export as write_export
    from federator.audit.sealing import configured_signer

    with cli.index() as index:
        seal_and_publish(index, cli.settings)
        result = write_export(index, target, start=start, signer=configured_signer(cli.settings))
    if cli.json:
        cli.out.document(
            {"path": str(target), "from": result.after.seq + 1, "through": result.through.seq, "signed_by": result.key}
        )
    else:
        signature = f"signed by key {result.key}" if result.key else "not signed: [audit] key is not set"
        cli.out.line(f"{target}: {format_count(result.through.seq - result.after.seq, 'event')}, {signature}")


def rotate(
    cli: Cli,
    target: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Directory for the removed events.")],
    keep: Annotated[str, typer.Option("--keep", metavar="DURATION", help="Remove events older than this.")] = "90d",
    through: Annotated[
        int | None,
        typer.Option(
            "--through", metavar="SEQ", help="Sequence number of the last event to remove. Cannot be combined with --keep."
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Index URL with the owner's login, e.g. '${OWNER_URL}'. Default: [index] url.")
    ] = None,
) -> None:
    """Move old events out of the index into an export, with a signed checkpoint in their place."""
    from federator.audit import seal_and_publish
    from federator.audit.rotation import rotate_events
    from federator.audit.sealing import configured_signer
    from federator.connector.options import resolve_reference
    from federator.store import audit_log, open_index

    settings = cli.settings
    signer = configured_signer(settings)
    if signer is None:
        raise ConfigError(
            f"{settings.path}: [audit] key is not set, but rotation signs a checkpoint", hint="run federator audit keygen"
        )
    with cli.index() as index:
        owner = open_index(resolve_reference(url, where="--url"), base=settings.base) if url is not None else index
        try:
            with index.read() as connection:
                last_removed = audit_log.last_seq_before(connection, _parse_since(keep)) if through is None else through
            removed = 0
            if last_removed > 0:
                removed = rotate_events(owner, target, through=last_removed, signer=signer, actor=getpass.getuser())
            seal_and_publish(index, settings)
        finally:
            if owner is not index:
                owner.close()
    if cli.json:
        cli.out.document({"path": str(target) if removed else None, "removed": removed, "through": last_removed})
    else:
        cli.out.line(f"{format_count(removed, 'event')} moved to {target}" if removed else "no event is old enough")


def keygen(
    cli: Cli,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File for the private key; the public key is written to FILE.pub.")
    ],
) -> None:
    """Create a pair of Ed25519 keys for signing the heads of the audit log."""
    from federator.audit.keys import generate_key_pair

    key = generate_key_pair(file)
    if cli.json:
        cli.out.document({"key": key, "private": str(file), "public": f"{file}.pub"})
    else:
        cli.out.line(f"key {key}: {file} (keep it secret), {file}.pub (needed for verification)")
        cli.print_note(f'[audit] key = "file:{file.absolute()}"')


def _print_proof(cli: Cli, proof: AuditProof, *, checks_signatures: bool, checks_anchor: bool = False) -> int:
    """Print the proof and return the exit code: PARTIAL if the newest events are not signed or not anchored."""
    finding, count = proof.finding, max(proof.last - proof.first + 1, 0)
    if cli.json:
        cli.out.document({
            "intact": proof.is_intact, "events": count, "first": proof.first, "last": proof.last, "unsealed": proof.unsealed,
            "first_broken": finding.seq if finding else None, "finding": finding.what if finding else None,
            "signed": proof.signed, "anchored": proof.anchored, "tail": proof.tail, "head": proof.digest,
        })  # fmt: skip
    elif finding is None:
        cli.out.line(f"intact: {format_count(count, 'event')}, head {proof.digest[:12] or '(none)'}")
        cli.out.line(_proof_summary(proof, checks_signatures=checks_signatures, checks_anchor=checks_anchor))
    if finding is not None:
        print_message(f"first bad event {finding.seq}: {finding.what}")
        return FAILED
    behind = (checks_signatures and proof.signed < proof.last) or (checks_anchor and proof.anchored < proof.last)
    return PARTIAL if behind else OK


def _proof_summary(proof: AuditProof, *, checks_signatures: bool, checks_anchor: bool) -> str:
    """Return which events the signatures and the anchor attest. The *tail* is what follows them: an attacker can cut it off unseen."""
    signed = f"signed up to event {proof.signed}" if checks_signatures else "signatures not checked: no key"
    if proof.tail == "proven":
        return f"{signed}; anchored up to event {proof.anchored}: the tail is proven"
    reason = f"anchored up to event {proof.anchored}" if checks_anchor else "no anchor"
    return f"{signed}; the tail is unproven: {reason}, so later events could have been cut off"


def _format_detail(detail: dict[str, Any]) -> str:
    shown = {**detail, "plan": shorten_digest(detail.get("plan") or "")}
    parts = [str(shown[name]) for name in ("action", "state", "code", "message", "trigger", "plan") if shown.get(name)]
    # Of a changed configuration, the first keys that changed are of interest, not the digests.
    others = (f"{name.replace('_', ' ')} {_format_value(name, value)}" for name, value in detail.items() if value is not None)
    changed = list(detail.get("changed") or ())
    if len(changed) > _MAX_KEYS:
        changed[_MAX_KEYS:] = [f"{len(changed) - _MAX_KEYS:,} more"]
    return " ".join(parts) or ", ".join(changed or others)


def _format_value(name: str, value: Any) -> str:
    if name.endswith("_at") and isinstance(value, float):
        return format_column_time(value)
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _parse_since(text: str) -> float:
    """Parse a time, or a duration before now. Return seconds since the epoch."""
    from datetime import UTC, datetime

    from federator.settings import parse_duration

    try:
        return time.time() - parse_duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a time", hint="use 24h, or 2026-01-31T12:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def register(app: typer.Typer) -> None:
    command(group, "list", paged=True)(list_)
    command(group, "verify")(verify)
    command(group, "export")(export)
    command(group, "rotate")(rotate)
    command(group, "keygen")(keygen)
    app.add_typer(group, name="audit")
