"""Exports of the audit log as JSON lines and Parquet, with heads and signatures that prove them without the index."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.audit.chain import Attestation, EventRef, Finding, check_chain
from federator.audit.heads import Head, list_heads
from federator.audit.keys import Signer, is_valid_signature
from federator.audit.verification import AuditProof, find_forged_head
from federator.connector import StateError
from federator.model import canonical_json
from federator.runtime.durable_files import sync_directory
from federator.runtime.text import first_line
from federator.store import Index, audit_log
from federator.store.audit_log import SealedEvent
from federator.store.sql import chunked

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: the columns of each line and row, the same as the table's
COLUMNS = ("seq", "at", "kind", "actor", "run_id", "subject", "event", "previous", "digest")
#: the file with the manifest
HEADS = "heads.json"
_FORMATS = ("jsonl", "parquet")
_BATCH_ROWS = 10_000


@dataclass(frozen=True)
class Manifest:
    """The content of an export: the events after ``after`` up to and including ``through``, and the heads among them."""

    chain: str
    after: EventRef
    through: EventRef
    at: float
    heads: tuple[Head, ...] = ()
    key: str | None = None
    signature: str | None = None

    @property
    def payload(self) -> bytes:
        """The signed content."""
        return f"federator audit export\n{canonical_json([self.chain, self.after, self.through, self.at])}".encode()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """Parse a manifest. Raise KeyError, TypeError or ValueError for data of another form."""
        heads = tuple(Head.from_json(head) for head in data["heads"])
        after, through = (EventRef(int(seq), str(digest)) for seq, digest in (data["after"], data["through"]))
        return cls(data["chain"], after, through, data["at"], heads, data["key"], data["signature"])


def export(index: Index, target: Path, *, start: int = 1, through: int | None = None, signer: Signer | None = None) -> Manifest:
    """Write sealed events from ``start`` on: to a new directory in both formats, or to one file ``*.jsonl`` or ``*.parquet``.

    Raise StateError if there are no such events, or if ``target`` already exists.
    """
    is_single_file = _is_single_file(target)
    if target.exists():
        raise StateError(f"{target} already exists", hint="choose another name: an export is never overwritten")
    with index.read() as connection:
        last = audit_log.get_chain_tip(connection)[0] if through is None else through
        digest = audit_log.find_digest(connection, last)
    first = next(audit_log.iter_events(index, after=start - 1, through=last), None)
    if first is None or digest is None:
        raise StateError(f"there are no sealed events from {start} to {last}")
    after = EventRef(first.seq - 1, first.previous)
    heads = tuple(head for head in list_heads(index) if after.seq <= head.seq <= last)
    manifest = Manifest(audit_log.find_chain_id(index), after, EventRef(last, digest), time.time(), heads)
    if signer is not None:
        manifest = replace(manifest, key=signer.id, signature=signer.sign(manifest.payload))
    try:
        if not is_single_file:
            target.mkdir(parents=True)
        for path in [target] if is_single_file else [target / f"events.{name}" for name in _FORMATS]:
            events = audit_log.iter_events(index, after=after.seq, through=last)
            (_write_lines if path.suffix == ".jsonl" else _write_parquet)(path, events)
        with _write_atomically(_manifest_path(target)) as path:
            path.write_text(json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n", encoding="utf-8")
        # A rotation removes the events from the index afterwards.
        for directory in {_manifest_path(target).parent, target.parent}:
            sync_directory(directory)
    except OSError as error:
        raise StateError(f"{target}: the export cannot be written: {error.strerror}") from None
    return manifest


def verify_export(path: Path, *, keys: Mapping[str, Ed25519PublicKey] | None = None) -> AuditProof:
    """Return the proof of an export, or of one of its files, without the index. With ``keys``, its signature must be valid too.

    Raise StateError if the path is not an export.
    """
    manifest = _read_manifest(_manifest_path(path))
    files = [path] if path.is_file() else [file for name in _FORMATS if (file := path / f"events.{name}").is_file()]
    if not files:
        raise StateError(f"{path} is not an export", hint="use a directory or file that federator audit export wrote")
    proofs = [_verify_file(file, manifest, keys) for file in files]
    # The same events in two formats: the one whose finding is the earliest, else any.
    return min(proofs, key=lambda proof: (proof.is_intact, proof.finding.seq if proof.finding else 0))


def iter_exported_events(path: Path) -> Iterator[SealedEvent]:
    """Iterate over the events of one file, in its order. A malformed line gives an event without values. Raise StateError."""
    try:
        yield from (_read_lines if path.suffix == ".jsonl" else _read_parquet)(path)
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror or error}") from None


def _verify_file(path: Path, manifest: Manifest, keys: Mapping[str, Ed25519PublicKey] | None) -> AuditProof:
    attestations = [Attestation(*manifest.through, "exported")]
    attestations += [
        Attestation(head.seq, head.digest, "signed" if keys and head.signature else "recorded") for head in manifest.heads
    ]
    check = check_chain(iter_exported_events(path), attestations, base=manifest.after, keys=keys)
    first, last = manifest.after.seq + 1, manifest.through.seq
    signed = bool(keys) and is_valid_signature(manifest.payload, manifest.key, manifest.signature, keys or {})
    finding = check.finding
    if finding is None and check.seq > last:
        finding = Finding(last + 1, f"event {last + 1} was added after the export")
    if finding is None and keys and not signed:
        finding = Finding(first, f"the export is not signed by a known key: its key is {manifest.key or 'none'}")
    finding = finding or find_forged_head(manifest.heads, keys)
    signed_through = last if signed and finding is None else 0
    return AuditProof(first, check.seq, check.digest, finding, signed=signed_through, anchored=0, unsealed=0)


def _read_manifest(path: Path) -> Manifest:
    try:
        return Manifest.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise StateError(
            f"{path} cannot be read: {error.strerror}", hint="every export contains this file: restore it"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{path} was altered: it does not contain the heads of an export") from None


def _manifest_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.{HEADS}") if _is_single_file(target) else target / HEADS


def _is_single_file(target: Path) -> bool:
    return target.suffix.removeprefix(".") in _FORMATS


def _write_lines(path: Path, events: Iterable[SealedEvent]) -> None:
    with _write_atomically(path) as part, part.open("w", encoding="utf-8") as file:
        for event in events:
            file.write(canonical_json(asdict(event)) + "\n")


def _read_lines(path: Path) -> Iterator[SealedEvent]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                event = None
            yield _parse_event(event if isinstance(event, dict) else {})


def _write_parquet(path: Path, events: Iterable[SealedEvent]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    types = {"seq": pa.int64(), "at": pa.float64()}
    schema = pa.schema([pa.field(name, types.get(name, pa.string())) for name in COLUMNS])
    with _write_atomically(path) as part, parquet.ParquetWriter(part, schema) as writer:
        for batch in chunked(map(asdict, events), _BATCH_ROWS):
            writer.write_table(pa.Table.from_pylist(batch, schema))


def _read_parquet(path: Path) -> Iterator[SealedEvent]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS):
                yield from map(_parse_event, batch.to_pylist())
    except pa.ArrowException as error:
        raise StateError(f"{path} cannot be read as Parquet: {first_line(error)}") from None


def _parse_event(values: Mapping[str, Any]) -> SealedEvent:
    """Build an event from untrusted values. Missing ones are None, which ``check_chain`` reports."""
    fields: dict[str, Any] = {name: values.get(name) for name in COLUMNS}
    return SealedEvent(**fields)


@contextmanager
def _write_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. The file gets its final path when it is complete."""
    temporary = path.with_name(f".{path.name}.part")
    yield temporary
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
