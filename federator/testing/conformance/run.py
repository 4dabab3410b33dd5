"""Execution of a conformance run with pytest, in this process and without the configuration or plugins of a directory."""

from __future__ import annotations

import http.client
import importlib.metadata
import os
import re
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

import federator
from federator.connector.errors import FederatorError, split_hint
from federator.model import path_key
from federator.runtime.redaction import mask_url_secrets, redact_known_secrets
from federator.testing.conformance.report import Check, Report, Verdict
from federator.testing.conformance.target import Target

if TYPE_CHECKING:
    from federator.testing.conformance.suite import ConformanceContract

Progress = Callable[[Check], None]

_MODULE = "from federator.testing.conformance import run\nTestConformance = run.build_contract()\n"
_OPTIONS = (
    "--import-mode=importlib", "--noconftest", "--capture=no", "-p", "no:cacheprovider", "-p", "no:terminal",
    "-p", "no:faulthandler", "-p", "no:logging", "-p", "no:warnings",
)  # fmt: skip
_MAX_DETAIL = 400
# Endings of the names of tests that require an operation to be refused as unsupported.
_UNSUPPORTED_TESTS = ("_is_unsupported", "_without_a_feed_says_so")
# How the rest connector ends the text of an error that the server itself sent.
_FROM_SERVER = re.compile(r"\(HTTP \d{3}\)")
_targets: list[Target] = []


def build_contract() -> type[ConformanceContract]:
    """Return the contract of the run in progress, for the module that pytest collects."""
    # Imported only here: pytest makes assertions readable when it imports a module, if that is announced before.
    pytest.register_assert_rewrite("federator.testing.contract")
    from federator.testing.conformance import suite
    from federator.testing.contract.base import name_prefix

    name_prefix.set(f"{_targets[-1].scope.name}_")
    return suite.build_contract(_targets[-1])


def run_conformance(target: Target, progress: Progress, server: str = "") -> Report:
    """Run the suite on a target, and remove what it made.

    Raise ConfigError or CatalogError if the run's namespace cannot be made. After Ctrl-C or SIGTERM the report is ``interrupted``; a
    second one ends the removal.
    """
    report = Report(
        impl=target.connector.impl, server=server, keys=sorted(target.properties), namespace=target.scope.name,
        versions=_versions(), at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )  # fmt: skip
    with _terminable():
        try:
            with target.prepared():
                report.namespace = path_key(target.namespace) or target.scope.name
                recorder = _Recorder(target, progress)
                report.checks = recorder.checks
                report.interrupted = not _run_pytest(target, recorder)
                report.checks = [*recorder.checks, *_list_omitted(target)]
        except KeyboardInterrupt:
            report.interrupted = True
        except FederatorError as error:
            if remaining := _remove(target):
                error.hint = "; ".join(filter(None, [error.hint, f"remove what the run may have made: {'; '.join(remaining)}"]))
            raise
        report.remaining = _remove(target)
    return report


def _remove(target: Target) -> list[str]:
    try:
        return target.remove()
    except KeyboardInterrupt:
        return [f"{target.scope.name} and what begins with this name: the removal was interrupted"]


def _list_omitted(target: Target) -> list[Check]:
    from federator.testing.conformance import suite

    return suite.list_omitted(suite.build_contract(target))


