"""A real Hive metastore, 2.3 or 3.1.3, on loopback: ``python -m federator.demo.servers.hive RUN_DIR 2.3|3.1.3``.

Both versions are built in a JVM through py4j, so neither a compiler nor a Hive installation is needed, and any Java from 17 up
serves. Hive 2.3 comes from PySpark's own jars; Hive 3.1.3 from Maven Central, once, into the user's cache directory, on top of
PySpark's Hadoop client (Hive's own Hadoop does not run on Java 24 and later).

Everything a server writes (database, warehouse, logs) is in RUN_DIR; a server started again on the same RUN_DIR has its tables.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from federator.connector import StateError
from federator.demo.servers import process
from federator.demo.servers.process import Server
from federator.pipeline.java import find_java

HIVE2 = "2.3"
HIVE3 = "3.1.3"

_FILES = Path(__file__).with_name("hive_files")
_JVM_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-Dderby.system.durability=test", "-Duser.timezone=UTC"]
# What Hive 3.1.3 takes from PySpark: Hadoop, logging, py4j, and libraries that the distribution leaves to Hadoop.
_FROM_SPARK = ("hadoop-client-", "py4j-", "slf4j-api-", "jcl-over-slf4j-", "log4j-", "commons-cli-", "commons-io-")
_NOT_FROM_HIVE = ("log4j-",)


def start_hive2(run_dir: Path) -> Server:
    """Starts Hive 2.3 and waits until it listens. Raises StateError with the end of its log if it does not."""
    return process.start(__name__, run_dir, HIVE2)


def start_hive3(run_dir: Path) -> Server:
    """Starts Hive 3.1.3 and waits until it listens; fetches its jars first if need be, which takes a minute at worst.

    Raises StateError with the end of its log, or with Maven's if the jars could not be fetched.
    """
    prepare_hive3()
    return process.start(__name__, run_dir, HIVE3)


def hive3_available() -> bool:
    """Whether Hive 3.1.3 can be started here: its jars are in the cache, or Maven can fetch them."""
    return _cache_dir().is_dir() or shutil.which("mvn") is not None


def prepare_hive3() -> Path:
    """The directory with Hive 3.1.3's jars (``lib``) and an empty database (``metastore_db``), made on the first call.

    Two processes may make it at once: each works in a directory of its own, and the first to finish wins.
    """
    ready = _cache_dir()
    if ready.is_dir():
        return ready
    ready.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{ready.name}.", dir=ready.parent))
    try:
        _fetch(draft)
        _create_template(draft)
        draft.chmod(0o755)
        draft.rename(ready)
    except OSError:
        if not ready.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return ready


def _cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lance-federator" / f"hive-{HIVE3}"


def _fetch(target: Path) -> None:
    """Fills ``lib`` and ``scripts`` from Maven Central, 28 MB."""
    lib, work = target / "lib", target / "work"
    lib.mkdir()
    work.mkdir()
    shutil.copy(_FILES / "pom.xml", work)
    # The plugin's version is pinned because an unpinned one is looked up anew, and differs between machines.
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = ["mvn", "-q", "-B", plugin, f"-DoutputDirectory={lib}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=600, check=False)
    except FileNotFoundError:
        raise StateError("Hive 3.1.3 needs Maven once, to fetch its jars", hint="install mvn, or set HIVE3_URI") from None
    if done.returncode:
        raise StateError("Maven could not fetch Hive 3.1.3", hint=(done.stdout + done.stderr)[-2000:])
    (archive,) = lib.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        for member in tar:
            _, _, inner = member.name.partition("/")
            jar = inner.startswith("lib/") and not Path(inner).name.startswith(_NOT_FROM_HIVE)
            if member.isfile() and (jar or inner.startswith("scripts/metastore/upgrade/derby/")):
                member.name = inner
                tar.extract(member, target, filter="data")
    archive.unlink()
    shutil.rmtree(work)


def _create_template(target: Path) -> None:
    """An empty metastore database, made by Hive's own schema tool.

    DataNucleus could create the tables too, but then ``create_catalog`` answers OK and creates nothing.
    """
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        conf = _write_conf(scratch, "metastore-site.xml", _hive3_conf(scratch, target / "metastore_db"))
        classpath = os.pathsep.join([str(conf), *_hive3_classpath(target)])
        tool = "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool"
        command = [
            str(find_java().executable),
            *_jvm_options(scratch),
            "-cp",
            classpath,
            tool,
            "-dbType",
            "derby",
            "-initSchema",
        ]
        environment = {**os.environ, "METASTORE_HOME": str(target)}
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise StateError("Hive's schema tool could not create the metastore's database", hint=done.stderr[-2000:])


def _spark_jars() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise StateError("the Hive metastore runs on PySpark's jars", hint="pip install 'lance-federator[spark]'")
    return Path(found.origin).with_name("jars")


def _hive3_classpath(cache: Path) -> list[str]:
    from_spark = sorted(jar for jar in _spark_jars().glob("*.jar") if jar.name.startswith(_FROM_SPARK))
    return [f"{cache}/lib/*", *map(str, from_spark)]


def _common_conf(run_dir: Path, database: Path) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database};create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "hive.metastore.warehouse.dir": str(run_dir / "warehouse"),
        "metastore.warehouse.dir": str(run_dir / "warehouse"),
        "hadoop.tmp.dir": str(run_dir / "tmp"),
    }


def _hive2_conf(run_dir: Path) -> dict[str, str]:
    return _common_conf(run_dir, run_dir / "metastore_db") | {
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        # The default, BoneCP, is not among PySpark's jars; without it every drop ends the connection.
        "datanucleus.connectionPoolingType": "HikariCP",
        # PySpark has no LMAX disruptor, which asynchronous logging needs.
        "hive.async.log.enabled": "false",
    }


def _hive3_conf(run_dir: Path, database: Path) -> dict[str, str]:
    return _common_conf(run_dir, database) | {
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        "metastore.transactional.event.listeners": "org.apache.hive.hcatalog.listener.DbNotificationListener",
        # The doubled word is Hive's.
        "metastore.metastore.event.db.notification.api.auth": "false",
    }


def _write_conf(run_dir: Path, name: str, values: Mapping[str, str]) -> Path:
    conf = run_dir / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    entries = (f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in values.items())
    text = '<?xml version="1.0"?>\n<configuration>\n{}\n</configuration>\n'.format("\n".join(entries))
    (conf / name).write_text(text, encoding="utf-8")
    shutil.copy(_FILES / "log4j2.properties", conf)
    return conf


def _jvm_options(run_dir: Path) -> list[str]:
    (run_dir / "tmp").mkdir(exist_ok=True)
    return [
        *_JVM_OPTIONS,
        f"-Dderby.system.home={run_dir}",
        f"-Dderby.stream.error.file={run_dir / 'derby.log'}",
        f"-Djava.io.tmpdir={run_dir / 'tmp'}",
    ]


@contextmanager
def _jvm(classpath: Iterable[str], run_dir: Path) -> Iterator[Any]:
    """A JVM that py4j drives. It ends with the block, and, because its standard input closes, with this process."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    (py4j_jar,) = _spark_jars().glob("py4j-*.jar")
    with (run_dir / "java.log").open("w", encoding="utf-8") as log:
        port, token, child = launch_gateway(
            classpath=os.pathsep.join(classpath), jarpath=str(py4j_jar), javaopts=_jvm_options(run_dir),
            java_path=str(find_java().executable), die_on_exit=True, enable_auth=True, return_proc=True,
            redirect_stdout=log, redirect_stderr=log, cwd=str(run_dir),
        )  # fmt: skip
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        try:
            yield gateway
        finally:
            gateway.shutdown()
            child.kill()
            child.wait()


