"""The first steps with each catalog: ``init`` writes a file, its commented login is set, and ``doctor`` names the next command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from federator.cli.app import app
from tests.fixtures.glue import GlueAccount
from tests.fixtures.hive import Metastore
from tests.fixtures.iceberg import IcebergServer
from tests.fixtures.polaris import PolarisServer
from tests.fixtures.rest import RestServer
from tests.fixtures.unity import UnityCatalogOfTest

pytestmark = pytest.mark.timeout(600)
#: Names of libraries, and how their errors begin. A user of the federator knows none of them.
_FOREIGN = re.compile(
    r"pydantic|validation error|Traceback|botocore|boto3|urllib3|thrift\.|TTransport|Exception|HTTPConnectionPool|errors\.",
    re.I,
)


@dataclass(frozen=True)
class FirstSteps:
    """A new file, written by ``init`` for one source."""

    file: Path
    impl: str

    def set(self, **values: str) -> None:
        """Give keys of the source a value: lines that the file has, also as comments."""
        text = self.file.read_text(encoding="utf-8")
        for key, value in values.items():
            line = re.compile(rf"^(?:# )?{re.escape(f'{self.impl}.{key}')} = .*$", re.M)
            assert line.search(text), f"the file has no line for {self.impl}.{key}"
            text = line.sub(f"{self.impl}.{key} = {json.dumps(value)}", text)
        self.file.write_text(text, encoding="utf-8")

    def uncomment(self, key: str) -> None:
        text = self.file.read_text(encoding="utf-8")
        assert f"# {self.impl}.{key} = " in text
        self.file.write_text(text.replace(f"# {self.impl}.{key} = ", f"{self.impl}.{key} = "), encoding="utf-8")

    def add(self, line: str) -> None:
        """Append a line to the source's section."""
        text = self.file.read_text(encoding="utf-8")
        self.file.write_text(text.replace(f'impl = "{self.impl}"\n', f'impl = "{self.impl}"\n{line}\n'), encoding="utf-8")

    def doctor(self, **environment: str) -> dict[str, Any]:
        """Return the check of the source, or of the configuration if that has failed, with the next command as ``next``."""
        done = CliRunner().invoke(app, ["-c", str(self.file), "doctor", "--output", "json"], env=environment)
        document = json.loads(done.stdout)
        checks = {check["name"]: check for check in document["checks"]}
        (source,) = [check for check in document["checks"] if check["source"]] or [checks["configuration"]]
        assert (done.exit_code == 0) is (source["state"] != "fail")
        return {**source, "next": document["next"].partition(str(self.file))[2].strip()}


Begin = Callable[[str, str], FirstSteps]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    def begin(impl: str, address: str) -> FirstSteps:
        file = tmp_path / "federator.toml"
        done = CliRunner().invoke(app, ["-c", str(file), "init", f"--{impl}", address])
        assert (done.exit_code, done.stdout) == (0, f"wrote {file}\n")
        assert done.stderr == f"next: federator -c {file} doctor\n"
        return FirstSteps(file, impl)

    return begin


def expect(
    check: Mapping[str, Any], message: str, hint: str | None, following: str = "doctor, after the failed checks are fixed"
) -> None:
    """A failed check says what failed and where, what to do, and what comes next; nothing in it is another library's text."""
    assert check["state"] == "fail"
    assert message in check["message"]
    assert (check["hint"] is None) is (hint is None)
    assert (hint or "") in (check["hint"] or "")
    assert check["next"] == following
    assert not _FOREIGN.search(f"{check['message']} {check['hint']}"), check


def expect_success(check: Mapping[str, Any]) -> None:
    assert (check["state"], check["next"]) == ("ok", "crawl")


@pytest.mark.parametrize("metastore", ["hive2", "hive3"], indirect=True)
def test_hive(begin: Begin, metastore: Metastore) -> None:
    impl = metastore.connector.impl
    steps = begin(impl, metastore.uri)
    expect_success(steps.doctor())
    steps.set(uri="thrift://127.0.0.1:9")
    expect(steps.doctor(), "127.0.0.1:9 cannot be reached (Connection refused)", "check the uri and the network")
    steps.set(uri="thrift://metastore.invalid:9083")
    expect(steps.doctor(), "metastore.invalid:9083 cannot be reached", "check the uri and the network")
    steps.set(uri="http://127.0.0.1:9083")
    expect(steps.doctor(), f"{impl}.uri: 'http://127.0.0.1:9083' is not allowed", "allowed: thrift://host:port")
    steps.set(uri=metastore.uri, **{"client.auth": "kerberus"})
    expect(steps.doctor(), f"{impl}.client.auth: 'kerberus' is not allowed", "allowed: one of none, plain, kerberos")


@pytest.mark.parametrize("metastore", ["hive3"], indirect=True)
def test_hive_without_tls(begin: Begin, metastore: Metastore) -> None:
    steps = begin("hive3", metastore.uri)
    steps.uncomment("client.tls.enabled")
    expect(steps.doctor(), "TLS failed", "a server without TLS causes the same error")


