"""Plans in a file: what ``plan -o`` saves and ``apply FILE`` carries out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.connector.errors import ConfigError, StateError

if TYPE_CHECKING:
    from federator.index import Index
    from federator.planning.plan import Plan

VERSION = 1


def save(file: Path, plans: Sequence[Plan]) -> None:
    """Writes plans with their digests. Raises ConfigError where the file cannot be written."""
    body = {"version": VERSION, "plans": [{"digest": plan.digest, "plan": plan.to_json()} for plan in plans]}
    try:
        file.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror})") from None


def load(file: Path, index: Index) -> list[tuple[Plan, str]]:
    """Plans with the digests that they had. Raises StateError unless this index made each of them and nobody rejected it."""
    from federator.index import plans
    from federator.planning.plan import Plan

    try:
        entries = _entries(file)
        found = [(Plan.from_json(entry["plan"]), str(entry["digest"])) for entry in entries]
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"{file}: not a file of plans ({type(error).__name__}: {error})", hint="federator plan -o FILE makes one"
        ) from None
    with index.read() as connection:
        for _, digest in found:
            # The digest in the file protects against accidents; only the index knows what was really decided.
            plans.applicable(connection, digest)
    return found


def _entries(file: Path) -> list[dict[str, Any]]:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such file", hint="federator plan -o FILE makes one") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None
    if body["version"] != VERSION:
        raise StateError(f"{file}: a file of plans of version {body['version']}; this program knows version {VERSION}")
    entries: list[dict[str, Any]] = body["plans"]
    return entries
