"""A real Hive metastore, 2.3, 3.1.3 or 4.0.1, on loopback: ``python -m federator.demo.servers.hive RUN_DIR VERSION [KEY=VALUE ...]``.

All versions run in a JVM that py4j drives, so neither a compiler nor a Hive installation is needed. Hive 2.3 is part of PySpark's
jars. Later versions are fetched once from Maven Central into the user's cache directory and use PySpark's Hadoop client, because
Hive's own Hadoop does not run on Java 24 and later. ``KEY=VALUE`` adds to the server's configuration, including TLS and SASL.

A server writes all its files (database, warehouse, logs) to RUN_DIR. Started again with the same RUN_DIR, it has the same tables.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from federator.connector import StateError
from federator.demo.servers import hive_jars, process
from federator.demo.servers.process import Server
from federator.pipeline.java import find_java

HIVE2 = "2.3"
HIVE3 = "3.1.3"
HIVE4 = "4.0.1"
#: key of ``conf``: the port of Hive 2 or 3. Without it, or if the port is in use, the system assigns one.
PORT = "federator.port"

_LOOPBACK = "127.0.0.1"


def start(version: str, run_dir: Path, conf: Mapping[str, str] | None = None, env: dict[str, str] | None = None) -> Server:
    """Start one of the versions and wait until it listens. Missing jars are fetched first, which takes up to a minute.

    ``conf`` adds to its configuration, ``env`` to its environment. Raise StateError with the end of its log, or with Maven's log if
    the jars cannot be fetched.
    """
    if version != HIVE2:
        hive_jars.prepare(version)
    extra = (f"{key}={value}" for key, value in (conf or {}).items())
    return process.start(__name__, run_dir, version, *extra, env=env)


def start_hive2(run_dir: Path) -> Server:
    return start(HIVE2, run_dir)


def start_hive3(run_dir: Path) -> Server:
    return start(HIVE3, run_dir)


def start_hive4(run_dir: Path) -> Server:
    return start(HIVE4, run_dir)


def hive3_available() -> bool:
    """Whether Hive 3.1.3 can be started: its jars are in the cache, or Maven can fetch them."""
    return hive_jars.available(HIVE3)


def _hive2_conf() -> dict[str, str]:
    return {
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        # The default, BoneCP, is not part of PySpark's jars. Without a pool, every drop closes the connection.
        "datanucleus.connectionPoolingType": "HikariCP",
        # PySpark has no LMAX disruptor, which asynchronous logging needs.
        "hive.async.log.enabled": "false",
        # A call that Derby refuses is tried ten times; the default interval is 2 s.
        "hive.hmshandler.retry.interval": "100ms",
    }


def _hive3_conf() -> dict[str, str]:
    return {
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
        "metastore.transactional.event.listeners": "org.apache.hive.hcatalog.listener.DbNotificationListener",
        # Hive spells this key with "metastore" twice.
        "metastore.metastore.event.db.notification.api.auth": "false",
        # Writers of the log wait for each other; the default interval between attempts is 10 s.
        "metastore.notification.sequence.lock.retry.sleep.interval": "100ms",
        # A call that Derby refuses is tried ten times; the default interval is 2 s.
        "metastore.hmshandler.retry.interval": "100ms",
    }


def _hive4_conf() -> dict[str, str]:
    # Neither the distribution of 4.0.1 nor Maven Central has DbNotificationListener in this version, and that of 4.2.0 does not load.
    omitted = ("metastore.transactional.event.listeners",)
    return {key: value for key, value in _hive3_conf().items() if key not in omitted} | {
        "metastore.thrift.bind.host": _LOOPBACK,
    }


@contextmanager
def open_jvm(classpath: Iterable[str], run_dir: Path) -> Iterator[Any]:
    """A JVM that py4j drives. It ends with the block or with this process, which closes its standard input."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    (py4j_jar,) = hive_jars.spark_jars().glob("py4j-*.jar")
    with (run_dir / "java.log").open("w", encoding="utf-8") as log:
        port, token, child = launch_gateway(
            classpath=os.pathsep.join(classpath), jarpath=str(py4j_jar), javaopts=hive_jars.jvm_options(run_dir),
            java_path=str(find_java().executable), die_on_exit=True, enable_auth=True, return_proc=True,
            redirect_stdout=log, redirect_stderr=log, cwd=str(run_dir),
        )  # fmt: skip
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        try:
            yield gateway.jvm
        finally:
            gateway.shutdown()
            child.kill()
            child.wait()