def test_glue(begin: Begin, glue_account: GlueAccount) -> None:
    steps = begin("glue", "us-east-1")
    for key in ("endpoint", "sts_endpoint"):
        steps.add(f"glue.{key} = {json.dumps(glue_account.url)}")
    nothing = {"AWS_EC2_METADATA_DISABLED": "true"}
    expect(steps.doctor(**nothing), "no usable AWS credentials", "set glue.access_key_id and glue.secret_access_key")
    steps.set(access_key_id="${GLUE_KEY_ID}", secret_access_key="${GLUE_SECRET}")
    expect(steps.doctor(), "the environment variable GLUE_KEY_ID is not set", "export GLUE_KEY_ID")
    steps.add('glue.session_token = "${GLUE_SESSION}"')
    keys = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    values = [glue_account.credentials[key] for key in keys]
    login = dict(zip(("GLUE_KEY_ID", "GLUE_SECRET", "GLUE_SESSION"), values, strict=True))
    checks = steps.doctor(**login)
    expect_success(checks)
    assert "tables are opened anonymously" in checks["hint"]
    steps.set(region="eu west")
    expect(steps.doctor(**login), "glue.region: 'eu west' is not allowed", "such as eu-west-1")


def test_unity(begin: Begin, unity_catalog: UnityCatalogOfTest) -> None:
    steps = begin("unity", unity_catalog.server.url)
    expect(steps.doctor(), "reading the catalog unity", "check the names in [sources.unity]")
    steps.set(catalog=unity_catalog.name)
    expect_success(steps.doctor())
    steps.set(endpoint="http://127.0.0.1:9")
    expect(steps.doctor(), "cannot be reached (Connection refused)", "check the address and the network")
    steps.set(endpoint="localhost:8080")
    expect(steps.doctor(), "unity.endpoint: 'localhost:8080' is not allowed", "starts with http:// or https://")
    steps.set(endpoint=unity_catalog.server.url, auth_token="${UNITY_TOKEN}")
    expect(steps.doctor(), "the environment variable UNITY_TOKEN is not set", "export UNITY_TOKEN")


def test_polaris(begin: Begin, polaris_server: PolarisServer, polaris_catalog: str) -> None:
    steps = begin("polaris", polaris_server.url)
    expect(steps.doctor(), "listing the catalogs", "check the source's credentials")
    steps.set(client_id="${POLARIS_CLIENT_ID}", client_secret="${POLARIS_CLIENT_SECRET}")
    expect(steps.doctor(), "the environment variable POLARIS_CLIENT_ID is not set", "export POLARIS_CLIENT_ID")
    login = dict(zip(("POLARIS_CLIENT_ID", "POLARIS_CLIENT_SECRET"), polaris_server.client, strict=True))
    expect_success(steps.doctor(**login))
    wrong = login | {"POLARIS_CLIENT_SECRET": "wrong-secret-of-the-test"}
    expect(steps.doctor(**wrong), "signing in", "check polaris.client_id, client_secret and scope")
    # A wrong name behind a right one.
    steps.set(catalogs=f"{polaris_catalog},missing")
    expect(steps.doctor(**login), "reading the catalog missing", "check the names in [sources.polaris]")


def test_iceberg(begin: Begin, iceberg_server: IcebergServer) -> None:
    steps = begin("iceberg", iceberg_server.url)
    steps.set(**iceberg_server.properties)
    expect_success(steps.doctor())
    steps.set(endpoint=f"{iceberg_server.url}/v1")
    expect(steps.doctor(), "reading the warehouse", "check iceberg.endpoint, the URL before /v1")
    steps.set(endpoint="ftp://catalog")
    expect(steps.doctor(), "iceberg.endpoint: 'ftp://catalog' is not allowed", "starts with http:// or https://")
    steps.set(credential="${ICEBERG_CREDENTIAL}", endpoint=iceberg_server.url)
    checks = steps.doctor(ICEBERG_CREDENTIAL="without-a-colon")
    expect(checks, "iceberg.credential: the value is not allowed", "allowed: client_id:client_secret")
    assert "without-a-colon" not in json.dumps(checks)


def test_rest(begin: Begin, own_rest_server: RestServer) -> None:
    steps = begin("rest", own_rest_server.url)
    expect_success(steps.doctor())
    steps.set(uri=f"{own_rest_server.url}/v1")
    expect(steps.doctor(), "the server does not have this route", "check rest.uri and rest.protocol")
    steps.set(uri=own_rest_server.url, depth="two")
    expect(steps.doctor(), "rest.depth: 'two' is not allowed", "allowed: a whole number from 1 up")


def test_a_directory(begin: Begin, tmp_path: Path) -> None:
    steps = begin("dir", "tables")
    expect(steps.doctor(), f"{tmp_path}/tables: the directory does not exist", "create or mount it")
    (tmp_path / "tables").mkdir()
    expect_success(steps.doctor())
    steps.set(path="ftp://server/tables")
    expect(steps.doctor(), "storage with the scheme ftp:// cannot be listed", "use a path, or one of s3,")
