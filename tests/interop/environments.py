"""Virtual environments and jars of other projects' clients, from PyPI and Maven Central, below ``.cache/interop``."""

from __future__ import annotations

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
