"""Replace or leave out objects with text that no index can store, so that their source can still be crawled.

The decision is the same for every connector and every index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from federator.connector.errors import InvalidInput
from federator.model import (
    ROOT,
    Coverage,
    Evidence,
    Kind,
    NamespaceRecord,
    Path,
    Record,
    TableRecord,
    failed_evidence,
    fold_digest,
    parent_path,
)
from federator.model.text import escape_unstorable, is_storable
from federator.planning.identity import IdentityReading

_CAUSE = "contains a NUL character or a lone surrogate, which cannot be stored"


@dataclass(slots=True)
class _Corrections:
    """The corrections to one namespace's coverage: the numbers of records that were left out and replaced, the change of the
    coverage's digest, and what is wrong with the last record."""

    left_out: int = 0
    replaced: int = 0
    digest: int = 0
    last_problem: str = ""


def storable_items(
    items: Iterable[Record | Coverage | IdentityReading],
) -> Iterator[Record | Coverage | IdentityReading]:
    """Yield the items of a crawl task as an index can store them. The coverage of a namespace follows its records.

    An object whose path cannot be stored is left out, and the coverage of its parent proves no absence. A table with other text
    that cannot be stored is ``undescribed``, and such a namespace has only its path.
    """
    corrections: dict[Path, _Corrections] = {}
    for item in items:
        if isinstance(item, Coverage):
            if _is_storable_path(item.namespace):
                yield _apply_corrections(item, corrections.pop(item.namespace, None))
        elif isinstance(item, IdentityReading):
            yield replace(item, error=escape_unstorable(item.error)) if item.error else item
        else:
            stored = _storable_record(item)
            if stored is not item and _is_storable_path(parent_path(item.path)):
                _record_correction(corrections.setdefault(parent_path(item.path), _Corrections()), item, stored)
            if stored is not None:
                yield stored


def _storable_record(record: Record) -> Record | None:
    """Return the record itself if it can be stored, else its replacement; None if its path cannot be stored."""
    if not _is_storable_path(record.path):
        return None
    field = _find_unstorable_field(record)
    if field is None:
        return record
    if isinstance(record, NamespaceRecord):
        return NamespaceRecord(record.source, record.path)
    problem = escape_unstorable(record.problem) if record.problem else f"its {field} {_CAUSE}; change it in the catalog"
    return TableRecord(record.source, record.path, kind=Kind.UNDESCRIBED, problem=problem)


def _find_unstorable_field(record: Record) -> str | None:
    names = ("location", "canonical", "doc", "owner", "schema", "native_id", "version", "problem")
    texts = {name: getattr(record, name, None) or "" for name in names}
    if is_storable("".join((*texts.values(), *record.properties, *record.properties.values()))):
        return None
    return next((name for name, text in texts.items() if not is_storable(text)), "properties")


def _is_storable_path(path: Path) -> bool:
    return is_storable("".join(path))


def _record_correction(corrections: _Corrections, record: Record, stored: Record | None) -> None:
    name = escape_unstorable(record.path[-1])
    corrections.digest ^= fold_digest((record.digest,))
    if stored is None:
        corrections.left_out += 1
        corrections.last_problem = f"'{name}': its name {_CAUSE}; rename it in the catalog"
        return
    corrections.replaced += 1
    corrections.digest ^= fold_digest((stored.digest,))
    if not corrections.left_out:
        field = _find_unstorable_field(record)
        corrections.last_problem = f"'{name}': its {field} {_CAUSE}; change it in the catalog"


def _apply_corrections(coverage: Coverage, corrections: _Corrections | None) -> Coverage:
    coverage = replace(coverage, presence=_escape_reason(coverage.presence), detail=_escape_reason(coverage.detail))
    if corrections is None or not coverage.complete:
        return coverage
    verb = "read" if corrections.left_out else "described"
    count = corrections.left_out or corrections.replaced
    failed = failed_evidence(InvalidInput.code, f"{count} could not be {verb}, the last one {corrections.last_problem}")
    # Failed presence of the root would mean that the whole source failed.
    keeps_presence = not corrections.left_out or coverage.namespace == ROOT
    return replace(
        coverage,
        presence=coverage.presence if keeps_presence else failed,
        detail=failed,
        records=coverage.records - corrections.left_out,
        digest=coverage.digest ^ corrections.digest,
    )


def _escape_reason(evidence: Evidence) -> Evidence:
    return evidence if is_storable(evidence.reason) else replace(evidence, reason=escape_unstorable(evidence.reason))
