"""Environments of other projects' clients, from PyPI and npm, below ``.cache/interop``."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CACHE = ROOT / ".cache" / "interop"
#: packages of each environment; a change of a version makes a new environment
PACKAGES = {
    "impls": ("lance-namespace-impls[all]==0.4.2", "pylance==14.0.2", "lance-namespace==0.13.0"),
    "minio": ("minio==7.2.20",),
    "pyiceberg": ("pyiceberg[pyarrow]==0.12.0",),
    "lancedb": ("lancedb==0.40.0", "pylance==14.0.2", "lance-namespace==0.13.0"),
    "ray": ("lance-ray==0.5.0", "ray[data]==2.60.0", "pylance==14.0.2", "lance-namespace==0.13.0"),
    "spark": ("pyspark==3.5.9",),
    "duckdb": ("duckdb==1.5.5", "duckdb-extension-lance==1.5.5"),
    "daft": ("daft==0.7.26", "daft-lance==0.6.0", "pylance==14.0.2", "lance-namespace==0.13.0"),
}


def python_of(name: str) -> Path:
    """Return the interpreter of an environment, which is made from PyPI if it is missing. Raise CalledProcessError."""
    versions = "-".join(package.rpartition("==")[2] for package in PACKAGES[name])
    directory = _CACHE / f"{name}-{versions}"
    if not (directory / "ready").exists():
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--clear", str(directory)], check=True)
        install = [uv, "pip", "install", "--quiet", "--system-certs", "--python", str(directory / "bin" / "python")]
        subprocess.run([*install, *PACKAGES[name]], check=True)
        (directory / "ready").touch()
    return directory / "bin" / "python"


def node_modules() -> Path:
    """Return the packages of ``.ci/lancedb``, which are installed from npm if they are missing. Raise CalledProcessError."""
    files = [ROOT / ".ci" / "lancedb" / name for name in ("package.json", "package-lock.json")]
    digest = hashlib.blake2b(b"".join(file.read_bytes() for file in files), digest_size=4).hexdigest()
    directory = _CACHE / f"node-{digest}"
    if not (directory / "ready").exists():
        directory.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, directory)
        # Not "npm ci", which fails if a registry lacks the builds for other platforms. The lock's digests are checked all the same.
        install = ["npm", "install", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"]
        subprocess.run(install, cwd=directory, check=True, stdout=subprocess.DEVNULL)
        (directory / "ready").touch()
    return directory / "node_modules"