def _hive2_handler(jvm: Any) -> Any:
    metastore = jvm.org.apache.hadoop.hive.metastore
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
    handler = getattr(metastore, "HiveMetaStore$HMSHandler")("federator", conf, False)
    return metastore.RetryingHMSHandler.getProxy(conf, handler, False)


def _hive3_handler(jvm: Any) -> Any:
    metastore = jvm.org.apache.hadoop.hive.metastore
    conf = metastore.conf.MetastoreConf.newMetastoreConf()
    handler = getattr(metastore, "HiveMetaStore$HMSHandler")("federator", conf, False)
    return metastore.RetryingHMSHandler.getProxy(conf, handler, False)


def _serve(run_dir: Path, version: str) -> None:
    """Builds the metastore's handler and serves it until the process ends.

    Not by Hive's own main class: that of 3.1.3 always binds the wildcard address.
    """
    if version == HIVE3:
        cache = prepare_hive3()
        classpath = _hive3_classpath(cache)
        database = run_dir / "metastore_db"
        if not database.exists():
            shutil.copytree(cache / "metastore_db", database)
        conf = _write_conf(run_dir, "metastore-site.xml", _hive3_conf(run_dir, database))
    else:
        classpath = [f"{_spark_jars()}/*"]
        conf = _write_conf(run_dir, "hive-site.xml", _hive2_conf(run_dir))
    with _jvm([str(conf), *classpath], run_dir) as gateway:
        jvm = gateway.jvm
        handler = _hive3_handler(jvm) if version == HIVE3 else _hive2_handler(jvm)
        thrift = jvm.org.apache.thrift
        loopback = jvm.java.net.InetAddress.getByName("127.0.0.1")
        socket = thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress(loopback, 0))
        processor = jvm.org.apache.hadoop.hive.metastore.TSetIpAddressProcessor(handler)
        options = getattr(thrift.server, "TThreadPoolServer$Args")(socket).processor(processor)
        server = thrift.server.TThreadPoolServer(options.minWorkerThreads(4).maxWorkerThreads(128))
        process.announce(f"hive {version}", f"thrift://127.0.0.1:{socket.getServerSocket().getLocalPort()}", run_dir)
        server.serve()


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[1] not in (HIVE2, HIVE3):
        sys.stderr.write(f"usage: python -m {__spec__.name} RUN_DIR {HIVE2}|{HIVE3}\n")
        return 64
    run_dir = Path(arguments[0]).resolve()
    run_dir.mkdir(parents=True, exist_ok=True)
    try:
        _serve(run_dir, arguments[1])
    except StateError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
