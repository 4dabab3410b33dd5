"""Plan files: ``plan -o`` saves them, ``apply FILE`` applies them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.connector.errors import ConfigError, StateError
from federator.runtime.private_files import write_private_text

if TYPE_CHECKING:
    from federator.planning.plan import Plan
    from federator.store import Index

VERSION = 1


def save_plans(file: Path, plans: Sequence[Plan]) -> None:
    """Write plans with their digests. Raise ConfigError if the file cannot be written."""
    body = {"version": VERSION, "plans": [{"digest": plan.digest, "plan": plan.to_json()} for plan in plans]}
    try:
        write_private_text(file, json.dumps(body, indent=1) + "\n")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror})") from None


def load_plans(file: Path, index: Index) -> list[tuple[Plan, str]]:
    """Return the plans with their saved digests. Raise StateError unless this index created each plan and each can be applied."""
    from federator.planning.plan import Plan
    from federator.store import plans

    try:
        entries = _entries(file)
        plans_with_digests = [(Plan.from_json(entry["plan"]), str(entry["digest"])) for entry in entries]
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"{file}: not a plan file ({type(error).__name__}: {error})", hint="create one with federator plan -o FILE"
        ) from None
    with index.read() as connection:
        for _, digest in plans_with_digests:
            # The digest in the file only detects accidental changes; the decision is in the index.
            plans.require_applicable(connection, digest)
    return plans_with_digests


def _entries(file: Path) -> list[dict[str, Any]]:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such file", hint="create one with federator plan -o FILE") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None
    if body["version"] != VERSION:
        raise StateError(f"{file}: plan file of version {body['version']}, but this program supports version {VERSION}")
    entries: list[dict[str, Any]] = body["plans"]
    return entries
