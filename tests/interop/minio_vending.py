"""Vended credentials on MinIO, whose STS enforces session policies: they open their table as their role may, and nothing else."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import lance
import pyarrow as pa
import requests
from botocore.exceptions import ClientError

from tests.fixtures.postgres import free_port
from tests.interop.environments import ROOT, python_of
from tests.unit.api.lance.conftest import served

TITLE = "pylance and boto3 on MinIO, with vended credentials"
MINIO = "minio"
_USER, _SECRET = "lakeuser", "lakepassword"
_ROOT = {"MINIO_ROOT_USER": "rootuser", "MINIO_ROOT_PASSWORD": "rootpassword"}
_ROWS = pa.table({"id": [1, 2, 3]})
_REPEATS = requests.adapters.Retry(total=None, connect=120, backoff_factor=0.05, backoff_max=0.5)
# MinIO's STS issues nothing to its administrator; users are made by its own client.
_MAKE_USER = """
import sys
from minio import MinioAdmin
from minio.credentials import StaticProvider
admin = MinioAdmin(endpoint=sys.argv[1], credentials=StaticProvider(sys.argv[2], sys.argv[3]), secure=False)
admin.user_add(access_key=sys.argv[4], secret_key=sys.argv[5])
admin.policy_set("readwrite", user=sys.argv[4])
"""


def prepare() -> None:
    """Install the server and its client. Raise CalledProcessError."""
    subprocess.run([ROOT / ".ci" / "minio"], check=True, stdout=subprocess.DEVNULL)
    python_of(MINIO)


def run_minio() -> Iterator[tuple[str, str]]:
    """Yield each operation with ``passed``, or the difference to what is expected."""
    with tempfile.TemporaryDirectory(prefix="minio-") as name, _minio(Path(name)) as url:
        storage = {"endpoint": url, "allow_http": "true", "region": "us-east-1"}
        owner = {**storage, "access_key_id": _USER, "secret_access_key": _SECRET}
        _s3(url, owner).create_bucket(Bucket="lake")
        for table in ("orders", "orders2"):
            lance.write_dataset(_ROWS, f"s3://lake/w/{table}.lance", storage_options=owner)
        os.environ |= {"LAKE_KEY": _USER, "LAKE_SECRET": _SECRET}
        secrets = {"access_key_id": "${LAKE_KEY}", "secret_access_key": "${LAKE_SECRET}"}
        sts = {"role_arn": "arn:minio:iam::0:role/unused", "endpoint": url}
        source = {"impl": "dir", "root": "s3://lake/w", "storage": {**storage, **secrets}, "vend": "sts", "sts": sts}
        with served(Path(name), {"s3": source}, bare=True) as service:
            service.crawl("s3")
            for role in ("viewer", "writer"):
                described = service.post(
                    "/v1/table/s3%24orders/describe", {"vend_credentials": True}, caller=f"{role} s3$orders"
                )
                assert described.status_code == 200, described.text
                yield from _check(role, url, described.json()["storage_options"])


def _check(role: str, url: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    s3 = _s3(url, {key: options[f"aws_{key}"] for key in ("access_key_id", "secret_access_key", "session_token")})
    own, other = "s3://lake/w/orders.lance", "s3://lake/w/orders2.lance"
    writes = role == "writer"
    rows, storage = pa.table({"id": [9]}), dict(options)
    operations: tuple[tuple[str, bool, Callable[[], Any]], ...] = (
        ("read its table", True, lambda: lance.dataset(own, storage_options=storage).to_table()),
        ("append to its table", writes, lambda: lance.write_dataset(rows, own, storage_options=storage, mode="append")),
        ("delete below its table", writes, lambda: s3.delete_object(Bucket="lake", Key="w/orders.lance/none")),
        ("read a table whose name begins alike", False, lambda: lance.dataset(other, storage_options=storage)),
        ("write a table", False, lambda: lance.write_dataset(rows, "s3://lake/w/new.lance", storage_options=storage)),
        ("write below another table", False, lambda: s3.put_object(Bucket="lake", Key="w/orders2.lance/x", Body=b"x")),
        ("list its table", True, lambda: s3.list_objects_v2(Bucket="lake", Prefix="w/orders.lance/")),
        ("list what begins alike", False, lambda: s3.list_objects_v2(Bucket="lake", Prefix="w/orders")),
        ("list the bucket", False, lambda: s3.list_objects_v2(Bucket="lake")),
    )
    for operation, is_allowed, run in operations:
        error = _refusal(run)
        label = f"{role}: {operation}" if is_allowed else f"{role}: {operation}, which is refused"
        yield label, "passed" if (error is None) is is_allowed else f"not as expected: {error or 'allowed'}"


def _refusal(run: Callable[[], Any]) -> str | None:
    try:
        run()
    except (ClientError, OSError, ValueError) as error:
        if "AccessDenied" not in str(error):
            # It is no refusal of the store, so it shows nothing.
            raise
        return str(error)
    return None


def _s3(url: str, options: Mapping[str, str]) -> Any:
    keys = {f"aws_{key}": options[key] for key in ("access_key_id", "secret_access_key", "session_token") if key in options}
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)


@contextmanager
def _minio(directory: Path) -> Iterator[str]:
    program = subprocess.run([ROOT / ".ci" / "minio"], check=True, capture_output=True, text=True).stdout.strip()
    address = f"127.0.0.1:{free_port()}"
    arguments = ["server", str(directory / "data"), "--address", address, "--console-address", f"127.0.0.1:{free_port()}"]
    with (directory / "minio.log").open("w") as log:
        server = subprocess.Popen([program, *arguments], stdout=log, stderr=log, env={**os.environ, **_ROOT})
    try:
        with requests.Session() as session:
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=_REPEATS))
            session.get(f"http://{address}/minio/health/ready", timeout=30).raise_for_status()
        client = [str(python_of(MINIO)), "-c", _MAKE_USER, address, *_ROOT.values(), _USER, _SECRET]
        subprocess.run(client, check=True)
        yield f"http://{address}"
    finally:
        server.kill()
        server.wait()
