"""A sealed, signed and anchored log on both databases."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from federator.audit import AuditProof, seal_pending, verify_log
from federator.audit.anchors import FileAnchor
from federator.audit.heads import record_head
from federator.audit.keys import Signer, generate_key_pair, load_signer
from federator.audit.sealing import publish_head
from federator.store import Index, audit_log


@dataclass
class Log:
    """A log with its key and anchor."""

    index: Index
    signer: Signer
    anchor: FileAnchor

    def add(self, *subjects: str, **detail: Any) -> None:
        """Seals events, signs and publishes their head."""
        with self.index.write() as connection:
            for subject in subjects:
                audit_log.append_event(
                    connection, "write", actor="ann", run_id="r", subject=subject, detail={"é": "😀", "n": 0.1, **detail}
                )
        seal_pending(self.index)
        self.publish()

    def publish(self) -> None:
        record_head(self.index, self.signer)
        publish_head(self.index, self.anchor)

    def prove(self, *, anchored: bool = True, signed: bool = True) -> AuditProof:
        keys = {self.signer.id: self.signer.public} if signed else None
        return verify_log(self.index, keys=keys, anchor=self.anchor if anchored else None)

    def bad(self, **how: bool) -> int | None:
        """The first bad event."""
        finding = self.prove(**how).finding
        return finding.seq if finding else None


@pytest.fixture
def index(either_index: Index) -> Index:
    return either_index


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private key; the public one is beside it."""
    path = tmp_path_factory.mktemp("keys") / "audit.pem"
    generate_key_pair(path)
    return path


@pytest.fixture
def make_log(key: Path, tmp_path: Path) -> Callable[[Index], Log]:
    return lambda index: Log(index, load_signer(f"file:{key}", where="key"), FileAnchor(tmp_path / "anchors.jsonl"))


@pytest.fixture
def log(index: Index, make_log: Callable[[Index], Log]) -> Log:
    return make_log(index)


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files and directories that are flushed to the disk, in order."""
    paths: list[str] = []
    flush = os.fsync

    def record(descriptor: int) -> None:
        flush(descriptor)
        paths.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fsync", record)
    return paths
