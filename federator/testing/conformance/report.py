"""Verdicts of a conformance run, by check and by operation, as JSON data and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

#: operations in the order of reports; others follow
OPERATIONS = (
    "CreateNamespace", "DescribeNamespace", "ListNamespaces", "DropNamespace", "altering a namespace", "DeclareTable",
    "RegisterTable", "DescribeTable", "ListTables", "ListAllTables", "DeregisterTable", "RenameTable", "DropTable",
    "altering a table", "requests", "concurrent use", "failures", "crawl", "change feed", "settings",
)  # fmt: skip


class Verdict(StrEnum):
    """The result of a check, or of all checks of an operation."""

    PASSED = "passed"
    FAILED = "failed"
    #: a capability of the connector, or the server itself, says that it does not have the operation
    UNSUPPORTED = "not supported"
    #: the run could not, or was not allowed to, find out
    UNTESTED = "not tested"


#: the verdict of an operation is the first of these that one of its checks has
_PRECEDENCE = (Verdict.FAILED, Verdict.PASSED, Verdict.UNSUPPORTED, Verdict.UNTESTED)


@dataclass(frozen=True, slots=True)
class Check:
    """One test of the contract suite. ``detail`` is the reason of any verdict but ``passed``."""

    operation: str
    title: str
    verdict: Verdict
    detail: str = ""

    def is_same_test(self, other: Check) -> bool:
        return (self.operation, self.title) == (other.operation, other.title)


@dataclass(frozen=True, slots=True)
class OperationVerdict:
    """The checks of one operation: it has failed if one of them has, and passed only if one of them has."""

    operation: str
    verdict: Verdict
    checks: tuple[Check, ...]

    @property
    def passed_ratio(self) -> str:
        """Passed checks of those that ran: ``3 of 4``."""
        ran = [check for check in self.checks if check.verdict in (Verdict.PASSED, Verdict.FAILED)]
        return f"{sum(check.verdict is Verdict.PASSED for check in ran)} of {len(ran)}" if ran else ""

    @property
    def details(self) -> list[str]:
        """Each failure with its reason, then the other reasons with the number of their checks."""
        failures = [f"{check.title}: {check.detail}" for check in self.checks if check.verdict is Verdict.FAILED]
        reasons = Counter(
            (check.verdict, check.detail) for check in self.checks if check.verdict in (Verdict.UNSUPPORTED, Verdict.UNTESTED)
        )
        others = sorted(reasons.items(), key=lambda item: (_PRECEDENCE.index(item[0][0]), item[0][1]))
        return failures + [
            f"{verdict}: {detail}{f' ({number} checks)' if number > 1 else ''}" for (verdict, detail), number in others
        ]


@dataclass
class Report:
    """A conformance run. ``remaining`` lists what could not be removed, with the reasons; ``interrupted``: checks are missing."""

    impl: str
    server: str
    keys: Sequence[str]
    namespace: str
    versions: dict[str, str]
    at: str
    checks: list[Check] = field(default_factory=list)
    remaining: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def has_failed(self) -> bool:
        return any(check.verdict is Verdict.FAILED for check in self.checks)

    @property
    def operations(self) -> list[OperationVerdict]:
        names = sorted({check.operation for check in self.checks}, key=_position)
        grouped = {name: tuple(check for check in self.checks if check.operation == name) for name in names}
        return [OperationVerdict(name, _overall(checks), checks) for name, checks in grouped.items()]

    def count(self, verdict: Verdict) -> int:
        return sum(check.verdict is verdict for check in self.checks)

    @property
    def summary(self) -> str:
        """The number of checks by verdict: ``40 passed, 2 failed, ...``."""
        return ", ".join(f"{self.count(verdict)} {verdict}" for verdict in Verdict)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        data["summary"] = {verdict.value.replace(" ", "_"): self.count(verdict) for verdict in Verdict}
        data["operations"] = [
            {"operation": o.operation, "verdict": o.verdict, "passed": o.passed_ratio, "why": o.details}
            for o in self.operations
        ]
        # Last, because a report has a hundred of them.
        data["checks"] = data.pop("checks")
        return data

    def to_markdown(self) -> str:
        """The report as a Markdown section: what ran, a table by operation, and every check that did not pass."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines = [
            f"## {_cell(self.server or self.impl)}",
            "",
            f"Connector `{self.impl}`, {self.at}, {versions}. {self.summary[:1].upper()}{self.summary[1:]}.",
            *(["", "**Interrupted**: checks are missing."] if self.interrupted else []),
            *(["", "Not removed: " + "; ".join(map(_cell, self.remaining))] if self.remaining else []),
            "",
            "| operation | verdict | checks | why |",
            "| --- | --- | --- | --- |",
        ]
        for row in self.operations:
            why = "<br>".join(_cell(detail) for detail in row.details)
            lines.append(f"| {row.operation} | {row.verdict} | {row.passed_ratio} | {why} |")
        return "\n".join([*lines, ""])


def _overall(checks: Iterable[Check]) -> Verdict:
    verdicts = {check.verdict for check in checks}
    return next(verdict for verdict in _PRECEDENCE if verdict in verdicts)


def _position(operation: str) -> tuple[int, str]:
    return (OPERATIONS.index(operation) if operation in OPERATIONS else len(OPERATIONS), operation)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
