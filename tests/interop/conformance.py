"""The contract suite on other projects' connectors and servers, and its recorded verdicts.

``make interop`` runs it and compares each verdict with the record, ``conformance.json``. ``python -m tests.interop.conformance`` prints
the record as docs/reference/conformance.md. With ``--record`` it first runs the suite, for all or for the named catalogs, and records
the verdicts, in a network namespace with loopback only.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import Any

from federator.registry import get_connector
from federator.testing.conformance.report import Check, Report, Verdict
from federator.testing.conformance.run import run_conformance
from federator.testing.conformance.target import Target
from tests.fixtures.rest import reference_server
from tests.interop.catalog_clients import CATALOGS, IMPLS
from tests.interop.confinement import confine
from tests.interop.environments import python_of
from tests.interop.servers import REFERENCE

RECORD = FilePath(__file__).with_suffix(".json")
_BRIDGE = FilePath(__file__).with_name("rest_bridge.py")
#: the levels of namespaces above a table; None: any number
_DEPTHS: Mapping[str, int | None] = {"hive2": 1, "hive3": 2, "glue": 1, "iceberg": None}
_TITLES: Mapping[str, str] = {
    "hive2": "Hive 2.3.10", "hive3": "Hive 3.1.3", "glue": "Glue (moto)", "iceberg": "Iceberg 1.11.0", REFERENCE: "RestAdapter",
}  # fmt: skip
NAMES = tuple(_TITLES)
_HEAD = f"""# Conformance of other projects

The contract suite ([conformance.md](../how-to/conformance.md)) on connectors and servers of other projects. `make interop` repeats
these runs and fails if a verdict differs from the record. This page is generated from the record:
`python -m tests.interop.conformance > docs/reference/conformance.md`.

| column | what was run |
| --- | --- |
| RestAdapter | `lance.namespace.RestAdapter` of pylance 14.0.2 over a directory |
| the others | the namespaces `hive2`, `hive3`, `glue` and `iceberg` of {IMPLS} on that server |

The options are `root=DIRECTORY page_size=3 --crawl --races` for the RestAdapter. For the others they are `keeps_properties=true
--location DIRECTORY`, with `--depth` in front of Hive and Glue, and with `--parent` in front of Hive 3.

The client of all runs is the connector `rest`, as with `federator conformance --uri`. A bridge (`tests/interop/rest_bridge.py`) puts
the namespaces of `lance-namespace-impls` behind the REST protocol. Their errors have no code of the Lance specification: some are
exceptions of the package's own, such as `TableNotFoundException`, others only have a text. The bridge gives an error the code that
its class or its text names (`does not exist`, `already exists`, `not empty`), else 18. Without that, each check that expects an error
would fail. A failure may also be a rule of this project where the specification is silent. Random names are left out.