def _run_pytest(target: Target, recorder: _Recorder) -> bool:
    """Return whether all tests ran."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    _targets.append(target)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="conformance-") as directory,
            patch.dict(os.environ, {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, clear=True),
        ):
            module = FilePath(directory, f"test_{target.scope.name}.py")
            module.write_text(_MODULE, encoding="utf-8")
            FilePath(directory, "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
            code = pytest.main([*_OPTIONS, f"--rootdir={directory}", str(module)], plugins=[recorder])
    finally:
        _targets.pop()
        _forget_prefix()
    if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return True
    if code != pytest.ExitCode.INTERRUPTED:
        raise RuntimeError(f"pytest ended with {code!r}")
    return False


def _forget_prefix() -> None:
    from federator.testing.contract.base import name_prefix

    name_prefix.set("")


class _Recorder:
    """The pytest plugin that turns the result of each test into a check."""

    def __init__(self, target: Target, progress: Progress) -> None:
        self.checks: list[Check] = []
        self._target = target
        self._progress = progress
        self._requests = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        self._requests = 0
        self._unsupported().clear()
        send = http.client.HTTPConnection.putrequest

        def count(connection: http.client.HTTPConnection, *arguments: Any, **options: Any) -> None:
            self._requests += 1
            send(connection, *arguments, **options)

        with patch.object(http.client.HTTPConnection, "putrequest", count):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        from federator.testing.conformance import suite

        result = yield
        error = call.excinfo
        if error is not None and error.errisinstance(KeyboardInterrupt):
            return result
        name = item.name
        if call.when == "call" or error is not None:
            verdict, detail = self._judge(name, call)
            check = Check(suite.operation_of(name), suite.title_of(name), verdict, _shorten(detail, self._target.scope.name))
            # A test that failed, and could not be cleaned up after that, has one verdict.
            if not any(known.is_same_test(check) for known in self.checks):
                self._add(check)
            elif call.when == "teardown":
                self._fail_after(check)
        return result

    @staticmethod
    def _unsupported() -> list[str]:
        from federator.testing.conformance import suite

        return suite.ConformanceContract.unsupported

    def _add(self, check: Check) -> None:
        self.checks.append(check)
        self._progress(check)

    def _fail_after(self, check: Check) -> None:
        """Replace the verdict of a test that passed, and whose objects could not be removed."""
        for number, known in enumerate(self.checks):
            if known.is_same_test(check) and known.verdict is not Verdict.FAILED:
                self.checks[number] = check

    def _judge(self, name: str, call: pytest.CallInfo[None]) -> tuple[Verdict, str]:
        error = call.excinfo
        if error is None:
            return self._judge_success(name)
        text = _describe(error)
        if error.errisinstance(pytest.skip.Exception):
            return Verdict.UNTESTED, str(error.value)
        if self._target.server_only and "Unsupported" in error.typename and _FROM_SERVER.search(text):
            return Verdict.UNSUPPORTED, text
        prefix = {"setup": "before the check: ", "teardown": "after the check: "}.get(call.when, "")
        return Verdict.FAILED, f"{prefix}{text}"

    def _judge_success(self, name: str) -> tuple[Verdict, str]:
        if self._target.server_only and not self._requests:
            return Verdict.UNTESTED, "the client decides it without a request to the server"
        if self._unsupported():
            return Verdict.UNSUPPORTED, self._unsupported()[-1]
        if name.endswith(_UNSUPPORTED_TESTS):
            return Verdict.UNSUPPORTED, "refused as Unsupported, as it must be"
        return Verdict.PASSED, ""


def _describe(error: pytest.ExceptionInfo[BaseException]) -> str:
    text = split_hint(str(error.value))[0]
    if not error.errisinstance((AssertionError, pytest.fail.Exception)):
        return f"{error.typename}: {text}"
    # A plain assertion without a message.
    return text or str(error.traceback[-1].statement).strip()


def _shorten(text: str, scope: str) -> str:
    """Return a text in one line, without secrets, and without the random name that all names of the run begin with."""
    plain = (
        " ".join(redact_known_secrets(mask_url_secrets(text)).split()).replace(f"{scope}_", "").replace(scope, "conformance")
    )
    return plain if len(plain) <= _MAX_DETAIL else f"{plain[:_MAX_DETAIL]}…"


def _versions() -> dict[str, str]:
    versions = {"federator": federator.__version__}
    for package in ("lance-namespace", "pylance"):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM interrupts like Ctrl-C, so that the run's objects are removed."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