@contextmanager
def report_jvm_errors() -> Iterator[None]:
    """Raise StateError for an error in the JVM. The error is read while the JVM still runs."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        raise StateError("the server did not start", hint=str(error)) from None


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


def _serve_handler(jvm: Any, handler: Any, conf: Mapping[str, str], ready: Callable[[int], None]) -> None:
    """Serve Hive 2 or 3 as their own main class does, but on loopback: that of 3.1.3 always binds the wildcard address.

    Call ``ready`` with the port when the server listens.
    """
    port = int(conf.get(PORT, "0"))
    thrift, metastore = jvm.org.apache.thrift, jvm.org.apache.hadoop.hive.metastore
    if conf.get("metastore.use.SSL") == "true":
        keystore, password = conf["metastore.keystore.path"], conf["metastore.keystore.password"]
        listener = metastore.utils.SecurityUtils.getServerSSLSocket(_LOOPBACK, 0, keystore, password, jvm.java.util.ArrayList())
    else:
        loopback = jvm.java.net.InetAddress.getByName(_LOOPBACK)
        address = jvm.java.net.InetSocketAddress(loopback, 0 if port and _is_open(port) else port)
        listener = thrift.transport.TServerSocket(address)
    options = getattr(thrift.server, "TThreadPoolServer$Args")(listener)
    if conf.get("metastore.sasl.enabled") == "true":
        principal = conf["metastore.kerberos.principal"]
        bridge = metastore.security.HadoopThriftAuthBridge.getBridge()
        sasl = bridge.createServer(conf["metastore.kerberos.keytab.file"], principal, principal)
        hadoop = metastore.conf.MetastoreConf.newMetastoreConf()
        properties = metastore.utils.MetaStoreUtils.getMetaStoreSaslProperties(hadoop, False)
        plain = getattr(metastore.api, "ThriftHiveMetastore$Processor")(handler)
        options = options.processor(sasl.wrapProcessor(plain)).transportFactory(sasl.createTransportFactory(properties))
    else:
        options = options.processor(metastore.TSetIpAddressProcessor(handler))
    server = thrift.server.TThreadPoolServer(options.minWorkerThreads(4).maxWorkerThreads(128))
    ready(listener.getServerSocket().getLocalPort())
    server.serve()


def _serve_hive4(jvm: Any, ready: Callable[[int], None]) -> None:
    """Serve Hive 4 through its own entry point. It supports a bind address, TLS and SASL, but not port 0."""
    metastore = jvm.org.apache.hadoop.hive.metastore
    conf = metastore.conf.MetastoreConf.newMetastoreConf()
    with socket.create_server((_LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    threading.Thread(target=_announce_when_open, args=(port, ready), daemon=True).start()
    metastore.HiveMetaStore.startMetaStore(port, metastore.security.HadoopThriftAuthBridge.getBridge(), conf)


def _announce_when_open(port: int, ready: Callable[[int], None]) -> None:
    while not _is_open(port):
        time.sleep(0.05)
    ready(port)


def _is_open(port: int) -> bool:
    try:
        with socket.create_connection((_LOOPBACK, port), timeout=1) as probe:
            # If nothing listens on the port, the system may assign it to the probe, which then connects to itself.
            return bool(probe.getsockname() != probe.getpeername())
    except OSError:
        return False


def _serve(run_dir: Path, version: str, extra: dict[str, str]) -> None:
    """Build the metastore and serve it until the process ends."""

    def ready(port: int) -> None:
        process.announce(f"hive {version}", f"thrift://{_LOOPBACK}:{port}", run_dir)

    database = run_dir / "metastore_db"
    if version == HIVE2:
        jars, file, version_conf = [f"{hive_jars.spark_jars()}/*"], "hive-site.xml", _hive2_conf()
    else:
        cache = hive_jars.prepare(version)
        jars, file, version_conf = (
            hive_jars.classpath(cache),
            "metastore-site.xml",
            _hive3_conf() if version == HIVE3 else _hive4_conf(),
        )
        if not database.exists():
            shutil.copytree(cache / "metastore_db", database)
    conf = hive_jars.write_conf(run_dir, file, hive_jars.common_conf(run_dir, database) | version_conf | extra)
    core = {key: value for key, value in extra.items() if key.startswith(("hadoop.", "fs."))}
    hive_jars.write_conf(run_dir, "core-site.xml", core)
    # Hive's variable for a directory with additional jars, mainly storage drivers.
    aux_jars = [f"{path}/*" for path in [os.environ.get("HIVE_AUX_JARS_PATH")] if path]
    with open_jvm([str(conf), *jars, *aux_jars], run_dir) as jvm, report_jvm_errors():
        if version == HIVE4:
            _serve_hive4(jvm, ready)
        else:
            _serve_handler(jvm, _hive2_handler(jvm) if version == HIVE2 else _hive3_handler(jvm), extra, ready)


def main(arguments: list[str]) -> int:
    versions = (HIVE2, HIVE3, HIVE4)
    if len(arguments) < 2 or arguments[1] not in versions or not all("=" in extra for extra in arguments[2:]):
        sys.stderr.write(f"usage: python -m {__spec__.name} RUN_DIR {'|'.join(versions)} [KEY=VALUE ...]\n")
        return 64
    run_dir = Path(arguments[0]).resolve()
    run_dir.mkdir(parents=True, exist_ok=True)
    extra = {key: value for key, _, value in (argument.partition("=") for argument in arguments[2:])}
    try:
        _serve(run_dir, arguments[1], extra)
    except StateError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
