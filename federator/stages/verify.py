"""Verify: open locations and store their verification states, those that are due after a crawl and those of named tables."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from federator.connector import StateError, TableNotFound
from federator.model import Kind, TableRecord, parse_path_key
from federator.stages.context import RunContext
from federator.stages.result import format_state_counts
from federator.stages.shared_permissions import Permissions, restrict_to_declaring
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
    permitted = restrict_to_declaring(
        context.index, context.settings, Permissions.of_source(context.settings, through), canonical
    )
    due = DueLocation(canonical, location, permitted.allowed_bases, permitted.mounts)
    with InspectorProcess(context.source_spec(through), context.settings.verify.timeout, {location: due}) as inspector:
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
    declaring = verifications.list_declaring_sources(connection, [canonical]).get(canonical, set()) - {source}
    return (known.checked_through, known.location) if known.checked_through in declaring else None


def verify_sources(context: RunContext, names: Collection[str]) -> None:
    """Inspect the locations of crawled sources that are due, and those that they have declared of what another source permits."""
    end = time.monotonic() + context.settings.verify.max_seconds
    permitted = {name: Permissions.of_source(context.settings, name) for name in context.settings.sources}
    for name in [*names, *(name for name in permitted if name not in names)]:
        compared = permitted if name in names else names
        stricter = [each for each in compared if permitted[name].restrict([permitted[each]]) != permitted[name]]
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

    limits = context.settings.verify
    with context.index.read() as connection:
        due = verifications.list_due_locations(
            connection, name, now=time.time(), max_age=limits.max_age, limit=limits.max_tables, stricter=stricter,
            only_shared=only_shared,
        )  # fmt: skip
        if stricter or permitted[name].allowed_bases:
            declaring = verifications.list_declaring_sources(connection, [each.canonical for each in due])
            due = list(_restrict_each(name, permitted, due, declaring))
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


def _counted(rows: Iterable[dict[str, Any]], states: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield rows of the table ``dataset``, and count their states."""
    for row in rows:
        states[row["state"].replace("_", " ")] += 1
        yield row
