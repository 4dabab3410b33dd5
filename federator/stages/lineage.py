"""OpenLineage: one lineage run for each mirror of a run, START and then COMPLETE or FAIL. Datasets are named by location.

An event that cannot be sent stops nothing, because lineage only informs observers. docs/reference/telemetry.md describes the events.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import federator
from federator import logs
from federator.apply import Outcome, OutcomeState
from federator.connector import ConfigError
from federator.connector.options import resolve_reference, resolve_secret
from federator.model import canonical_location, local_path, object_id, parse_path_key
from federator.planning.changes import Action, Change
from federator.planning.plan import Plan
from federator.runtime.redaction import mask_url_secrets, redact
from federator.settings import Settings
from federator.stages.context import RunContext
from federator.stages.result import is_failure
from federator.store import records
from federator.store.failures import describe_error
from federator.store.sql import chunked

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

PRODUCER = f"urn:lance-federator:{federator.__version__}"
_HINT = "pip install 'lance-federator[lineage]'"
_TIMEOUT_SECONDS = 5.0
#: the largest number of datasets in one event; a run with more sends several events
MAX_EVENT_DATASETS = 500
_STATE = {
    Action.DECLARE_TABLE: "CREATE", Action.UPDATE_TABLE: "ALTER", Action.RECREATE_TABLE: "ALTER", Action.ADOPT: "ALTER",
    Action.DEREGISTER_TABLE: "DROP",
}  # fmt: skip
_log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TableFlow:
    """One table of a mirror: its origin and its target, each with its location, and the change. A deregistration has no origin."""

    origin: str | None
    origin_location: str | None
    target: str
    target_location: str
    state: str


def apply_with_lineage(context: RunContext, plan: Plan, apply: Callable[[], list[Outcome]]) -> list[Outcome]:
    """Apply a plan, and send lineage events if ``[lineage]`` is set.

    Raise what ``apply`` raises, and ConfigError if the library is missing.
    """
    emitter = LineageEmitter.from_settings(context, plan.mirror)
    if emitter is None:
        return apply()
    emitter.emit("START", table_flows(context, plan.changes))
    try:
        outcomes = apply()
    except BaseException as error:
        emitter.emit("FAIL", [], error=describe_error(error))
        raise
    done = [outcome.change for outcome in outcomes if outcome.state is OutcomeState.DONE]
    failures = [outcome for outcome in outcomes if is_failure(outcome)]
    error_text = (
        f"{len(failures)} of {len(outcomes)} changes failed; {failures[0].change.target_path}: {failures[0].message}"
        if failures
        else None
    )
    emitter.emit("FAIL" if failures else "COMPLETE", table_flows(context, done), error=error_text)
    return outcomes


def table_flows(context: RunContext, changes: Sequence[Change]) -> list[TableFlow]:
    """Return the table flows of changes. The origin's location is the one in the index, else the target's."""
    flows = []
    with context.index.read() as connection:
        for change in changes:
            record = change.after or change.before
            if change.action not in _STATE or record is None or record.location is None:
                continue
            origin_id = origin_location = None
            if change.after is not None:
                origin = records.find_table(connection, change.origin_source, parse_path_key(change.origin_path))
                origin_id = object_id(change.origin_source, change.origin_path)
                origin_location = (origin.location if origin else None) or record.location
            flows.append(
                TableFlow(
                    origin_id,
                    origin_location,
                    object_id(change.target_source, change.target_path),
                    record.location,
                    _STATE[change.action],
                )
            )
    return flows


def dataset_name(location: str) -> tuple[str, str]:
    """Return namespace and name of a location by OpenLineage's naming specification. An unknown store is named by its scheme."""
    path_on_disk = local_path(location)
    if path_on_disk is not None:
        return "file", path_on_disk
    scheme, _, rest = canonical_location(mask_url_secrets(location)).partition("://")
    host, _, path = rest.partition("/")
    # A file system's path starts with a slash; an object's key does not.
    rooted = scheme in ("file", "hdfs", "abfss", "wasbs")
    return f"{scheme}://{host}", (f"/{path}" if rooted else path) or "/"


