"""Lance tables on disk whose links and base paths lead to other tables, with the facts that verification stores about them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from federator.connector import SourceSpec
from federator.model import TableRecord, canonical_location
from federator.model.scopes import Scopes
from federator.pipeline.verify import InspectorProcess
from tests.fixtures.index_content import table

#: object ids of tables, and the table that each of them refers to
LINKED = {
    "copy$s$linked": "lake$payroll$ledger", "copy$s$cloned": "lake$payroll$ledger", "copy$s$fragment": "lake$payroll$ledger",
    "lake$sales$linked": "vault$s$hoard",
}  # fmt: skip
_OWN = {"copy$s$plain": 2, "lake$payroll$ledger": 3, "vault$s$hoard": 4}


def write_tables(disk: Path, visible: Scopes) -> None:
    """Replace all tables. A table that the scopes do not cover has other content, which no principal with these scopes may notice."""
    shutil.rmtree(disk, ignore_errors=True)
    for object_id, rows in _OWN.items():
        is_covered = visible.covers(tuple(object_id.split("$")))
        name = "secret_amount" if object_id in LINKED.values() else "amount"
        content = {name: range(rows)} if is_covered else {"other": range(rows + 10)}
        lance.write_dataset(pa.table(content), str(_path_of(disk, object_id)))
    for object_id, target in LINKED.items():
        path, source = _path_of(disk, object_id), _path_of(disk, target)
        path.parent.mkdir(parents=True, exist_ok=True)
        if object_id.endswith("$linked"):
            path.symlink_to(source)
        elif object_id.endswith("$cloned"):
            dataset = lance.dataset(str(source))
            dataset.tags.create("now", 1)
            dataset.shallow_clone(str(path), "now")
        else:
            shutil.copytree(source, path)
            (data,) = (path / "data").iterdir()
            data.unlink()
            data.symlink_to(source / "data" / data.name)


def records(disk: Path, source: str) -> list[TableRecord]:
    """The declarations of a source."""
    paths = [tuple(object_id.split("$")) for object_id in (*_OWN, *LINKED)]
    return [table(*path, location=str(_path_of(disk, "$".join(path)))) for path in paths if path[0] == source]


def verifications(disk: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows of ``dataset`` as verification finds them, by object id. Their times are fixed."""
    spec = SourceSpec("lake", "federator.testing:CONNECTOR", {"store": "linked", "root": str(disk)})
    with InspectorProcess(spec, 60.0) as inspector:
        for object_id in (*_OWN, *LINKED):
            location = str(_path_of(disk, object_id))
            row = asdict(inspector.inspect(location))
            row["changed_at"] = row["changed_at"] and 1.0
            fixed = {"canonical": canonical_location(location), "location": location, "access": "", "checked_at": 1.5}
            yield object_id, {**fixed, "checked_through": object_id.partition("$")[0], **row}


def _path_of(disk: Path, object_id: str) -> Path:
    return disk.joinpath(*object_id.split("$")).with_suffix(".lance")