**Not run**: the `unity` and `polaris` namespaces of `lance-namespace-impls`, because no server of these catalogs is available to the
tests.
"""


_NAMES = "Names in upper case are stored in lower case, and listed so."
#: reasons of failures, seen in the sources of lance-namespace-impls and the server's responses
_NOTES: Mapping[str, str] = {
    "hive2": f"{_NAMES} A name that Hive refuses is an error without a code (13 is expected).",
    "hive3": f"{_NAMES} A name that Hive refuses is an error without a code (13 is expected).",
    "glue": "Names in upper case are stored in lower case, and listed so.",
    "iceberg": "The root is refused. ListNamespaces returns whole names, joined with periods, where the specification has the own "
    "names of the children. It encodes the separator of a nested parent twice, so that the server does not find it. The server "
    "itself creates namespaces without parents.",
    REFERENCE: "The server puts names into its queries as they are, so a namespace whose name has a quote cannot be listed.",
}


@dataclass(frozen=True)
class RecordedRun:
    """The verdicts of one run. ``uncoded_errors``: errors to which the bridge gave a code."""

    name: str
    at: str
    checks: tuple[Check, ...]
    uncoded_errors: int = 0

    @property
    def report(self) -> Report:
        return Report("rest", _TITLES[self.name], (), "", {}, self.at, list(self.checks))


def run(name: str) -> RecordedRun:
    """Run the suite on one catalog or server of its own. Raise RuntimeError if something could not be removed."""
    with tempfile.TemporaryDirectory(prefix="interop-") as directory:
        if name == REFERENCE:
            with reference_server(FilePath(directory)) as server:
                properties = {**server.properties, "page_size": "3"}
                return _record(name, _run(properties, crawls_everything=True, races_for_names=True))
        with CATALOGS[name]() as shared, _bridge(name, shared.client_properties) as (url, errors):
            properties = {"uri": url, "keeps_properties": "true"}
            report = _run(properties, depth=_DEPTHS[name], parent=shared.above[shared.hidden :], location=shared.directory)
    return _record(name, report, errors[0])


def _run(properties: Mapping[str, str], **options: Any) -> Report:
    report = run_conformance(Target(get_connector("rest"), properties, server_only=True, **options), lambda check: None)
    if report.remaining:
        print(f"not removed: {'; '.join(report.remaining)}", file=sys.stderr)
    return report


def _record(name: str, report: Report, uncoded_errors: int = 0) -> RecordedRun:
    checks = tuple(Check(c.operation, c.title, c.verdict, mask(c.detail)) for c in report.checks)
    return RecordedRun(name, report.at, checks, uncoded_errors)


def mask(text: str) -> str:
    text = re.sub(r"/tmp/[\w.-]+", "/tmp/lake", text)
    # The directory in which a server was built.
    text = re.sub(r"/home/[\w./:…-]+", "…", text)
    text = re.sub(r"(?<=[a-z]_)[0-9a-f]{8}", "…", text)
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", text)


@contextmanager
def _bridge(impl: str, properties: Mapping[str, str]) -> Iterator[tuple[str, list[int]]]:
    """Yield the URL of a bridge to a namespace, and a list that has the number of errors without a code afterwards."""
    process = subprocess.Popen(
        [str(python_of("impls")), str(_BRIDGE)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    errors: list[int] = []
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"impl": impl, "properties": dict(properties)}) + "\n")
        process.stdin.flush()
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", errors
        errors.append(int(process.communicate(timeout=30)[0]))
    finally:
        process.kill()
        process.wait()


def load_record() -> list[RecordedRun]:
    """Return the recorded runs."""
    runs = json.loads(RECORD.read_text(encoding="utf-8"))
    for item in runs:
        item["checks"] = tuple(Check(**{**check, "verdict": Verdict(check["verdict"])}) for check in item["checks"])
    return [RecordedRun(**item) for item in runs]


def compare(now: RecordedRun) -> list[str]:
    """Return the checks whose verdict differs from the record."""
    recorded = next((item for item in load_record() if item.name == now.name), None)
    before = {(c.operation, c.title): c.verdict for c in recorded.checks} if recorded else {}
    after = {(c.operation, c.title): c for c in now.checks}
    differences = []
    for operation, title in sorted(before.keys() | after.keys()):
        old, new = before.get((operation, title)), after.get((operation, title))
        if old != (new.verdict if new else None):
            detail = f" ({new.detail})" if new and new.detail else ""
            differences.append(
                f"{operation}: {title}: {new.verdict if new else 'missing'} instead of {old or 'no record'}{detail}"
            )
    return differences


def to_markdown(runs: Sequence[RecordedRun]) -> str:
    """Return docs/reference/conformance.md."""
    reports = [item.report for item in runs]
    operations = dict.fromkeys(row.operation for report in reports for row in report.operations)
    lines = [_HEAD, "## Verdicts", "", f"| operation | {' | '.join(report.server for report in reports)} |"]
    lines.append(f"|{' --- |' * (len(reports) + 1)}")
    for operation in operations:
        cells = (next((row for row in report.operations if row.operation == operation), None) for report in reports)
        lines.append(f"| {operation} | {' | '.join(f'{c.verdict} {c.passed_ratio}'.strip() if c else '' for c in cells)} |")
    for item, report in zip(runs, reports, strict=True):
        uncoded = f" {item.uncoded_errors} errors had no code." if item.uncoded_errors else ""
        table = report.to_markdown().splitlines()
        lines += [
            "",
            table[0],
            "",
            f"{report.at}. {report.summary[:1].upper()}{report.summary[1:]}.{uncoded} {_NOTES[item.name]}",
            *table[3:],
        ]
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> None:
    if "--record" in arguments:
        confine("tests.interop.conformance", arguments)
        chosen = [name for name in arguments if name in NAMES] or NAMES
        known = {item.name: item for item in load_record()} if RECORD.exists() else {}
        known |= {name: run(name) for name in chosen}
        runs = [known[name] for name in NAMES if name in known]
        RECORD.write_text(json.dumps([asdict(item) for item in runs], indent=1) + "\n", encoding="utf-8")
    print(to_markdown(load_record()), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
