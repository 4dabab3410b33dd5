"""OpenLineage: one lineage run for each mirror of a run, START and then COMPLETE or FAIL, its datasets named by where they lie.

What cannot be told stops nothing: lineage is for who looks on. docs/telemetry.md says what an event holds.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import federator
from federator import logs
from federator.apply import Outcome, State
from federator.connector import ConfigError
from federator.connector.options import resolve
from federator.connector.secrets import redacted
from federator.index import records
from federator.index.bulk import chunks
from federator.model import canonical_location, local_path, parse_key, path_key
from federator.planning.changes import Action, Change
from federator.planning.plan import Plan
from federator.settings import Settings
from federator.settings.telling import resolved
from federator.sync.result import is_bad
from federator.sync.work import Work

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

PRODUCER = f"urn:lance-federator:{federator.__version__}"
_HINT = "pip install 'lance-federator[lineage]'"
_SECONDS = 5.0
#: datasets of one event; a run of more tells them in several
CHUNK = 500
_STATE = {
    Action.DECLARE_TABLE: "CREATE", Action.UPDATE_TABLE: "ALTER", Action.RECREATE_TABLE: "ALTER", Action.ADOPT: "ALTER",
    Action.DEREGISTER_TABLE: "DROP",
}  # fmt: skip
_log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class Flow:
    """One table of a mirror: where it lies at the origin and at the target (None: it is deregistered), and what is done."""

    origin: str | None
    origin_place: str | None
    target: str
    target_place: str
    state: str


def told(work: Work, made: Plan, apply: Callable[[], list[Outcome]]) -> list[Outcome]:
    """Applies a plan, and tells of it where ``[lineage]`` is set. Raises what ``apply`` raises, and ConfigError without the library."""
    emitter = Emitter.of(work, made.mirror)
    if emitter is None:
        return apply()
    emitter.emit("START", flows(work, made.changes))
    try:
        outcomes = apply()
    except BaseException as error:
        emitter.emit("FAIL", [], error=str(error) or type(error).__name__)
        raise
    done = [outcome.change for outcome in outcomes if outcome.state is State.DONE]
    bad = [outcome for outcome in outcomes if is_bad(outcome)]
    why = f"{len(bad)} of {len(outcomes)} changes failed; {bad[0].change.target_path}: {bad[0].message}" if bad else None
    emitter.emit("FAIL" if bad else "COMPLETE", flows(work, done), error=why)
    return outcomes


def flows(work: Work, changes: Sequence[Change]) -> list[Flow]:
    """What Changes do to tables. The origin's place is what the index knows of it, else the target's."""
    found = []
    with work.index.read() as connection:
        for change in changes:
            record = change.after or change.before
            if change.action not in _STATE or record is None or record.location is None:
                continue
            origin = None
            if change.action is not Action.DEREGISTER_TABLE:
                origin = records.get(connection, change.origin_source, parse_key(change.origin_path), is_table=True)
            found.append(
                Flow(
                    _name(change.origin_source, change.origin_path) if change.after is not None else None,
                    str((origin["location"] if origin else None) or record.location) if change.after is not None else None,
                    _name(change.target_source, change.target_path),
                    record.location,
                    _STATE[change.action],
                )
            )
    return found


def dataset_name(location: str) -> tuple[str, str]:
    """Namespace and name of a place, as OpenLineage's naming specification has them for its store; an unknown one's own scheme."""
    here = local_path(location)
    if here is not None:
        return "file", here
    scheme, _, rest = canonical_location(location).partition("://")
    host, _, path = rest.partition("/")
    # A file system's path begins at its root; an object's key begins with its first letter.
    rooted = scheme in ("file", "hdfs", "abfss", "wasbs")
    return f"{scheme}://{host}", (f"/{path}" if rooted else path) or "/"


@dataclass(frozen=True)
class Emitter:
    """Sends the events of one mirror's run."""

    client: OpenLineageClient
    job: tuple[str, str]
    run_id: str
    instance: str

    @classmethod
    def of(cls, work: Work, mirror: str) -> Emitter | None:
        """None where nothing is configured."""
        settings = work.settings
        if settings.lineage.url is None and settings.lineage.file is None:
            return None
        instance = settings.instance.id or "federator"
        # One run of ours may be several of theirs; its id is the same whoever computes it.
        run_id = uuid.uuid5(uuid.NAMESPACE_URL, f"federator:{instance}/{work.run.id}/{mirror}")
        job = (settings.lineage.namespace or instance, f"mirror.{mirror}")
        return cls(_client(settings), job, str(run_id), instance)

    def emit(self, state: str, found: Sequence[Flow], *, error: str | None = None) -> None:
        """Sends an event; of many datasets the first ones in events of their own, before it."""
        from openlineage.client.event_v2 import RunState

        try:
            parts = list(chunks(found, CHUNK))
            for part in parts[:-1]:
                self.client.emit(self._event(RunState.RUNNING, part, None))
            self.client.emit(self._event(RunState[state], parts[-1] if parts else [], error))
        except (OSError, RuntimeError, ValueError) as failure:
            # Theirs hold the URL.
            _log.error("lineage not told", state=state, job=self.job[1], error=type(failure).__name__)

    def _event(self, state: Any, found: Sequence[Flow], error: str | None) -> Any:
        from openlineage.client.event_v2 import Job, Run, RunEvent
        from openlineage.client.facet_v2 import error_message_run, job_type_job

        facets: dict[str, Any] = {}
        if error is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(redacted(error), "python")
        kind = job_type_job.JobTypeJobFacet("BATCH", "FEDERATOR", "MIRROR")
        return RunEvent(
            eventType=state, eventTime=datetime.now(UTC).isoformat(), run=Run(self.run_id, facets), producer=PRODUCER,
            job=Job(*self.job, {"jobType": kind}), inputs=self._inputs(found), outputs=self._outputs(found),
        )  # fmt: skip

    def _inputs(self, found: Sequence[Flow]) -> list[Any]:
        from openlineage.client.event_v2 import InputDataset

        return [
            InputDataset(*dataset_name(flow.origin_place), facets=self._facets(flow.origin))
            for flow in found
            if flow.origin is not None and flow.origin_place is not None
        ]

    def _outputs(self, found: Sequence[Flow]) -> list[Any]:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import lifecycle_state_change_dataset as life

        return [
            OutputDataset(
                *dataset_name(flow.target_place),
                facets={
                    **self._facets(flow.target),
                    "lifecycleStateChange": life.LifecycleStateChangeDatasetFacet(life.LifecycleStateChange[flow.state]),
                },
            )
            for flow in found
        ]

    def _facets(self, name: str) -> dict[str, Any]:
        from openlineage.client.facet_v2 import symlinks_dataset

        link = symlinks_dataset.Identifier(f"federator://{self.instance}", name, "TABLE")
        return {"symlinks": symlinks_dataset.SymlinksDatasetFacet([link])}


def _client(settings: Settings) -> OpenLineageClient:
    try:
        import requests
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport.file import FileConfig, FileTransport
        from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport
    except ModuleNotFoundError as error:
        raise ConfigError(f"[lineage] needs the module {error.name!r}", hint=_HINT) from None
    where = f"{settings.path}: [lineage]"
    if settings.lineage.file is not None:
        return OpenLineageClient(transport=FileTransport(FileConfig(str(settings.base / settings.lineage.file), append=True)))
    session = requests.Session()
    # A redirect is an error: nothing of ours goes where nobody configured it.
    session.max_redirects = 0
    token = resolved(settings.lineage.token, f"{where} token")
    told: dict[str, Any] = {} if token is None else {"auth": ApiKeyTokenProvider({"apiKey": token})}
    config = HttpConfig(resolve(str(settings.lineage.url), where=where), timeout=_SECONDS, session=session, **told)
    return OpenLineageClient(transport=HttpTransport(config))


def _name(source: str, path: str) -> str:
    return path_key((source, *parse_key(path)))
