"""Verify: open locations and store their verification states, those that are due after a crawl and those of named tables."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from federator.connector import StateError, TableNotFound
from federator.lance.inspection import Inspection
from federator.model import TableRecord, parse_path_key, path_key
from federator.model.audit_kinds import AuditKind
from federator.stages.context import RunContext
from federator.stages.result import format_state_counts
from federator.stages.shared_permissions import Permissions, restrict_to_declaring
from federator.stages.source_stores import find_access
from federator.store import Connection, audit_log, ledger, records, verifications
from federator.store.stores import value_of_location
from federator.store.verifications import DueLocation

# Requests of all principals are verified one after the other. So a request takes no longer than this many tables that do not respond.
_MAX_TIMEOUTS = 2


def verify_tables(context: RunContext, ids: Sequence[str]) -> None:
    """Open the locations of tables now, given by their object ids, and store the states. It needs no Spark.

    A table that cannot be opened, or for which no time is left, is recorded in the result's errors, and the others are verified.
    """
    limits = context.settings.verify
    end = time.time() + min(_MAX_TIMEOUTS * limits.timeout, limits.max_seconds)
    for table_id in ids:
        with context.record_errors(table_id), context.stage("verify", parse_path_key(table_id)[0]) as finish:
            finish("ok", _verify_table(context, table_id, end).replace("_", " "))


def _verify_table(context: RunContext, table_id: str, end: float) -> str:
    source, *path = parse_path_key(table_id)
    with context.index.read() as connection:
        table = records.find_table(connection, source, tuple(path))
        if table is None:
            raise TableNotFound(f"there is no table {table_id}")
        if obstacle := verifications.find_verification_obstacle(table):
            raise StateError(obstacle)
        canonical = str(table.canonical)
        other = _find_verifying_source(context, connection, source, canonical)
        # Anybody who sets a location could otherwise have it opened with the credentials of a source that is hidden from them.
        is_copy = other is not None and _is_copy_of(connection, source, table, other[0])
        through, location = other if other is not None and is_copy else (source, str(table.location))
    access = find_access(context.source_spec(through))
    inspection = _inspect_through(context, through, access, canonical, location, end)
    if other is not None and not is_copy and inspection.state != "valid":
        # The location is known to be valid: what this source cannot open would replace the facts of the others.
        raise StateError(f"the location cannot be opened through {source}: {inspection.state}, {inspection.message}")
    with context.index.write() as connection:
        verifications.save_inspection(
            connection, inspection, canonical=canonical, location=location, through=through, access=access
        )
        audit_log.append_event(
            connection, AuditKind.TABLE_VERIFIED, actor=context.run.actor, run_id=context.run.id, subject=table_id,
            detail={"state": inspection.state},
        )  # fmt: skip
    return inspection.state


def _inspect_through(
    context: RunContext, through: str, access: str, canonical: str, location: str, end: float
) -> Inspection:  # fmt: skip
    """Inspect a location with the options of the source ``through``, and with what all sources that declare it permit.

    Raise StateError if the time ``end`` (seconds since the epoch) has passed.
    """
    from federator.pipeline.verify import InspectorProcess

    own = Permissions.of_source(context.settings, through)
    permitted = restrict_to_declaring(context.index, context.settings, own, access, canonical)
    due = DueLocation(canonical, location, permitted.allowed_bases, permitted.mounts)
    with InspectorProcess(context.source_spec(through), context.settings.verify.timeout, {location: due}) as inspector:
        text = next(inspector.inspect_each([due.location], end), None)
    if text is None:
        raise StateError("the time of this request is over: the table was not opened", hint="verify the remaining tables again")
    return Inspection(**json.loads(text))


def _find_verifying_source(
    context: RunContext, connection: Connection, source: str, canonical: str
) -> tuple[str, str] | None:  # fmt: skip
    """Return another source through which a location is valid and which still declares it, with the spelling that it opened.

    None if there is no such source.
    """
    known = verifications.find_verification(connection, source, canonical)
    if known is None or known.state != "valid" or known.checked_through not in context.settings.sources:
        return None
    through, own_access = known.checked_through, find_access(context.source_spec(source))
    access = find_access(context.source_spec(through))
    if value_of_location(access, canonical) != value_of_location(own_access, canonical):
        return None
    declaring = verifications.list_declaring_sources(connection, own_access, [canonical]).get(canonical, set()) - {source}
    return (through, known.location) if through in declaring else None


def _is_copy_of(connection: Connection, source: str, table: TableRecord, origin: str) -> bool:
    """Return whether a mirror has declared a table of a source, at its present location, as the copy of one of another source."""
    entries = ledger.list_entries_of_object(connection, source, path_key(table.path))
    return any(
        (entry.target_source, entry.origin_source, entry.canonical) == (source, origin, table.canonical) for entry in entries
    )


def verify_sources(context: RunContext, names: Collection[str]) -> None:
    """Inspect the due locations of crawled sources, and again those of other sources that a crawled source declares and permits less
    for.
    """
    end = time.monotonic() + context.settings.verify.max_seconds
    permitted = {name: Permissions.of_source(context.settings, name) for name in context.settings.sources}
    with context.index.read() as connection:
        # Asking each source for its locations would read the records of all sources after the crawl of one.
        verifiers = verifications.list_verifiers_of_redeclared(connection, list(names))
    for name in [*names, *(name for name in permitted if name in verifiers and name not in names)]:
        compared = permitted if name in names else names
        stricter = [other for other in compared if permitted[name].restrict([permitted[other]]) != permitted[name]]
        if name in names or stricter:
            with context.record_errors(f"verify {name}"):
                _verify_due_locations(context, name, permitted, stricter, name not in names, end - time.monotonic())


def _verify_due_locations(
    context: RunContext,
    name: str,
    permitted: Mapping[str, Permissions],
    stricter: Sequence[str],
    only_shared: bool,
    seconds: float,
) -> None:
    from federator.pipeline.spark_errors import translate_spark_errors
    from federator.pipeline.verify import verify_locations

    limits, access = context.settings.verify, find_access(context.source_spec(name))
    with context.index.read() as connection:
        due = verifications.list_due_locations(
            connection, name, now=time.time(), max_age=limits.max_age, limit=limits.max_tables, stricter=stricter,
            only_shared=only_shared,
        )  # fmt: skip
        if stricter or permitted[name].allowed_bases:
            declaring = verifications.list_declaring_sources(connection, access, [location.canonical for location in due])
            due = list(_restrict_each(name, permitted, due, declaring))
    if not due:
        return
    with context.stage("verify", name) as finish, translate_spark_errors(f"verify {name}"):
        rows = verify_locations(context.staging_area(), context.source_spec(name), due, timeout=limits.timeout, seconds=seconds)
        states: Counter[str] = Counter()
        with context.index.write() as connection:
            verifications.save_verifications(connection, _counted(rows, access, states))
        left = len(due) - states.total()
        remaining = (
            f"; {left:,} not opened: the time was over, or their store did not respond; the next run opens them" if left else ""
        )
        finish("ok", format_state_counts(states.elements()) + remaining)


def _restrict_each(
    name: str, permitted: Mapping[str, Permissions], due: Sequence[DueLocation], declaring: Mapping[str, set[str]]
) -> Iterator[DueLocation]:
    """Yield locations with what each of their declaring sources permits."""
    by_sources: dict[frozenset[str], Permissions] = {}
    for location in due:
        sources = frozenset(declaring.get(location.canonical, ()))
        if (permissions := by_sources.get(sources)) is None:
            permissions = permitted[name].restrict(permitted.get(source, Permissions()) for source in sorted(sources))
            by_sources[sources] = permissions
        yield replace(location, allowed_bases=permissions.allowed_bases, mounts=permissions.mounts)


def _counted(rows: Iterable[dict[str, Any]], access: str, states: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield rows of the table ``dataset`` with the access through which they were opened, and count their states."""
    for row in rows:
        states[row["state"].replace("_", " ")] += 1
        yield {**row, "access": value_of_location(access, row["canonical"])}
