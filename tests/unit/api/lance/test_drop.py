"""DropTable: what it spares, and locations that Lance would read as another table."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from federator.connector import PermissionDenied
from federator.lance.foreign_locations import require_own_bases
from federator.testing.contract import unique_name
from tests.fixtures.index_content import fill, namespace
from tests.fixtures.index_content import table as record
from tests.unit.api.lance.conftest import served

ROWS = pa.table({"id": range(50)})


def test_dropping_spares_what_another_table_reaches_by_a_link(tmp_path: Path) -> None:
    for name in ("disk", "beside"):
        (tmp_path / name).mkdir()
    for name in ("whole", "data", "mounted", "free"):
        lance.write_dataset(ROWS, str(tmp_path / "disk" / f"{name}.lance"))
    (tmp_path / "beside" / "other.lance").symlink_to(tmp_path / "disk" / "whole.lance")
    # The data of a table of another catalog is elsewhere.
    other_table = lance.write_dataset(ROWS, str(tmp_path / "elsewhere" / "t.lance")).uri
    shutil.rmtree(tmp_path / "disk" / "data.lance" / "data")
    (tmp_path / "disk" / "data.lance" / "data").symlink_to(tmp_path / "elsewhere" / "t.lance" / "data")
    (tmp_path / "mount").symlink_to(tmp_path / "disk")
    sources = {
        "s": {"impl": "dir", "root": str(tmp_path / "disk"), "allow_drop": True},
        "beside": {"impl": "dir", "root": str(tmp_path / "beside")},
        "m": {"impl": "federator.testing:CONNECTOR", "store": unique_name("m")},
    }
    with served(tmp_path, sources) as service:
        service.crawl("s")
        service.crawl("beside")
        mounted = record("m", "ns", "mounted", location=f"{tmp_path}/mount/mounted.lance/sub/../")
        fill(service.index, "m", record("m", "ns", "theirs", location=other_table), mounted)
        for name, other in (("whole", "beside$other"), ("data", "m$ns$theirs"), ("mounted", "m$ns$mounted")):
            response = service.post(f"/v1/table/s%24{name}/drop")
            assert (response.status_code, response.json()["code"]) == (400, 13), (name, response.text)
            assert other in response.text
            in_scope = service.post(f"/v1/table/s%24{name}/drop", caller="admin s")
            assert in_scope.status_code == 400
            assert other not in in_scope.text
            assert service.post(f"/v1/table/s%24{name}/exists").status_code == 200, "refused before it is deregistered"
        assert lance.dataset(other_table).count_rows() == len(ROWS)
        assert lance.dataset(str(tmp_path / "beside" / "other.lance")).count_rows() == len(ROWS)
        assert service.post("/v1/table/s%24free/drop").status_code == 200
    assert not (tmp_path / "disk" / "free.lance").exists()


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("linked", [True, False])
def test_a_branch_of_another_table_is_not_dropped(tmp_path: Path, declared: bool, linked: bool) -> None:
    """What was written to a branch is only there, and no catalog declares it."""
    table = lance.write_dataset(ROWS, str(tmp_path / "vault" / "t.lance"))
    branch = table.create_branch("dev")
    lance.write_dataset(ROWS, branch, mode="append")
    if linked:
        (tmp_path / "link.lance").symlink_to(tmp_path / "vault" / "t.lance" / "tree" / "dev")
    location = str(tmp_path / ("link.lance" if linked else "vault/t.lance/tree/dev"))
    sources = {
        "s": {"impl": "federator.testing:CONNECTOR", "store": unique_name("s"), "allow_drop": True},
        "vault": {"impl": "dir", "root": str(tmp_path / "vault")},
    }
    with served(tmp_path, sources) as service:
        if declared:
            service.crawl("vault")
        fill(service.index, "s", namespace("s", "ns"))
        service.post("/v1/namespace/s%24ns/create")
        assert service.post("/v1/table/s%24ns%24t/register", {"location": location}).status_code == 200
        for caller in ("admin s", "admin *"):
            refused = service.post("/v1/table/s%24ns%24t/drop", caller=caller)
            assert refused.status_code in (400, 403), refused.text
        assert service.post("/v1/table/s%24ns%24t/exists").status_code == 200, "refused before it is deregistered"
    assert lance.dataset(table.uri).checkout_version(("dev", None)).count_rows() == 2 * len(ROWS)


SPELLINGS = (
    "s3://{bucket}/lake/x/../../{key}", "s3://{bucket}/lake/%2e%2E/{key}", "s3://{bucket}/./{key}", "s3://{bucket}/{key}?x",
    "s3://{bucket}/{key}#y", "s3://u@{bucket}/{key}", "s3://{bucket}:443/{key}", "s3://{bucket}/{key}\\..\\", "S3://{bucket}//{key}",
    "s3a://{bucket}/%76{rest}",
)  # fmt: skip


def test_a_location_that_lance_reads_otherwise_is_not_opened(tmp_path: Path, s3_storage_options: dict[str, str]) -> None:
    """Each spelling has another canonical location than the hidden table, and Lance opens the hidden table there."""
    bucket, key = "lance-data", f"v{secrets.token_hex(4)}.lance"
    hidden = f"s3://{bucket}/{key}"
    lance.write_dataset(ROWS, hidden, storage_options=s3_storage_options)
    options = {}
    for name, text in s3_storage_options.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        options[f"storage.{name}"] = f"file:{tmp_path}/{name}" if "key" in name else text
    sources = {
        name: {"impl": "federator.testing:CONNECTOR", "store": unique_name(name), "allow_drop": name == "s", **options}
        for name in ("s", "vault")
    }
    with served(tmp_path, sources) as service:
        spellings = [spelling.format(bucket=bucket, key=key, rest=key[1:]) for spelling in SPELLINGS]
        fill(service.index, "s", namespace("s", "ns"))
        service.post("/v1/namespace/s%24ns/create")
        for number, spelling in enumerate(spellings):
            registered = service.post(f"/v1/table/s%24ns%24t{number}/register", {"location": spelling})
            assert registered.status_code == 200, registered.text
        fill(service.index, "vault", record("vault", "ns", "t", location=hidden))
        assert service.post("/v1/table/vault%24ns%24t/count_rows").json() == len(ROWS)
        for number, spelling in enumerate(spellings):
            for operation in ("count_rows", "drop"):
                refused = service.post(f"/v1/table/s%24ns%24t{number}/{operation}", caller="admin s")
                assert (refused.status_code, refused.json()["code"]) == (403, 15), (spelling, refused.text)
            base = lance.DatasetBasePath(spelling, "b")
            dataset = lance.write_dataset(ROWS, str(tmp_path / f"{number}.lance"), initial_bases=[base])
            with pytest.raises(PermissionDenied):
                require_own_bases(str(tmp_path / f"{number}.lance"), dataset, [])
    assert lance.dataset(hidden, storage_options=s3_storage_options).count_rows() == len(ROWS)


@pytest.mark.parametrize("rooted", [True, False])
def test_a_table_that_is_reached_through_a_link_is_not_dropped(tmp_path: Path, rooted: bool) -> None:
    """The index may not know yet what is there: the table is new since the last crawl of its source."""
    lance.write_dataset(ROWS, str(tmp_path / "vault" / "new.lance"))
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "middle").symlink_to(tmp_path / "vault")
    own = {"impl": "federator.testing:CONNECTOR", "store": unique_name("s"), "allow_drop": True}
    sources = {
        "s": {**own, "root": str(tmp_path / "disk")} if rooted else own,
        "vault": {"impl": "dir", "root": str(tmp_path / "vault")},
    }
    with served(tmp_path, sources) as service:
        fill(service.index, "s", namespace("s", "ns"))
        service.post("/v1/namespace/s%24ns/create")
        location = str(tmp_path / "disk" / "middle" / "new.lance")
        assert service.post("/v1/table/s%24ns%24t/register", {"location": location}).status_code == 200
        for caller in ("admin s", "admin *"):
            refused = service.post("/v1/table/s%24ns%24t/drop", caller=caller)
            assert refused.status_code == 403, refused.text
        assert service.post("/v1/table/s%24ns%24t/exists").status_code == 200, "refused before it is deregistered"
    assert lance.dataset(str(tmp_path / "vault" / "new.lance")).count_rows() == len(ROWS)
