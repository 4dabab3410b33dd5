"""Exports of the audit log, as JSON lines and Parquet, with the heads and signatures that prove them without the index."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.audit.chain import Finding, Mark, walk
from federator.audit.heads import Head, recorded
from federator.audit.keys import Signer, is_signed
from federator.audit.proof import Proof, forged
from federator.connector import StateError
from federator.index import Index, audit_log
from federator.index.bulk import chunks
from federator.model import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: of each line and row, as of the table
COLUMNS = ("seq", "at", "kind", "actor", "run_id", "subject", "event", "previous", "digest")
HEADS = "heads.json"
_FORMATS = ("jsonl", "parquet")
_BATCH = 10_000


@dataclass(frozen=True)
class Manifest:
    """What an export holds: the events after ``after`` up to and with ``through``, each given by number and digest."""

    chain: str
    after: tuple[int, str]
    through: tuple[int, str]
    at: float
    heads: tuple[Head, ...] = ()
    key: str | None = None
    signature: str | None = None

    @property
    def payload(self) -> bytes:
        """What is signed."""
        return f"federator audit export\n{canonical_json([self.chain, self.after, self.through, self.at])}".encode()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """Raises KeyError, TypeError and ValueError for data of another form."""
        heads = tuple(Head.from_json(head) for head in data["heads"])
        (first, before), (last, digest) = data["after"], data["through"]
        ends = (int(first), str(before)), (int(last), str(digest))
        return cls(data["chain"], *ends, data["at"], heads, data["key"], data["signature"])


def export(index: Index, target: Path, *, start: int = 1, through: int | None = None, signer: Signer | None = None) -> Manifest:
    """Writes sealed events from ``start`` on: to a new directory in both formats, or to one file ``*.jsonl`` or ``*.parquet``.

    Raises StateError where there is nothing to export, or where something is at ``target`` already.
    """
    single = target.suffix.removeprefix(".") in _FORMATS
    if target.exists():
        raise StateError(f"{target} is there already", hint="an export is never overwritten: choose another name")
    with index.read() as connection:
        last = audit_log.head(connection)[0] if through is None else through
        digest = audit_log.digest_at(connection, last)
    first = next(audit_log.every_event(index, after=start - 1, through=last), None)
    if first is None or digest is None:
        raise StateError(f"there is no sealed event from {start} up to {last}")
    after = (first["seq"] - 1, first["previous"])
    heads = tuple(head for head in recorded(index) if after[0] <= head.seq <= last)
    manifest = Manifest(audit_log.known_chain(index), after, (last, digest), time.time(), heads)
    if signer is not None:
        signature = signer.sign(manifest.payload)
        manifest = Manifest(manifest.chain, after, (last, digest), manifest.at, heads, signer.id, signature)
    try:
        if not single:
            target.mkdir(parents=True)
        for path in [target] if single else [target / f"events.{name}" for name in _FORMATS]:
            rows = audit_log.every_event(index, after=after[0], through=last)
            (_write_lines if path.suffix == ".jsonl" else _write_parquet)(path, rows)
        with _written(_heads_of(target)) as path:
            path.write_text(json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise StateError(f"{target}: the export cannot be written: {error.strerror}") from None
    return manifest


def prove_export(path: Path, *, keys: Mapping[str, Ed25519PublicKey] | None = None) -> Proof:
    """What can be proven of an export, or of one of its files, without the index; with ``keys`` also that it is whole and ours.

    Raises StateError for what is no export.
    """
    manifest = _manifest(_heads_of(path))
    files = [path] if path.is_file() else [file for name in _FORMATS if (file := path / f"events.{name}").is_file()]
    if not files:
        raise StateError(f"{path} holds no export", hint="a directory or file that federator audit export wrote")
    proofs = [_prove_file(file, manifest, keys) for file in files]
    return min(proofs, key=lambda proof: (proof.intact, proof.finding.seq if proof.finding else 0))


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of one file, in its order; a line that is no event comes as one that fits nowhere. Raises StateError."""
    try:
        yield from (_read_lines if path.suffix == ".jsonl" else _read_parquet)(path)
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror or error}") from None


def _prove_file(path: Path, manifest: Manifest, keys: Mapping[str, Ed25519PublicKey] | None) -> Proof:
    marks = [Mark(*manifest.through, "exported")]
    marks += [Mark(head.seq, head.digest, "signed" if keys and head.signature else "recorded") for head in manifest.heads]
    found = walk(read_events(path), marks, base=manifest.after, keys=keys)
    first, last = manifest.after[0] + 1, manifest.through[0]
    signed = bool(keys) and is_signed(manifest.payload, manifest.key, manifest.signature, keys or {})
    finding = found.finding
    if finding is None and found.seq > last:
        finding = Finding(last + 1, f"event {last + 1} was added after the export")
    if finding is None and keys and not signed:
        finding = Finding(first, f"the export is not signed by a known key: its key is {manifest.key or 'none'}")
    finding = finding or forged(manifest.heads, keys)
    return Proof(first, found.seq, found.digest, finding, last if signed and finding is None else 0, 0, 0)


def _manifest(path: Path) -> Manifest:
    try:
        return Manifest.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}", hint="it belongs to every export") from None
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{path} was altered: it holds no heads of an export") from None


def _heads_of(target: Path) -> Path:
    single = target.suffix.removeprefix(".") in _FORMATS
    return target.with_name(f"{target.name}.{HEADS}") if single else target / HEADS


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with _written(path) as part, part.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(canonical_json({name: row[name] for name in COLUMNS}) + "\n")


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            yield {name: found.get(name) if isinstance(found, dict) else None for name in COLUMNS}


def _write_parquet(path: Path, rows: Iterator[Mapping[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    types = {"seq": pa.int64(), "at": pa.float64()}
    schema = pa.schema([pa.field(name, types.get(name, pa.string())) for name in COLUMNS])
    with _written(path) as part, parquet.ParquetWriter(part, schema) as writer:
        for batch in chunks(({name: row[name] for name in COLUMNS} for row in rows), _BATCH):
            writer.write_table(pa.Table.from_pylist(batch, schema))


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH):
                rows: Sequence[dict[str, Any]] = batch.to_pylist()
                yield from ({name: row.get(name) for name in COLUMNS} for row in rows)
    except pa.ArrowException as error:
        raise StateError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    """A name to write under; only what is whole and on disk gets its own."""
    part = path.with_name(f".{path.name}.part")
    yield part
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)
