"""The commands of ``deploy/compose.yaml`` without Docker: from the image's wheel, on a real PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest
import yaml  # type: ignore[import-untyped]

from tests.fixtures.availability import fail_or_skip
from tests.fixtures.postgres import free_port
from tests.fixtures.waiting import wait_until

ROOT = Path(__file__).parents[2]
TOKEN = {"Authorization": "Bearer t0ken-of-the-test"}
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))

(HEALTH,) = re.findall(r"(?<=8042)/\w+", COMPOSE["services"]["api"]["healthcheck"]["test"][-1])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = directory.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


@pytest.fixture
def home(wheel: Path, tmp_path: Path, postgres_database: Callable[..., str]) -> Path:
    """The working directory of the image, with a table in the mounted lake."""
    lance.write_dataset(pa.table({"id": [1, 2]}), str(tmp_path / "lake" / "orders.lance"))
    text = (ROOT / "deploy" / "federator.toml").read_text(encoding="utf-8")
    (tmp_path / "federator.toml").write_text(text.replace('"/lake"', f'"{tmp_path}/lake"'), encoding="utf-8")
    (tmp_path / "index").write_text(postgres_database(), encoding="utf-8")
    return tmp_path


@contextmanager
def running(service: str, wheel: Path, home: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A service of the composition; it must end well by itself, or by the signal that Docker sends."""
    values = {"FEDERATOR_INDEX": (home / "index").read_text(encoding="utf-8"), "FEDERATOR_TOKEN": "t0ken-of-the-test"}
    assert COMPOSE["services"][service]["environment"].keys() == values.keys()
    run = "import federator, sys; from federator.cli import main; assert sys.argv.pop(1) in federator.__file__; main()"
    command = [sys.executable, "-c", run, str(wheel), *COMPOSE["services"][service]["command"], *more]
    environment = {**os.environ, **values, "PYTHONPATH": str(wheel), "PYTHONSAFEPATH": "1"}
    process = subprocess.Popen(command, cwd=home, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        _, output = process.communicate(timeout=120)
    assert process.returncode == 0, output


def test_the_parts_work_together(wheel: Path, home: Path) -> None:
    port = free_port()
    with running("upgrade", wheel, home) as upgrade:
        assert upgrade.wait(120) == 0
    with ExitStack() as parts, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for service, more in (("api", ["--port", str(port)]), ("worker", [])):
            parts.enter_context(running(service, wheel, home, *more))
        wait_until(lambda: ready(client), "the API is ready")
        assert client.get("/api/v1/tree").status_code == 401
        # Its schedule begins with a crawl.
        (run,) = wait_until(lambda: [
            run for run in client.get("/api/v1/runs", headers=TOKEN).json()["runs"] if run["state"] not in ("queued", "running")
        ])  # fmt: skip
        assert (run["kind"], run["state"]) == ("crawl", "ok")
        (orders,) = client.get("/api/v1/tree?path=lake", headers=TOKEN).json()["nodes"]
        assert (orders["id"], orders["verified"]) == ("lake$orders", "valid")


def ready(client: httpx.Client) -> bool:
    try:
        return client.get(HEALTH).is_success
    except httpx.TransportError:
        return False


def test_the_image_holds_what_it_needs(wheel: Path) -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"\.\[(\w+)\]", dockerfile)) <= extras.keys()
    assert re.findall(r"uv==([\d.]+)", dockerfile) == re.findall(r"^UV := (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.M)
    module = re.search(r"python -m ([\w.]+)", dockerfile)
    assert module
    assert (wheel / module[1].replace(".", "/")).with_suffix(".py").is_file()
    copied = {
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] == "!"
    }
    assert all((ROOT / name).exists() for name in copied)
    # Everything that the build takes files from.
    assert copied >= {"pyproject.toml", "README.md", "federator", "connectors", "migrations"}
    mounted = [volume for volume in COMPOSE["x-federator"]["volumes"] if volume.startswith("./")]
    assert all((ROOT / "deploy" / volume.partition(":")[0]).exists() for volume in mounted)


def test_the_unit_exposes_little() -> None:
    """Below 2.0 on systemd's own scale from 0 to 10."""
    program = shutil.which("systemd-analyze")
    if program is None:
        fail_or_skip("systemd-analyze is missing: apt-get install systemd")
    unit = ROOT / "deploy" / "systemd" / "federator.service"
    command = [program, "security", "--offline=true", "--threshold=19", "--no-pager", str(unit)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr
    assert "Overall exposure level" in result.stdout
    lines = unit.read_text(encoding="utf-8").splitlines()
    assert {"UMask=0077", "CapabilityBoundingSet=", "NoNewPrivileges=yes"} <= set(lines)
    # The scale does not count the memory.
    assert any(line.startswith("MemoryMax=") for line in lines)


def test_the_image_has_a_numeric_user() -> None:
    lines = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    (user,) = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert any(f"useradd --uid {user.split(':')[0]} " in line for line in lines)
