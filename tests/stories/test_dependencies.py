"""A dependency that was replaced is not installed: every installation compares the hashes of a lock."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-docs.lock")
#: where third-party packages are installed: the number of commands, and the option by which each names the lock
INSTALLATIONS = {
    "Makefile": (2, "--require-hashes -r"),
    ".ci/pythons": (1, "--require-hashes -r"),
    "deploy/Dockerfile": (1, "-c"),
}
_ENTRY = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)((?:.*\\\n)+.*)$", re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_version_has_its_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    entries = _ENTRY.findall(text)
    assert len(entries) > 20
    assert len(entries) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE)), "something is not pinned with =="
    for name, _, more in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", more), name


@pytest.mark.parametrize("file", INSTALLATIONS)
def test_installations_name_the_lock(file: str) -> None:
    commands = re.findall(r"uv\W* pip install [^&\n]*", (ROOT / file).read_text(encoding="utf-8"))
    number, option = INSTALLATIONS[file]
    assert sum(bool(re.search(rf" {option} requirements(-docs)?\.lock", command)) for command in commands) == number
    # Any other command installs this project alone.
    assert all(".lock" in command or "--no-deps" in command for command in commands)


@pytest.mark.parametrize("option", sorted({option for _, option in INSTALLATIONS.values()}))
def test_another_file_of_the_same_version_is_refused(tmp_path: Path, option: str) -> None:
    name, version, more = _ENTRY.findall((ROOT / LOCKS[0]).read_text(encoding="utf-8"))[0]
    (tmp_path / "one.lock").write_text(f"{name}=={version}{more}\n", encoding="utf-8")
    _forge_wheel(tmp_path, name, version)
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--python", sys.executable, "--no-deps", "--no-cache"]
    install = [*uv, "--no-index", "--offline", "--find-links", str(tmp_path), "--target"]
    locked = [*option.split(), str(tmp_path / "one.lock"), *([name] if option == "-c" else [])]
    trusting = subprocess.run([*install, str(tmp_path / "a"), name], capture_output=True, text=True, check=False)
    assert trusting.returncode == 0, trusting.stderr
    refused = subprocess.run([*install, str(tmp_path / "b"), *locked], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "Hash mismatch" in refused.stderr


def _forge_wheel(directory: Path, name: str, version: str) -> None:
    project = name.replace("-", "_")
    information = f"{project}-{version}.dist-info"
    files = {
        f"{project}/__init__.py": "raise SystemExit('replaced')\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{information}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{information}/RECORD"])
    with zipfile.ZipFile(directory / f"{project}-{version}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
