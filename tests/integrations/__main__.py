"""Run the integrations of other projects, each in its own environment, against a real service: ``make test-integrations``.

``python -m tests.integrations [airflow dagster datahub openmetadata]``. Packages are installed first; then everything runs in a
network namespace that has only loopback. Exits with 1 if a scenario fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.integrations.service import running_service
from tests.interop.confinement import confine, is_confined

ROOT = Path(__file__).parents[2]
#: project → its package; a change of a version makes a new environment
PACKAGES = {
    "dagster": "dagster==1.13.29", "airflow": "apache-airflow==3.3.2", "datahub": "acryl-datahub==1.7.0.17",
    "openmetadata": "openmetadata-ingestion==2.0.7.0",
}  # fmt: skip
#: dbt-core 1.12 needs a package that downloads a binary from GitHub when it is built
CONSTRAINTS = {"openmetadata": "dbt-core<1.12"}


def python_of(name: str) -> Path:
    """Return the interpreter of a project's environment, which is made from PyPI if it is missing."""
    directory = ROOT / ".cache" / "integrations" / PACKAGES[name]
    if not (directory / "ready").exists():
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(directory)], check=True)
        install = [uv, "pip", "install", "--quiet", "--system-certs", "--python", str(directory / "bin" / "python")]
        (directory / "constraints.txt").write_text(CONSTRAINTS.get(name, ""), encoding="utf-8")
        install += ["--constraint", str(directory / "constraints.txt")]
        subprocess.run([*install, PACKAGES[name], "--editable", f"{ROOT}[{name}]"], check=True)
        (directory / "ready").touch()
    return directory / "bin" / "python"


def run_scenario(name: str) -> bool:
    """Run a project's scenario on a service of its own. Print and return whether it passed."""
    with tempfile.TemporaryDirectory(prefix=f"integration-{name}-") as directory, running_service(Path(directory)) as url:
        environment = {
            **os.environ, "FEDERATOR_URL": url, "FEDERATOR_HOME": directory, "PYTHONPATH": "", "HOME": directory,
            "AIRFLOW_HOME": f"{directory}/airflow", "DAGSTER_HOME": "", "DATAHUB_TELEMETRY_ENABLED": "false",
        }  # fmt: skip
        script = ROOT / "tests" / "integrations" / "scenarios" / f"{name}_scenario.py"
        done = subprocess.run(
            [python_of(name), script], cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
    print(f"{name:<12}  {'passed' if done.returncode == 0 else 'FAILED'}  {PACKAGES[name]}", flush=True)
    if done.returncode:
        print(done.stdout[-4000:] + done.stderr[-8000:])
    return done.returncode == 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integrations", description=__doc__.splitlines()[0])
    parser.add_argument("projects", nargs="*", choices=[*PACKAGES, []], default=[])
    chosen = parser.parse_args(arguments).projects or list(PACKAGES)
    if not is_confined():
        for name in chosen:
            python_of(name)
    confine("tests.integrations", arguments)
    passed = [run_scenario(name) for name in chosen]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
