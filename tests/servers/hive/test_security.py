"""TLS, PLAIN and Kerberos, each against real metastores that demand it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path as FilePath

import lance_namespace as ln
import pytest

from federator.connector import ConfigError, ServiceUnavailable, Unauthenticated
from federator.demo.servers import hive
from federator.demo.servers.process import Server
from federator.model import ROOT, NamespaceRecord, TableRecord
from federator_connectors import hive3
from federator_connectors._hive.catalog import HiveCatalog
from federator_connectors._hive.transport import build_dialer
from tests.fixtures import certificates
from tests.fixtures.certificates import PASSWORD, Certificates
from tests.fixtures.hive import started
from tests.fixtures.kerberos import REALM, Realm, realm

__all__ = ["realm"]

pytestmark = pytest.mark.timeout(180)

METASTORE = f"hive/localhost@{REALM}"
HIVE_ANYWHERE = f"hive/_HOST@{REALM}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls(files: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Hive 3.1.3 behind TLS."""
    yield from _serving(hive.HIVE3, tmp_path_factory, _tls(files))


@pytest.fixture(scope="module")
def tls_and_plain(files: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Hive 4.0.1 behind TLS, with one user."""
    conf = {
        "metastore.authentication": "CONFIG",
        "hive.metastore.authentication.config.username": "svc",
        "hive.metastore.authentication.config.password": "right one",
        "metastore.execute.setugi": "false",
    }
    yield from _serving(hive.HIVE4, tmp_path_factory, _tls(files) | conf)


@pytest.fixture(
    scope="module", params=[(hive.HIVE3, "authentication"), (hive.HIVE4, "privacy")], ids=lambda param: "-".join(param)
)
def kerberised(request: pytest.FixtureRequest, realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Metastores that take Kerberos tickets only, one without a security layer and one with encryption."""
    version, protection = request.param
    conf = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": protection,
        "metastore.sasl.enabled": "true",
        "metastore.kerberos.principal": METASTORE,
        "metastore.kerberos.keytab.file": realm.keytab("hive/localhost"),
    }
    java = {"JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={realm.environment['KRB5_CONFIG']}"}
    yield from _serving(version, tmp_path_factory, conf, java)


def _tls(files: Certificates) -> dict[str, str]:
    return {
        "metastore.use.SSL": "true",
        "metastore.keystore.path": files.keystore,
        "metastore.keystore.password": PASSWORD,
        "metastore.keystore.type": "PKCS12",
    }


def _serving(
    version: str, factory: pytest.TempPathFactory, conf: dict[str, str], env: dict[str, str] | None = None
) -> Iterator[str]:
    server: Server = started(lambda run_directory: hive.start(version, run_directory, conf, env), factory.mktemp("secure"))
    try:
        yield server.uri.replace("127.0.0.1", "localhost")
    finally:
        server.stop()


def _open(uri: str, **properties: str) -> HiveCatalog:
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    settings = hive3.CONNECTOR.parse_settings({"uri": uri, "client.timeout": "20", **keys})
    opened = hive3.CONNECTOR.open("lake", settings)
    assert isinstance(opened, HiveCatalog)
    return opened


def _works(catalog: HiveCatalog, directory: FilePath) -> None:
    """Reads, writes, and an answer of some size."""
    with catalog:
        database = ("hive", "secure")
        catalog.create_namespace(NamespaceRecord("lake", database, location=f"file:{directory}"))
        long = {f"k{number}": "v" * 4000 for number in range(40)}
        declared = catalog.declare_table(TableRecord("lake", (*database, "t"), f"file:{directory}/t.lance", long))
        assert catalog.describe_table((*database, "t")).digest == declared.digest
        catalog.deregister_table(declared)
        catalog.drop_namespace(database)


def test_tls(tls: str, files: Certificates, tmp_path: FilePath) -> None:
    trusted = {"client__tls__enabled": "true", "client__tls__ca_file": files.ca}
    _works(_open(tls, **trusted), tmp_path)
    by_address = tls.replace("localhost", "127.0.0.1")
    for uri, properties, message in (
        (tls, {"client__tls__enabled": "true"}, "TLS failed .*certificate verify failed"),
        (by_address, trusted, "TLS failed .*IP address mismatch"),
        (tls, {}, "closed the connection|not as a Hive metastore|in time"),
    ):
        with _open(uri, **properties) as catalog, pytest.raises(ServiceUnavailable, match=message):
            catalog.list_namespaces(ROOT)
    with _open(by_address, **trusted, client__tls__check_hostname="false") as catalog:
        assert catalog.list_namespaces(ROOT) == ["hive"]


def test_tls_to_a_server_without(hive3_uri: str) -> None:
    with _open(hive3_uri, client__tls__enabled="true") as catalog, pytest.raises(ServiceUnavailable) as caught:
        catalog.list_namespaces(ROOT)
    assert caught.value.hint


