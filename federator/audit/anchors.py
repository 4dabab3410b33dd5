"""Anchors: external stores for the heads of the chain, which writers of the index cannot change.

``file:///path/anchors.jsonl`` (one line per head, appended and flushed to disk), ``s3://bucket/prefix`` (one object per head) and
``https://...`` (one POST per head, which cannot be read back).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from federator.audit.heads import Head
from federator.connector import StateError
from federator.connector.options import is_secret_key, resolve_reference, resolve_secret
from federator.runtime.durable_files import sync_directory

if TYPE_CHECKING:
    from federator.settings import AuditSettings

_TIMEOUT_SECONDS = 10
# The names that boto3 uses for the options of [audit.storage].
_S3_OPTIONS = {
    "endpoint": "endpoint_url", "region": "region_name", "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key", "session_token": "aws_session_token",
}  # fmt: skip


class AnchorUnavailable(StateError):
    """A head could not be published, or the published heads could not be read."""


class Anchor(Protocol):
    """A store of published heads. Both methods raise AnchorUnavailable."""

    def publish(self, head: Head) -> None:
        """Publish a head. It is durable when this returns. Publishing the same head twice is harmless."""
        ...

    def read(self) -> list[Head] | None:
        """Return all published heads, of any chain. None if the anchor cannot be read back.

        An anchor serves one log, so heads with another chain id are from this log, too.
        """
        ...


def build_anchor(settings: AuditSettings, *, where: str) -> Anchor | None:
    """Return the configured anchor. Raise ConfigError."""
    if settings.anchor is None:
        return None
    parts = urlsplit(settings.anchor)
    if parts.scheme == "file":
        return FileAnchor(Path(unquote(parts.path)))
    if parts.scheme == "s3":
        options = {
            str(key): (resolve_secret if is_secret_key(key) else resolve_reference)(text, where=f"{where} storage.{key}")
            for key, text in settings.storage.items()
        }
        return ObjectAnchor(parts.netloc, parts.path.strip("/"), options)
    token = resolve_secret(settings.token, where=f"{where} token") if settings.token is not None else None
    return WebhookAnchor(settings.anchor, token)


@dataclass(frozen=True)
class FileAnchor:
    """A file of JSON lines. Best on a volume that this machine can only append to."""

    path: Path

    def publish(self, head: Head) -> None:
        line = json.dumps(head.to_json(), sort_keys=True) + "\n"
        try:
            with self.path.open("ab") as file:
                # A line that is incomplete after a crash must not absorb this one.
                is_new = file.tell() == 0
                file.write(line.encode() if is_new or self._ends_with_newline() else b"\n" + line.encode())
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_directory(self.path.parent)
        except OSError as error:
            raise AnchorUnavailable(f"the anchor {self.path} cannot be written: {error.strerror}") from None

    def read(self) -> list[Head] | None:
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise AnchorUnavailable(f"the anchor {self.path} cannot be read: {error.strerror}") from None
        heads = (_parse_head(line) for line in lines)
        return [head for head in heads if head is not None]

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


@dataclass(frozen=True)
class WebhookAnchor:
    """An HTTP service that stores the heads: each is sent as JSON, with a bearer token if one is configured."""

    url: str
    token: str | None

    def __repr__(self) -> str:
        return f"WebhookAnchor({self.url!r})"

    def publish(self, head: Head) -> None:
        import requests

        headers = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        service = f"the anchor {urlsplit(self.url).hostname}"
        try:
            # A redirect could send the token to a host that is not configured.
            response = requests.post(
                self.url, json=head.to_json(), headers=headers, timeout=_TIMEOUT_SECONDS, allow_redirects=False
            )
        except requests.RequestException as error:
            raise AnchorUnavailable(f"{service} does not respond: {type(error).__name__}") from None
        if not 200 <= response.status_code < 300:
            raise AnchorUnavailable(f"{service} returned status {response.status_code}")

    def read(self) -> list[Head] | None:
        return None


@dataclass(frozen=True)
class ObjectAnchor:
    """Objects ``prefix/chain/number-digest.json``. Best in a bucket with object lock. The object names alone prove the chain."""

    bucket: str
    prefix: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ObjectAnchor({self.bucket!r}, {self.prefix!r})"

    def publish(self, head: Head) -> None:
        with self._client() as client:
            key = f"{self._root}{head.chain}/{head.seq:020d}-{head.digest}.json"
            client.put_object(Bucket=self.bucket, Key=key, Body=json.dumps(head.to_json(), sort_keys=True).encode())

    def read(self) -> list[Head] | None:
        with self._client() as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self._root)
            names = [item["Key"].removeprefix(self._root) for page in pages for item in page.get("Contents", [])]
        heads = []
        for name in names:
            chain, _, file = name.partition("/")
            number, _, digest = file.removesuffix(".json").partition("-")
            if number.isdecimal() and digest:
                heads.append(Head(chain, int(number), digest, 0.0))
        return heads

    @property
    def _root(self) -> str:
        return f"{self.prefix}/" if self.prefix else ""

    @contextmanager
    def _client(self) -> Iterator[Any]:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        config = Config(connect_timeout=_TIMEOUT_SECONDS, read_timeout=_TIMEOUT_SECONDS, retries={"total_max_attempts": 3})
        options: dict[str, Any] = {_S3_OPTIONS[key]: value for key, value in self.options.items()}
        try:
            yield boto3.client("s3", config=config, **options)
        except (BotoCoreError, ClientError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
            raise AnchorUnavailable(f"the anchor s3://{self.bucket} cannot be used: {code}") from None


def _parse_head(line: str) -> Head | None:
    """Return the head of a line. None for an incomplete line; the index's record of published heads reveals the loss."""
    try:
        return Head.from_json(json.loads(line))
    except (ValueError, KeyError, TypeError):
        return None
