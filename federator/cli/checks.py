"""What ``doctor`` looks at. Each check says what it found and, if that is not enough, what to type."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from federator.cli.context import Cli
from federator.cli.progress import Progress
from federator.connector.errors import FederatorError, StateError

if TYPE_CHECKING:
    from federator.connector import Catalog, SourceSpec
    from federator.settings import Settings

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; ``source`` says that it is about one source only."""

    name: str
    state: str
    message: str
    hint: str | None = None
    seconds: float = 0.0
    source: str | None = None


def all_checks(cli: Cli, progress: Progress, *, spark: bool) -> Iterator[Check]:
    """Every check, cheap ones first. A configuration that is wrong is a failed check and ends those that need it."""
    yield _python()
    yield _java()
    yield _package("spark", "pyspark", "spark", "the pipeline")
    yield _package("pandas", "pandas", "spark", "Spark's Python workers")
    yield _package("pyarrow", "pyarrow", "spark", "the pipeline")
    yield _package("pylance", "pylance", "spark", "opening tables")
    try:
        settings = cli.settings
    except FederatorError as error:
        yield Check("configuration", FAIL, error.message, error.hint)
        return
    yield Check("configuration", OK, str(settings.path))
    yield _worker(settings)
    yield _instance(settings)
    yield _index(cli)
    yield from _identities(cli)
    yield from _sources(settings, progress)
    if spark:
        yield from _on_spark(settings, progress)


def _python() -> Check:
    return Check("python", OK, f"{platform.python_version()}, {sys.executable}")


def _java() -> Check:
    from federator.pipeline.java import find_java

    try:
        java = find_java()
    except StateError as error:
        return Check("java", FAIL, error.message, error.hint)
    return Check("java", OK, f"{java.version}, from {java.origin}: {java.home}")


def _package(name: str, package: str, extra: str, what: str) -> Check:
    hint = f"pip install 'lance-federator[{extra}]'"
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return Check(name, FAIL, f"{package} is not installed; {what} needs it", hint)
    return Check(name, OK, f"{package} {version}")


def _worker(settings: Settings) -> Check:
    wanted = os.environ.get("PYSPARK_PYTHON")
    if not settings.spark.master.startswith("local"):
        hint = "federator doctor --spark tries one"
        return Check("workers", WARN, f"{settings.spark.master}: the workers run a Python of their own", hint)
    if wanted and os.path.realpath(wanted) != os.path.realpath(sys.executable):
        return Check(
            "workers", WARN, f"PYSPARK_PYTHON is {wanted}, which is not used: workers run this Python", "unset PYSPARK_PYTHON"
        )
    return Check("workers", OK, f"{settings.spark.master}: this Python")


def _instance(settings: Settings) -> Check:
    if settings.instance.id is None:
        return Check("instance", WARN, "no id; mirrors need one", 'write [instance] id = "..." in the configuration')
    return Check("instance", OK, settings.instance.id)


def _index(cli: Cli) -> Check:
    from federator.index import deployment, migrate
    from federator.index.engine import check_writable

    try:
        with cli.raw_index() as index:
            where = index.address
            if index.file is not None and not index.file.exists():
                writable = os.access(index.file.parent, os.W_OK)
                state, more = (OK, "the first crawl makes it") if writable else (FAIL, "its directory cannot be written to")
                return Check("index", state, f"{where}: not there yet; {more}")
            migrate.check(index)
            check_writable(index)
            deployment.check_original(index, cli.settings.instance)
            return Check("index", OK, f"{where}: migration {migrate.current(index)}, writable")
    except FederatorError as error:
        return Check("index", FAIL, error.message, error.hint)


def _identities(cli: Cli) -> Iterator[Check]:
    """One failed check for each source whose new identity waits for a confirmation."""
    from federator.index import identities, migrate

    try:
        with cli.raw_index() as index:
            if index.file is not None and not index.file.exists():
                return
            migrate.check(index)
            with index.read() as connection:
                problems = {name: identities.unconfirmed(connection, name) for name in cli.settings.sources}
    except FederatorError:
        # The check of the index shows it.
        return
    for name, problem in problems.items():
        if problem is not None:
            yield Check(f"identity {name}", FAIL, problem, f"federator sources confirm {name}", source=name)


def _sources(settings: Settings, progress: Progress) -> Iterator[Check]:
    """Each source is opened and asked one cheap question, all at once: one that hangs costs its own time only."""
    from federator.sync import Step

    def ping(spec: SourceSpec) -> Check:
        progress(Step("ask", spec.name))
        check = _ping(spec)
        progress(Step("ask", spec.name, check.state, check.message, check.seconds))
        return check

    specs = [source.spec for source in settings.sources.values()]
    with ThreadPoolExecutor(max_workers=max(1, len(specs)), thread_name_prefix="doctor") as pool:
        yield from pool.map(ping, specs)


def _ping(spec: SourceSpec) -> Check:
    from federator.registry import open_catalog

    name, began = f"source {spec.name}", time.monotonic()
    try:
        with open_catalog(spec) as catalog:
            version = catalog.ping()
            feed, hint = _feed(catalog, spec)
    except FederatorError as error:
        return Check(name, FAIL, error.message, error.hint, time.monotonic() - began, spec.name)
    told = f"{spec.impl} answers{f', version {version}' if version else ''}{feed}"
    return Check(name, OK, told, hint, time.monotonic() - began, spec.name)


def _feed(catalog: Catalog, spec: SourceSpec) -> tuple[str, str | None]:
    """Whether crawls can follow what changes, where the catalog might tell; and what to do if not."""
    from federator.registry import connector

    if not connector(spec.impl).capabilities.change_feed:
        return "", None
    try:
        catalog.change_cursor()
    except FederatorError as error:
        return f"; every crawl reads all of it: {error.message}", error.hint
    return ", and has a feed of changes", None


def _on_spark(settings: Settings, progress: Progress) -> Iterator[Check]:
    from federator.cli.running import start
    from federator.sync import Step

    began = time.monotonic()
    progress(Step("spark", "starting spark"))
    try:
        spark = start(settings)
    except FederatorError as error:
        progress(Step("spark", "starting spark", "failed", "", time.monotonic() - began))
        yield Check("session", FAIL, error.message, error.hint, time.monotonic() - began)
        return
    progress(Step("spark", "starting spark", "ok", "", time.monotonic() - began))
    yield Check("session", OK, f"Spark {spark.version} on {settings.spark.master}", None, time.monotonic() - began)
    yield from _on_worker(settings, progress, spark)


def _on_worker(settings: Settings, progress: Progress, spark: object) -> Iterator[Check]:
    from federator.cli.probe import probe
    from federator.pipeline.session import engine_errors
    from federator.sync import Step

    began = time.monotonic()
    progress(Step("spark", "a job on a worker"))
    try:
        with engine_errors("run a Python job"):
            python, errors = probe(spark, [source.spec for source in settings.sources.values()])
    except FederatorError as error:
        progress(Step("spark", "a job on a worker", "failed", error.message, time.monotonic() - began))
        yield Check("python job", FAIL, error.message, error.hint, time.monotonic() - began)
        return
    progress(Step("spark", "a job on a worker", "ok", "", time.monotonic() - began))
    yield Check("python job", OK, f"a worker runs {python}", None, time.monotonic() - began)
    for name, message in errors.items():
        found = message or "settings and secrets resolve on a worker"
        yield Check(f"secrets {name}", FAIL if message else OK, found, None, 0.0, name)
