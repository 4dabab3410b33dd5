"""Unity over https: trusted certificates and client certificates."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from federator.connector import ConfigError, ServiceUnavailable
from federator_connectors.unity import CONNECTOR
from tests.stubs.unity import UnityStub

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1 with its key, in one file; it serves as server, client and authority."""
    where = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=where, check=True, capture_output=True,
    )  # fmt: skip
    both = where / "both.pem"
    both.write_text((where / "cert.pem").read_text() + (where / "key.pem").read_text())
    return both


@pytest.fixture(params=[False, True], ids=["anyone", "known-clients"])
def stub(request: pytest.FixtureRequest, certificate: Path) -> Iterator[UnityStub]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if request.param:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificate)
    with UnityStub(tls=context) as made:
        made.world.create_catalog({"name": "main"}, None)
        yield made


@pytest.fixture(autouse=True)
def company_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many companies set it for requests: the source's own settings go before it."""
    import certifi

    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certifi.where())


def listed(stub: UnityStub, **tls: str) -> list[str]:
    given = {f"tls.{key}": value for key, value in tls.items()}
    settings = CONNECTOR.parse_settings({"endpoint": stub.url, "catalog": "main", "max_retries": "0", **given})
    with CONNECTOR.open("lake", settings) as catalog:
        return catalog.list_namespaces(())


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_a_server_is_trusted_and_a_client_known(stub: UnityStub, certificate: Path) -> None:
    own = str(certificate)
    assert listed(stub, ca_file=own, cert_file=own) == ["main"]
    assert listed(stub, verify="false", cert_file=own, key_file=own) == ["main"]
    with pytest.raises(ServiceUnavailable, match="TLS"):
        listed(stub, cert_file=own)
    assert len(stub.seen) == 2


def test_a_client_that_shows_nothing(stub: UnityStub, certificate: Path, request: pytest.FixtureRequest) -> None:
    if "known-clients" in request.node.name:
        with pytest.raises(ServiceUnavailable):
            listed(stub, ca_file=str(certificate))
        assert stub.seen == []
    else:
        assert listed(stub, ca_file=str(certificate)) == ["main"]


def test_incomplete_pairs_and_missing_files_are_named(tmp_path: Path) -> None:
    needed = {"endpoint": "https://a", "catalog": "main"}
    with pytest.raises(ConfigError, match=r"lake\.unity\.tls\.cert_file: required"):
        CONNECTOR.parse_settings({**needed, "tls.key_file": __file__}, where="lake.")
    for wrong in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigError, match=r"tls\.ca_file(.|\n)*a readable file"):
            CONNECTOR.parse_settings({**needed, "tls.ca_file": str(wrong)})
