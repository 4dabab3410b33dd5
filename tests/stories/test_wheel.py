"""The wheel: everything that an installation needs, nothing else, and the same bytes from each build."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: directory of the tree → directory of the wheel
PACKAGES = {
    "federator": "federator",
    "connectors/federator_connectors": "federator_connectors",
    "migrations": "federator/_migrations",
}


def build(directory: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = directory.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def list_sources() -> set[str]:
    """The names in the wheel of all files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    names = set()
    for name in filter(lambda name: (ROOT / name).exists(), listed):
        (package,) = (package for package in PACKAGES if PurePosixPath(name).is_relative_to(package))
        names.add(PACKAGES[package] + name.removeprefix(package))
    return names


def test_it_has_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    assert names - info == list_sources()
    assert {PurePosixPath(*PurePosixPath(name).parts[1:]).as_posix() for name in info} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip
    # What no import would miss: type information, migrations, the page, SQL and templates of reports, Hive's build files.
    assert names >= {
        "federator/py.typed", "federator_connectors/py.typed", "federator/_migrations/env.py", "federator/web/index.html",
        "federator/pipeline/reports/page.html.j2", "federator/demo/servers/hive_files/3.1.3/pom.xml",
    }  # fmt: skip


def test_two_builds_are_equal(wheel: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_its_description_has_no_relative_links(metadata: Message) -> None:
    description = metadata.get_payload()
    assert isinstance(description, str)
    assert description.startswith("# Lance Federator\n")
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert links
    assert all(link.startswith("https://") for link in links), links


def test_an_installation_for_a_service_has_no_simulated_cloud(metadata: Message) -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    included = set(re.findall(r"[\w-]+", everything.partition("[")[2]))
    assert included == extras.keys() - {"all", "demo"}
    needs_moto = [value for value in metadata.get_all("Requires-Dist", []) if value.startswith("moto")]
    assert needs_moto
    assert all(value.endswith("extra == 'demo'") for value in needs_moto)
