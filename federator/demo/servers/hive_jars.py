"""Hive's jars from Maven Central and an empty metastore database for each version, once, in the user's cache directory."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from federator.connector import StateError
from federator.pipeline.java import find_java

FILES = Path(__file__).with_name("hive_files")

_SCHEMA_TOOLS = {
    "3.1.3": "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool",
    "4.0.1": "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool",
}
_JVM_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-Dderby.system.durability=test", "-Duser.timezone=UTC"]
# What Hive takes from PySpark: Hadoop, logging, py4j, and libraries that the distribution leaves to Hadoop.
_FROM_SPARK = (
    "hadoop-client-", "py4j-", "slf4j-api-", "jcl-over-slf4j-", "log4j-", "commons-cli-", "commons-io-", "commons-lang-",
    "gson-", "httpclient-", "javax.servlet-api-",
)  # fmt: skip
_NOT_FROM_HIVE = ("log4j-",)


def available(version: str) -> bool:
    """Whether this version can be started here: its jars are in the cache, or Maven can fetch them."""
    return _cache_dir(version).is_dir() or shutil.which("mvn") is not None


def prepare(version: str) -> Path:
    """The directory with Hive's jars (``lib``) and an empty database (``metastore_db``), made on the first call.

    Raises StateError.
    """
    ready = _cache_dir(version)
    if ready.is_dir():
        return ready
    ready.parent.mkdir(parents=True, exist_ok=True)
    # One process at a time, whatever the version: Maven's own cache is not made for two.
    with (ready.parent / "maven.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.is_dir():
            _make(version, ready)
    return ready


def _make(version: str, ready: Path) -> None:
    draft = Path(tempfile.mkdtemp(prefix=f"{ready.name}.", dir=ready.parent))
    try:
        fetch(version, draft)
        create_template(version, draft)
        draft.chmod(0o755)
        draft.rename(ready)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def spark_jars() -> Path:
    """The directory of PySpark's jars. Raises StateError."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise StateError("the Hive metastore runs on PySpark's jars", hint="pip install 'lance-federator[spark]'")
    return Path(found.origin).with_name("jars")


def classpath(cache: Path) -> list[str]:
    from_spark = sorted(jar for jar in spark_jars().glob("*.jar") if jar.name.startswith(_FROM_SPARK))
    return [f"{cache}/lib/*", *map(str, from_spark)]


def common_conf(run_dir: Path, database: Path) -> dict[str, str]:
    """Properties that every version takes: its own database, warehouse and scratch space, all in ``run_dir``."""
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "hive.metastore.warehouse.dir": str(run_dir / "warehouse"),
        "metastore.warehouse.dir": str(run_dir / "warehouse"),
        "hadoop.tmp.dir": str(run_dir / "tmp"),
    }


def write_conf(run_dir: Path, name: str, values: Mapping[str, str]) -> Path:
    """Writes a Hadoop configuration file and the logging configuration; returns their directory."""
    conf = run_dir / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    entries = (f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in values.items())
    text = '<?xml version="1.0"?>\n<configuration>\n{}\n</configuration>\n'.format("\n".join(entries))
    (conf / name).write_text(text, encoding="utf-8")
    shutil.copy(FILES / "log4j2.properties", conf)
    return conf


def jvm_options(run_dir: Path) -> list[str]:
    (run_dir / "tmp").mkdir(exist_ok=True)
    return [
        *_JVM_OPTIONS,
        # Seconds. Two transactions that wait for each other do so for 20 s by default; other databases end one of them at once.
        "-Dderby.locks.deadlockTimeout=1",
        "-Dderby.locks.waitTimeout=10",
        f"-Dderby.system.home={run_dir}",
        f"-Dderby.stream.error.file={run_dir / 'derby.log'}",
        f"-Djava.io.tmpdir={run_dir / 'tmp'}",
    ]


def fetch(version: str, target: Path) -> None:
    """Fills ``lib`` and ``scripts`` from Maven Central: 28 MB for 3.1.3, 79 MB for 4.0.1."""
    lib, work = target / "lib", target / "work"
    lib.mkdir()
    work.mkdir()
    shutil.copy(FILES / version / "pom.xml", work)
    # The plugin's version is pinned because an unpinned one is looked up anew, and differs between machines.
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = ["mvn", "-q", "-B", plugin, f"-DoutputDirectory={lib}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=600, check=False)
    except FileNotFoundError:
        variable = f"HIVE{version[0]}_URI"
        raise StateError(
            f"Hive {version} needs Maven once, to fetch its jars", hint=f"install mvn, or set {variable}"
        ) from None
    if done.returncode:
        raise StateError(f"Maven could not fetch Hive {version}", hint=(done.stdout + done.stderr)[-2000:])
    (archive,) = lib.glob("*.tar.gz")
    extract(archive, target)
    archive.unlink()
    shutil.rmtree(work)


def extract(archive: Path, target: Path) -> None:
    """Unpack the jars and the Derby scripts of a Hive distribution into ``lib`` and ``scripts`` of ``target``.

    Raises StateError for a member outside of ``target``.
    """
    root = target.resolve()
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, inner = member.name.partition("/")
            jar = inner.startswith("lib/") and not Path(inner).name.startswith(_NOT_FROM_HIVE)
            needed = member.isfile() and (jar or inner.startswith("scripts/metastore/upgrade/derby/"))
            content = tar.extractfile(member) if needed else None
            if content is None:
                continue
            path = (root / inner).resolve()
            if not path.is_relative_to(root):
                raise StateError(f"{archive.name}: the member {member.name!r} is outside of the archive's directory")
            # Not tar.extract: its ``filter`` is missing before Python 3.11.4, and without one newer versions warn.
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("wb") as file:
                shutil.copyfileobj(content, file)


def create_template(version: str, target: Path) -> None:
    """An empty metastore database, made by Hive's own schema tool.

    DataNucleus could create the tables too, but then ``create_catalog`` of 3.1.3 answers OK and creates nothing.
    """
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        conf = write_conf(scratch, "metastore-site.xml", common_conf(scratch, target / "metastore_db"))
        jars = os.pathsep.join([str(conf), *classpath(target)])
        java = [str(find_java().executable), *jvm_options(scratch), "-cp", jars]
        command = [*java, _SCHEMA_TOOLS[version], "-dbType", "derby", "-initSchema"]
        environment = {**os.environ, "METASTORE_HOME": str(target)}
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise StateError("Hive's schema tool could not create the metastore's database", hint=done.stderr[-2000:])


def _cache_dir(version: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lance-federator" / f"hive-{version}"
