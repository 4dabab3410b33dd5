"""The servers of the tutorial: an empty Hive 2.3 metastore and AWS Glue, served by moto."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from federator.connector import StateError
from federator.demo.servers import hive
from federator.demo.servers.glue import start_glue
from federator.demo.servers.process import Server, get_server


def start(directory: Path) -> list[str]:
    """Start the servers that do not run, and return their addresses as lines for a shell.

    A metastore that was stopped has the same tables and, if its port is free, the same address.
    """
    folders = {name: directory.absolute() / "servers" / name for name in ("hive", "glue")}
    servers = {name: _find(folder) for name, folder in folders.items()}
    metastore, glue = servers["hive"], servers["glue"]
    if metastore is None or not metastore.is_alive():
        port = urlsplit(metastore.uri).port if metastore else None
        metastore = hive.start(hive.HIVE2, folders["hive"], {hive.PORT: str(port)} if port else None)
    if glue is None or not glue.is_alive():
        glue = start_glue(folders["glue"])
    return [f"export HIVE={metastore.uri}", f"export HIVE_PID={metastore.pid}", f"export GLUE={glue.uri}"]


def _find(folder: Path) -> Server | None:
    try:
        return get_server(folder)
    except StateError:
        return None
