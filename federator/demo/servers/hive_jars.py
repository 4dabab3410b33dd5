"""Cache of Hive's jars from Maven Central and of an empty metastore database for each version."""

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
#: further options of the JVM, separated by spaces
JVM_OPTIONS_VARIABLE = "METASTORE_JVM_OPTIONS"

_SCHEMA_TOOLS = {
    "3.1.3": "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool",
    "4.0.1": "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool",
}
# Most servers live for minutes, so a second JIT tier would cost more than it saves. Starting a server and making 30 tables takes
# 13.0 CPU seconds with it and 7.0 without it on Hive 2.3, and 8.6 and 5.4 on 3.1.3.
_JVM_OPTIONS = [
    "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dderby.system.durability=test", "-Duser.timezone=UTC",
]  # fmt: skip
# PySpark's jars that Hive uses: Hadoop, logging, py4j, and libraries that Hive expects from Hadoop.
_FROM_SPARK = (
    "hadoop-client-", "py4j-", "slf4j-api-", "jcl-over-slf4j-", "log4j-", "commons-cli-", "commons-io-", "commons-lang-",
    "gson-", "httpclient-", "javax.servlet-api-",
)  # fmt: skip
_NOT_FROM_HIVE = ("log4j-",)
# Those of PostgreSQL are for a benchmark.
_SCRIPTS = tuple(f"scripts/metastore/upgrade/{database}/" for database in ("derby", "postgres"))


def available(version: str) -> bool:
    """Whether this version can be started: its jars are in the cache, or Maven can fetch them."""
    return _cache_dir(version).is_dir() or shutil.which("mvn") is not None


def prepare(version: str) -> Path:
    """Return the directory with Hive's jars (``lib``) and an empty database (``metastore_db``). The first call creates it.

    Raise StateError.
    """
    cache = _cache_dir(version)
    if cache.is_dir():
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    # One process at a time for all versions, because Maven's cache does not support concurrent use.
    with (cache.parent / "maven.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cache.is_dir():
            _create_cache(version, cache)
    return cache


def _create_cache(version: str, cache: Path) -> None:
    draft = Path(tempfile.mkdtemp(prefix=f"{cache.name}.", dir=cache.parent))
    try:
        fetch(version, draft)
        create_template(version, draft)
        draft.chmod(0o755)
        draft.rename(cache)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def spark_jars() -> Path:
    """Return the directory of PySpark's jars. Raise StateError if PySpark is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StateError("the Hive metastore needs PySpark's jars", hint="pip install 'lance-federator[spark]'")
    return Path(spec.origin).with_name("jars")


def classpath(cache: Path) -> list[str]:
    from_spark = sorted(jar for jar in spark_jars().glob("*.jar") if jar.name.startswith(_FROM_SPARK))
    return [f"{cache}/lib/*", *map(str, from_spark)]


def common_conf(run_dir: Path, database: Path) -> dict[str, str]:
    """Return the properties of all versions: database, warehouse and scratch space, all in ``run_dir``."""
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "hive.metastore.warehouse.dir": str(run_dir / "warehouse"),
        "metastore.warehouse.dir": str(run_dir / "warehouse"),
        "hadoop.tmp.dir": str(run_dir / "tmp"),
    }


def write_conf(run_dir: Path, name: str, values: Mapping[str, str]) -> Path:
    """Write a Hadoop configuration file and the logging configuration. Return their directory."""
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
        # Of two values of an option, the JVM uses the last one.
        *os.environ.get(JVM_OPTIONS_VARIABLE, "").split(),
        # Seconds. By default, Derby looks for a deadlock only after 20 s; other databases do so within a second.
        "-Dderby.locks.deadlockTimeout=0",
        "-Dderby.locks.waitTimeout=10",
        f"-Dderby.system.home={run_dir}",
        f"-Dderby.stream.error.file={run_dir / 'derby.log'}",
        f"-Djava.io.tmpdir={run_dir / 'tmp'}",
    ]


def fetch(version: str, target: Path) -> None:
    """Fill ``lib`` and ``scripts`` from Maven Central: 28 MB for 3.1.3, 79 MB for 4.0.1."""
    lib, work = target / "lib", target / "work"
    lib.mkdir()
    work.mkdir()
    shutil.copy(FILES / version / "pom.xml", work)
    # Pin the plugin's version: Maven would look up an unpinned one each time, and it could differ between machines.
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = ["mvn", "-q", "-B", plugin, f"-DoutputDirectory={lib}", "-DincludeScope=runtime"]
    try:
        process = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=600, check=False)
    except FileNotFoundError:
        variable = f"HIVE{version[0]}_URI"
        raise StateError(
            f"Hive {version} needs Maven once, to fetch its jars", hint=f"install mvn, or set {variable}"
        ) from None
    if process.returncode:
        raise StateError(f"Maven could not fetch Hive {version}", hint=(process.stdout + process.stderr)[-2000:])
    (archive,) = lib.glob("*.tar.gz")
    extract(archive, target)
    archive.unlink()
    shutil.rmtree(work)


def extract(archive: Path, target: Path) -> None:
    """Unpack the jars and the Derby scripts of a Hive distribution into ``lib`` and ``scripts`` of ``target``.

    Raise StateError for a member outside ``target``.
    """
    root = target.resolve()
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, inner = member.name.partition("/")
            jar = inner.startswith("lib/") and not Path(inner).name.startswith(_NOT_FROM_HIVE)
            needed = member.isfile() and (jar or inner.startswith(_SCRIPTS))
            content = tar.extractfile(member) if needed else None
            if content is None:
                continue
            path = (root / inner).resolve()
            if not path.is_relative_to(root):
                raise StateError(f"{archive.name}: the member {member.name!r} is outside the archive's directory")
            # Do not use tar.extract: its ``filter`` is missing before Python 3.11.4, and newer versions warn without it.
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("wb") as file:
                shutil.copyfileobj(content, file)


def create_template(version: str, target: Path) -> None:
    """Create an empty metastore database with Hive's schema tool.

    DataNucleus could also create the tables, but then ``create_catalog`` of 3.1.3 returns success and creates nothing.
    """
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        conf = write_conf(scratch, "metastore-site.xml", common_conf(scratch, target / "metastore_db"))
        jars = os.pathsep.join([str(conf), *classpath(target)])
        java = [str(find_java().executable), *jvm_options(scratch), "-cp", jars]
        command = [*java, _SCHEMA_TOOLS[version], "-dbType", "derby", "-initSchema"]
        environment = {**os.environ, "METASTORE_HOME": str(target)}
        process = subprocess.run(
            command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        if process.returncode:
            raise StateError("Hive's schema tool could not create the metastore's database", hint=process.stderr[-2000:])


def _cache_dir(version: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lance-federator" / f"hive-{version}"
