"""The servers that the clients of the REST protocol are run on: this service over real catalogs, and pylance's RestAdapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import Any

from federator.demo.servers import glue, hive
from federator.model.scopes import Scopes
from federator.store import tokens
from tests.fixtures import iceberg
from tests.fixtures.glue import account
from tests.fixtures.rest import reference_server
from tests.unit.api.lance.conftest import served

#: the name of pylance's own server
REFERENCE = "reference"


@dataclass(frozen=True)
class ClientServer:
    """An address of the protocol, as ``scenarios.runner.Server`` has it."""

    name: str
    uri: str
    parent: list[str]
    #: lancedb's remote client always sends one
    api_key: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


#: the settings of a source and the path of a namespace in it that can have namespaces
Source = tuple[dict[str, Any], list[str]]


@contextmanager
def _dir(directory: FilePath) -> Iterator[Source]:
    (directory / "tables").mkdir()
    yield {"impl": "dir", "root": str(directory / "tables"), "manifest_enabled": "true"}, []


@contextmanager
def _hive(version: str, directory: FilePath) -> Iterator[Source]:
    server = hive.start(version, directory / "server")
    try:
        impl = "hive2" if version == hive.HIVE2 else "hive3"
        yield {"impl": impl, "uri": server.uri, "root": f"file:{directory}/lake"}, [] if impl == "hive2" else ["hive"]
    finally:
        server.stop()


@contextmanager
def _glue(directory: FilePath) -> Iterator[Source]:
    server = glue.start_glue(directory / "server")
    try:
        own = account(server.uri)
        settings = {"impl": "glue", **own.properties, "root": f"file://{directory}/lake", "drop_cascades": "confirmed"}
        for key in ("access_key_id", "secret_access_key", "session_token"):
            (directory / key).write_text(own.properties[key], encoding="utf-8")
            settings[key] = f"file:{directory / key}"
        yield settings, [own.account_id]
    finally:
        server.stop()


@contextmanager
def _iceberg(directory: FilePath) -> Iterator[Source]:
    with iceberg.start(directory / "server") as server:
        yield {"impl": "iceberg", **server.properties, "root": f"file://{directory}/lake"}, [iceberg.WAREHOUSE]


@contextmanager
def _rest(directory: FilePath) -> Iterator[Source]:
    (directory / "tables").mkdir()
    with reference_server(directory / "tables") as server:
        yield {"impl": "rest", **server.properties}, []


CATALOGS: Mapping[str, Callable[[FilePath], AbstractContextManager[Source]]] = {
    "dir": _dir,
    "hive2": lambda directory: _hive(hive.HIVE2, directory),
    "hive3": lambda directory: _hive(hive.HIVE3, directory),
    "glue": _glue,
    "iceberg": _iceberg,
    "rest": _rest,
}


@contextmanager
def serve(directory: FilePath, catalogs: Sequence[str]) -> Iterator[list[ClientServer]]:
    """Serve the catalogs as sources of one service, and a directory by pylance's RestAdapter."""
    with ExitStack() as stack:
        sources, parents = {}, {}
        for name in catalogs:
            (directory / name).mkdir()
            settings, parents[name] = stack.enter_context(CATALOGS[name](directory / name))
            sources[name] = {**settings, "allow_drop": True}
        service = stack.enter_context(served(directory, sources, bare=True))
        for name in catalogs:
            service.crawl(name)
        key, _ = tokens.create_token(
            service.index, "interop", role="admin", scopes=Scopes.parse(["*"]), lifetime=None, actor="interop"
        )
        (directory / REFERENCE).mkdir()
        reference = stack.enter_context(reference_server(directory / REFERENCE))
        yield [
            *(ClientServer(name, service.url, [name, *parents[name]], key) for name in catalogs),
            ClientServer(REFERENCE, reference.url, [], key),
        ]
