"""Run other projects' clients on real catalogs, and print who understands whom: ``make interop``.

``python -m tests.interop [--clients impls spark ...] [--catalogs hive3 glue ...]``. Packages are installed first; then everything runs
in a network namespace that has only loopback. Exits with 1 if an operation fails whose failure is not explained in
``tests.interop.differences``, if an explained one passes, or if the contract suite has another verdict than its record.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from federator.demo.servers import hive, hive_jars
from tests.fixtures import nessie
from tests.fixtures.maven import jars
from tests.interop import catalog_clients, conformance, iceberg_engine, minio_vending, servers, vending
from tests.interop.confinement import confine, is_confined
from tests.interop.differences import DIFFERENCES
from tests.interop.environments import ROOT, python_of
from tests.interop.rest_clients import CLIENTS, ClientEnded, Outcome, run_client

IMPLS, CONFORMANCE, VENDING, PYICEBERG = "impls", "conformance", "vending", "pyiceberg"
NESSIE, KEYCLOAK = "nessie", "keycloak"
#: what runs as tests: its title, and its file
_TESTS = {
    NESSIE: ("The contract suite on Nessie", "nessie_contract.py"),
    KEYCLOAK: ("Sign-in through Keycloak", "keycloak_sign_in.py"),
}
#: the catalogs of the clients of the REST protocol and those of ``IMPLS``
CATALOGS = (*dict.fromkeys([*servers.CATALOGS, *catalog_clients.CATALOGS]),)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__.splitlines()[0])
    runs = [IMPLS, CONFORMANCE, VENDING, PYICEBERG, *_TESTS, minio_vending.MINIO, *CLIENTS]
    parser.add_argument("--clients", nargs="+", choices=runs, default=runs)
    parser.add_argument("--catalogs", nargs="+", choices=CATALOGS, default=[*CATALOGS])
    chosen = parser.parse_args(arguments)
    if not is_confined():
        _install(chosen.clients, chosen.catalogs)
    confine("tests.interop", arguments)
    failed = 0
    if IMPLS in chosen.clients:
        failed += _print_impls([name for name in chosen.catalogs if name in catalog_clients.CATALOGS])
    if CONFORMANCE in chosen.clients:
        failed += _print_conformance([name for name in conformance.NAMES if name in (*chosen.catalogs, servers.REFERENCE)])
    if VENDING in chosen.clients:
        for client in vending.SCRIPTS:
            failed += _print_steps(f"{CLIENTS[client].title}, with vended credentials", vending.run_vending(client))
    if PYICEBERG in chosen.clients:
        failed += _print_steps(iceberg_engine.TITLE, iceberg_engine.run_pyiceberg())
    failed += sum(_run_tests(*_TESTS[name]) for name in _TESTS if name in chosen.clients)
    if minio_vending.MINIO in chosen.clients:
        failed += _print_steps(minio_vending.TITLE, minio_vending.run_minio())
    rest_clients = [name for name in chosen.clients if name in CLIENTS]
    if rest_clients:
        failed += _print_rest_clients(rest_clients, [name for name in chosen.catalogs if name in servers.CATALOGS])
    print(f"\n{failed} unexplained" if failed else "\nnothing unexplained")
    return 1 if failed else 0


def _install(clients: Sequence[str], catalogs: Sequence[str]) -> None:
    if "hive3" in catalogs:
        hive_jars.prepare(hive.HIVE3)
    if "iceberg" in catalogs or PYICEBERG in clients:
        jars("iceberg-rest-1.11.0")
    if NESSIE in clients:
        jars(nessie.JARS)
    for name in clients:
        if name in (IMPLS, CONFORMANCE):
            python_of(IMPLS)
        elif name == PYICEBERG:
            python_of(PYICEBERG)
        elif name == VENDING:
            for client in vending.SCRIPTS:
                CLIENTS[client].prepare()
        elif name == minio_vending.MINIO:
            minio_vending.prepare()
        elif name == KEYCLOAK:
            subprocess.run([ROOT / ".ci" / "keycloak"], check=True, stdout=subprocess.DEVNULL)
        elif name != NESSIE:
            CLIENTS[name].prepare()


def _print_impls(catalogs: Sequence[str]) -> int:
    failed = 0
    print(f"# {catalog_clients.IMPLS}\n\n| catalog | operation | verdict |\n| --- | --- | --- |", flush=True)
    for name in catalogs:
        for operation, text in catalog_clients.run_impls(name):
            failed += text != "passed"
            print(f"| {name} | {operation} | {_cell(text)} |", flush=True)
    return failed


def _print_conformance(names: Sequence[str]) -> int:
    failed = 0
    print("\n# The contract suite on other projects\n\n| catalog or server | verdicts |\n| --- | --- |", flush=True)
    for name in names:
        now = conformance.run(name)
        print(f"| {now.report.server} | {now.report.summary} |", flush=True)
        differences = conformance.compare(now)
        print("".join(f"- {_cell(text)}\n" for text in differences), end="", flush=True)
        failed += len(differences)
    return failed


def _run_tests(title: str, file: str) -> int:
    print(f"\n# {title}\n", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", f"tests/interop/{file}"]
    return int(subprocess.run(command, env={**os.environ, "CI": "1"}).returncode != 0)


def _print_steps(title: str, outcomes: Iterator[tuple[str, str]]) -> int:
    failed = 0
    print(f"\n# {title}\n\n| operation | verdict |\n| --- | --- |", flush=True)
    for operation, text in outcomes:
        failed += text != "passed"
        print(f"| {operation} | {_cell(text)} |", flush=True)
    return failed


def _print_rest_clients(clients: Sequence[str], catalogs: Sequence[str]) -> int:
    failed = 0
    with tempfile.TemporaryDirectory(prefix="interop-") as directory:
        (work := Path(directory, "servers")).mkdir()
        with servers.serve(work, catalogs) as all_servers:
            for client in clients:
                served = [server for server in all_servers if CLIENTS[client].reference or server.name != servers.REFERENCE]
                names = [server.name for server in served]
                columns = " | ".join("RestAdapter" if name == servers.REFERENCE else name for name in names)
                print(f"\n# {CLIENTS[client].title}\n\n| operation | {columns} |\n|{' --- |' * (len(names) + 1)}", flush=True)
                try:
                    outcomes = list(run_client(client, served, Path(directory)))
                except ClientEnded as error:
                    print(error)
                    failed += 1
                    continue
                for row in _rows(outcomes, names):
                    print(row)
                print("\n".join(["", *_explained(outcomes)]))
                unexplained = list(_unexplained(client, outcomes, names))
                print("\n".join(["", *unexplained]) if unexplained else "", flush=True)
                failed += len(unexplained)
    return failed


def _rows(outcomes: Sequence[Outcome], names: Sequence[str]) -> Iterator[str]:
    table = {(outcome.operation, outcome.server): outcome for outcome in outcomes}
    for operation in dict.fromkeys(outcome.operation for outcome in outcomes):
        cells = [table.get((operation, name)) for name in names]
        yield f"| {operation} | {' | '.join(_verdict(cell) for cell in cells)} |"


def _verdict(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not run"
    if outcome.text == "passed":
        return "passed"
    return "differs" if any(difference.explains(outcome) for difference in DIFFERENCES) else "**failed**"


def _explained(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the messages of listed differences."""
    for outcome in outcomes:
        if _verdict(outcome) == "differs":
            yield f"- differs as listed: {outcome.server}: {outcome.operation}: {_cell(outcome.text)}"


def _unexplained(client: str, outcomes: Sequence[Outcome], names: Sequence[str]) -> Iterator[str]:
    """Yield failures without a reason, and reasons without a failure."""
    expected = {cell for difference in DIFFERENCES for cell in difference.cells() if cell[0] == client and cell[1] in names}
    for outcome in outcomes:
        cell = (outcome.client, outcome.server, outcome.operation)
        if outcome.text == "passed":
            if cell in expected:
                yield f"- {outcome.server}: {outcome.operation}: passed, but tests/interop/differences.py expects a failure"
        elif not any(difference.explains(outcome) for difference in DIFFERENCES):
            yield f"- {outcome.server}: {outcome.operation}: {_cell(outcome.text)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")[:3000]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
