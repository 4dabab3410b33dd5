"""Verify: open locations and store their verification states, those that are due after a crawl and those of named tables."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from federator.connector import ConnectorSettings, FederatorError, StateError, TableNotFound
from federator.lance.foreign_locations import is_inside, resolve_location
from federator.model import Kind, TableRecord, parse_path_key
from federator.registry import get_connector
from federator.stages.context import RunContext
from federator.stages.result import format_state_counts
from federator.store import Connection, audit_log, records, verifications
from federator.store.verifications import DueLocation


def require_verifiable(table: TableRecord) -> str:
    """Return the canonical location of a table that verification may open. Raise StateError with the reason if there is none."""
    if table.kind is Kind.MANAGED_TABLE and not table.is_read_only:
        raise StateError("the table is managed by its catalog; verification does not open such tables")
    if table.canonical is None:
        raise StateError("the catalog does not tell where the table is stored", hint="crawl its source")
    return table.canonical


def verify_tables(context: RunContext, ids: Sequence[str]) -> None:
    """Open the locations of tables now, given by their object ids, and store the states. It needs no Spark.

    A table that cannot be opened is recorded in the result's errors, and the others are verified.
    """
    end = time.time() + context.settings.verify.max_seconds
    for table_id in ids:
        with context.record_errors(table_id), context.stage("verify", parse_path_key(table_id)[0]) as done:
            done("ok", _verify_table(context, table_id, end).replace("_", " "))


def _verify_table(context: RunContext, table_id: str, end: float) -> str:
    from federator.pipeline.verify import InspectorProcess

    source, *path = parse_path_key(table_id)
    with context.index.read() as connection:
        table = records.find_table(connection, source, tuple(path))
        if table is None:
            raise TableNotFound(f"there is no table {table_id}")
        canonical = require_verifiable(table)
        through, location = _find_verifying_source(context, connection, source, canonical) or (source, str(table.location))
        due = DueLocation(canonical, location)
        if allowed_bases := _allowed_bases(context, through):
            declaring = verifications.list_other_sources(connection, through, [due.canonical])
            (due,) = _allow_in_all(context, [due], allowed_bases, declaring)
    allowed = {} if due.allowed_bases is None else {due.location: due.allowed_bases}
    with InspectorProcess(context.source_spec(through), context.settings.verify.timeout, allowed) as inspector:
        texts = list(inspector.inspect_each([due.location], end))
    if not texts:
        raise StateError("the time of the run is over", hint="[verify] max_seconds sets it")
    result: dict[str, Any] = json.loads(texts[0])
    row = {
        "canonical": due.canonical,
        "location": due.location,
        "checked_at": time.time(),
        "checked_through": through,
        **result,
    }
    with context.index.write() as connection:
        verifications.save_verifications(connection, [row])
        audit_log.append_event(
            connection, "table_verified", actor=context.run.actor, run_id=context.run.id, subject=table_id,
            detail={"state": row["state"]},
        )  # fmt: skip
    return str(row["state"])


def _find_verifying_source(
    context: RunContext, connection: Connection, source: str, canonical: str
) -> tuple[str, str] | None:  # fmt: skip
    """Return another source through which a location is valid and which still declares it, with the spelling that it opened.

    A copy that a mirror has declared may be in a source without credentials for the storage. None if there is no such source.
    """
    known = verifications.find_verification(connection, canonical)
    if known is None or known.state != "valid" or known.checked_through not in context.settings.sources:
        return None
    others = verifications.list_other_sources(connection, source, [canonical]).get(canonical, set())
    return (known.checked_through, known.location) if known.checked_through in others else None


def verify_due_locations(context: RunContext, name: str, seconds: float) -> None:
    """Verify the locations of a source that are due, within ``seconds``, on Spark."""
    from federator.pipeline.spark_errors import translate_spark_errors
    from federator.pipeline.verify import verify_locations

    limits = context.settings.verify
    allowed_bases = _allowed_bases(context, name)
    with context.index.read() as connection:
        due = verifications.list_due_locations(
            connection, name, now=time.time(), max_age=limits.max_age, limit=limits.max_tables, has_allowed_bases=bool(allowed_bases)
        )  # fmt: skip
        if allowed_bases:
            declaring = verifications.list_other_sources(connection, name, [each.canonical for each in due])
            due = _allow_in_all(context, due, allowed_bases, declaring)
    if not due:
        return
    with context.stage("verify", name) as done, translate_spark_errors(f"verify {name}"):
        rows = verify_locations(context.staging_area(), context.source_spec(name), due, timeout=limits.timeout, seconds=seconds)
        states: Counter[str] = Counter()
        with context.index.write() as connection:
            verifications.save_verifications(connection, _counted(rows, states))
        left = len(due) - states.total()
        remaining = f"; {left:,} left for the next run" if left else ""
        done("ok", format_state_counts(states.elements()) + remaining)


def _allow_in_all(
    context: RunContext, due: Sequence[DueLocation], allowed: Sequence[str], declaring: Mapping[str, set[str]]
) -> list[DueLocation]:
    """Return locations with those allowed bases that their ``declaring`` sources allow, too: their facts are shown in all of them."""
    resolved = {base: resolve_location(base) for base in allowed}
    allowed_by: dict[str, set[str]] = {}
    for source in set[str]().union(*declaring.values()):
        prefixes = list(map(resolve_location, _allowed_bases(context, source)))
        allowed_by[source] = {base for base in allowed if is_inside(resolved[base], prefixes)}

    def restrict(location: DueLocation) -> DueLocation:
        if not (sources := declaring.get(location.canonical)):
            return location
        bases = tuple(base for base in allowed if all(base in allowed_by[source] for source in sources))
        return replace(location, allowed_bases=bases)

    return list(map(restrict, due))


def _allowed_bases(context: RunContext, name: str) -> tuple[str, ...]:
    """Return ``allowed_bases`` of a source; none if its settings are invalid, or if it is not configured any more."""
    try:
        spec = context.source_spec(name)
        settings: ConnectorSettings = get_connector(spec.impl).parse_settings(spec.properties)
    except FederatorError:
        return ()
    return settings.allowed_bases


def _counted(rows: Iterable[dict[str, Any]], states: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield rows of the table ``dataset``, and count their states."""
    for row in rows:
        states[row["state"].replace("_", " ")] += 1
        yield row
