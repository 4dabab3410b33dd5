"""The part ``lies`` of ``python -m tests.adversary``: the whole lie matrix, on servers of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from federator.demo.servers import hive, process
from tests.adversary import matrix, worlds
from tests.adversary.table import Cell
from tests.fixtures import iceberg
from tests.fixtures.glue import SERVER

_METASTORES = {2: hive.start_hive2, 3: hive.start_hive3, 4: hive.start_hive4}


def run(directory: Path) -> Sequence[Cell]:
    """Every lie × connector × phase. Starts moto, three metastores, Iceberg's own server, the stubs of Unity and Polaris, and
    pylance's RestAdapter.
    """
    with ExitStack() as stack:
        glue = process.start(SERVER, directory / "glue", timeout=60)
        stack.callback(glue.stop)
        reference = stack.enter_context(iceberg.start(directory / "iceberg"))
        made = [worlds.glue_world(glue.uri), worlds.unity_world(), worlds.polaris_world(), worlds.rest_world(directory)]
        made.append(worlds.iceberg_world(reference, directory))
        for version, start in _METASTORES.items():
            server = start(directory / f"metastore{version}")
            stack.callback(server.stop)
            made.append(worlds.hive_world(server.uri, version, directory / f"tables{version}"))
        stack.enter_context(worlds.impatient())
        return list(matrix.full(made))