def test_an_idle_tls_connection_that_ended_does_not_fail_a_write(tls: str, files: Certificates, tmp_path: FilePath) -> None:
    with _open(tls, client__tls__enabled="true", client__tls__ca_file=files.ca, client__pool_size="1") as catalog:
        catalog.list_namespaces(ROOT)
        socket.socket.shutdown(catalog._store._client._idle[-1]._socket.handle, socket.SHUT_RDWR)
        catalog.create_namespace(NamespaceRecord("lake", ("hive", "once"), location=f"file:{tmp_path}"))
        catalog.drop_namespace(("hive", "once"))


def test_our_certificate_is_shown_to_a_server_that_asks(files: Certificates) -> None:
    """No metastore asks, but proxies before them do."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.ca)
    context.load_cert_chain(files.server)
    context.verify_mode = ssl.CERT_REQUIRED
    shown: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            peer, _ = server.accept()
            with context.wrap_socket(peer, server_side=True) as secured:
                shown.append(secured.getpeercert())

        thread = threading.Thread(target=accept)
        thread.start()
        properties = {"uri": "localhost", "client.tls.enabled": "true", "client.tls.ca-file": files.ca}
        settings = hive3.CONNECTOR.parse_settings({**properties, "client.tls.cert-file": files.client})
        transport, _ = build_dialer("lake", settings)(("localhost", server.getsockname()[1]), 5)
        thread.join(10)
        transport.close()
    assert "client" in str(shown)


def test_a_file_that_cannot_be_read_is_a_mistake_in_the_configuration(tmp_path: FilePath) -> None:
    with pytest.raises(ConfigError, match=r"no\.pem"):
        _open("localhost", client__tls__enabled="true", client__tls__ca_file=str(tmp_path / "no.pem"))


def test_plain(tls_and_plain: str, files: Certificates, tmp_path: FilePath) -> None:
    trusted = {"client__tls__enabled": "true", "client__tls__ca_file": files.ca}
    login = {"client__auth": "PLAIN", "client__user": "svc"}
    _works(_open(tls_and_plain, **trusted, **login, client__password="right one"), tmp_path)
    with _open(tls_and_plain, **trusted, **login, client__password="wrong one") as catalog:
        with pytest.raises(Unauthenticated) as caught:
            catalog.list_namespaces(ROOT)
        assert "wrong one" not in str(caught.value)
    with _open(tls_and_plain, **trusted) as catalog, pytest.raises(ServiceUnavailable) as unavailable:
        catalog.list_namespaces(ROOT)
    assert "SASL" in str(unavailable.value.hint)


def test_kerberos_by_keytab(kerberised: str, realm: Realm, tmp_path: FilePath, request: pytest.FixtureRequest) -> None:
    properties = {"client__auth": "kerberos", "client__kerberos__principal": HIVE_ANYWHERE}
    _works(_open(kerberised, **properties, client__kerberos__keytab=realm.keytab("alice")), tmp_path)
    with _open(kerberised, **properties, client__kerberos__keytab=realm.keytab("alice")) as catalog:
        catalog.list_namespaces(ROOT)
        # RFC 4752: 1 no layer, 4 confidentiality.
        assert catalog._store._client._idle[-1]._transport.sasl._layer == (4 if "privacy" in request.node.name else 1)
    both = _open(kerberised, **properties, client__kerberos__keytab=realm.keytab("bob"), client__kerberos__user=f"bob@{REALM}")
    _works(both, tmp_path)


def test_kerberos_by_ticket_cache(kerberised: str, realm: Realm, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "tickets"
    realm.log_in("carol", cache)
    monkeypatch.setenv("KRB5CCNAME", str(cache))
    facade = ln.connect(
        "federator_connectors.hive3.Hive3Namespace",
        {"uri": kerberised, "client.auth": "kerberos", "client.kerberos.principal": METASTORE},
    )
    assert facade.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces == ["hive"]


def test_kerberos_without_a_ticket_or_for_another_server_is_unauthenticated(kerberised: str, realm: Realm) -> None:
    with _open(kerberised, client__auth="kerberos", client__kerberos__principal=HIVE_ANYWHERE) as catalog:
        with pytest.raises(Unauthenticated, match="No Kerberos credentials available") as caught:
            catalog.list_namespaces(ROOT)
        assert caught.value.hint
    keytab = realm.keytab("alice")
    for principal, user in ((f"nobody/_HOST@{REALM}", None), (HIVE_ANYWHERE, f"mallory@{REALM}")):
        with _open(
            kerberised, client__auth="kerberos", client__kerberos__principal=principal, client__kerberos__keytab=keytab,
            **({"client__kerberos__user": user} if user else {}),
        ) as catalog, pytest.raises(Unauthenticated):  # fmt: skip
            catalog.list_namespaces(ROOT)


def test_without_kerberos_a_kerberised_metastore_is_unavailable(kerberised: str) -> None:
    with _open(kerberised, client__timeout="5") as catalog, pytest.raises(ServiceUnavailable) as caught:
        catalog.list_namespaces(ROOT)
    assert "SASL" in str(caught.value.hint)