@dataclass(frozen=True)
class LineageEmitter:
    """Sends the events of one mirror's run."""

    client: OpenLineageClient
    job: tuple[str, str]
    run_id: str
    instance: str

    @classmethod
    def from_settings(cls, context: RunContext, mirror: str) -> LineageEmitter | None:
        """Return the emitter of a mirror. None if lineage is not configured."""
        settings = context.settings
        if settings.lineage.url is None and settings.lineage.file is None:
            return None
        instance = settings.instance.id or "federator"
        # One federator run may contain several lineage runs. The id is derived, so each process computes the same one.
        run_id = uuid.uuid5(uuid.NAMESPACE_URL, f"federator:{instance}/{context.run.id}/{mirror}")
        job = (settings.lineage.namespace or instance, f"mirror.{mirror}")
        return cls(_build_client(settings), job, str(run_id), instance)

    def emit(self, state: str, flows: Sequence[TableFlow], *, error: str | None = None) -> None:
        """Send an event. If it has too many datasets, send the first ones in events of their own before it."""
        from openlineage.client.event_v2 import RunState

        try:
            chunks = list(chunked(flows, MAX_EVENT_DATASETS))
            for chunk in chunks[:-1]:
                self.client.emit(self._event(RunState.RUNNING, chunk, None))
            self.client.emit(self._event(RunState[state], chunks[-1] if chunks else [], error))
        except (OSError, RuntimeError, ValueError) as failure:
            # The library's error texts contain the URL, so only the type is logged.
            _log.error("lineage event not sent", state=state, job=self.job[1], error=type(failure).__name__)

    def _event(self, state: Any, flows: Sequence[TableFlow], error: str | None) -> Any:
        from openlineage.client.event_v2 import Job, Run, RunEvent
        from openlineage.client.facet_v2 import error_message_run, job_type_job

        facets: dict[str, Any] = {}
        if error is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(redact(error), "python")
        kind = job_type_job.JobTypeJobFacet("BATCH", "FEDERATOR", "MIRROR")
        return RunEvent(
            eventType=state, eventTime=datetime.now(UTC).isoformat(), run=Run(self.run_id, facets), producer=PRODUCER,
            job=Job(*self.job, {"jobType": kind}), inputs=self._inputs(flows), outputs=self._outputs(flows),
        )  # fmt: skip

    def _inputs(self, flows: Sequence[TableFlow]) -> list[Any]:
        from openlineage.client.event_v2 import InputDataset

        return [
            InputDataset(*dataset_name(flow.origin_location), facets=self._facets(flow.origin))
            for flow in flows
            if flow.origin is not None and flow.origin_location is not None
        ]

    def _outputs(self, flows: Sequence[TableFlow]) -> list[Any]:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import lifecycle_state_change_dataset as life

        return [
            OutputDataset(
                *dataset_name(flow.target_location),
                facets={
                    **self._facets(flow.target),
                    "lifecycleStateChange": life.LifecycleStateChangeDatasetFacet(life.LifecycleStateChange[flow.state]),
                },
            )
            for flow in flows
        ]

    def _facets(self, name: str) -> dict[str, Any]:
        from openlineage.client.facet_v2 import symlinks_dataset

        link = symlinks_dataset.Identifier(f"federator://{self.instance}", name, "TABLE")
        return {"symlinks": symlinks_dataset.SymlinksDatasetFacet([link])}


def _build_client(settings: Settings) -> OpenLineageClient:
    try:
        import requests
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport.file import FileConfig, FileTransport
        from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport
    except ModuleNotFoundError as error:
        raise ConfigError(f"[lineage] needs the module {error.name!r}", hint=_HINT) from None
    section = f"{settings.path}: [lineage]"
    if settings.lineage.file is not None:
        return OpenLineageClient(transport=FileTransport(FileConfig(str(settings.base / settings.lineage.file), append=True)))
    session = requests.Session()
    # A redirect is an error: credentials and events must not reach a host that is not configured.
    session.max_redirects = 0
    auth: dict[str, Any] = {}
    if settings.lineage.token is not None:
        auth["auth"] = ApiKeyTokenProvider({"apiKey": resolve_secret(settings.lineage.token, where=f"{section} token")})
    config = HttpConfig(
        resolve_reference(str(settings.lineage.url), where=section), timeout=_TIMEOUT_SECONDS, session=session, **auth
    )
    return OpenLineageClient(transport=HttpTransport(config))
