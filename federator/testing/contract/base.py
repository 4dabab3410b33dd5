"""What the parts of the suite share: fixtures to override, and the choice of the tests that apply."""

from __future__ import annotations

import pickle
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from unittest.mock import patch

import pytest

from federator.connector import Catalog, ConcurrentModification, Connector
from federator.connector.namespace import CatalogNamespace, namespace_class
from federator.model import Path, TableRecord

SOURCE = "contract"
#: the ownership mark that mirroring writes: it must come back as it is
MARK = {
    "federator.instance": "prod-eu",
    "federator.mirror": "hive-to-glue",
    "federator.origin": "lake$sales$a%24b",
    "federator.path": "sales$orders",
    "federator.op": "01JD3Z7Q",
}
#: what a connector keeps exactly, wherever its NameRules allow it, and refuses as InvalidInput, wherever they do not
ODD_NAMES = (
    "Upper",
    "sp ace",
    " lead",
    "trail ",
    "tab\tbed",
    "line\nbreak",
    "nul\x00l",
    "dollar$",
    "per%cent",
    "per%2Fcent",
    "do.t",
    "..",
    "question?hash#",
    "amp&equals=",
    "quo'te",
    'quo"te',
    "back`tick",
    "sta*r",
    "col:on",
    "-dash",
    "_under",
    "em😀ji",
    "ünïcode",
    # The same letter in two parts: a name is a sequence of code points, and normalising it would make another name of it.
    "e\u0301",
    "back\\slash",
    "semi;colon",
    "sla/sh",
    "x" * 300,
)

Test = TypeVar("Test", bound=Callable[..., None])
Location = Callable[[str], str]


def fresh(prefix: str) -> str:
    """A name that no catalog has yet and every catalog takes."""
    return f"{prefix}_{secrets.token_hex(4)}"


def needs(applies: Callable[[type[Contract]], bool]) -> Callable[[Test], Test]:
    """Collect the test only for a contract that it applies to."""

    def mark(test: Test) -> Test:
        test.__dict__["applies"] = applies
        return test

    return mark


def writes(contract: type[Contract]) -> bool:
    return contract.connector.capabilities.writes_tables


def nests(contract: type[Contract]) -> bool:
    return contract.connector.capabilities.max_depth > 0


def creates(contract: type[Contract]) -> bool:
    return bool(contract.connector.capabilities.creates_namespaces_at)


class DictRequest(dict[str, Any]):
    """What lancedb passes: the fields that were set, and ``model_dump`` without options."""

    def model_dump(self) -> dict[str, Any]:
        return dict(self)


def together(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs each task in a thread of its own, all starting at once; their results in order, an error in place of a result."""
    barrier = threading.Barrier(len(tasks))

    def run(task: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return task()
        except Exception as error:  # noqa: BLE001 - the caller looks at each
            return error

    with ThreadPoolExecutor(len(tasks)) as threads:
        return list(threads.map(run, tasks))


def walk(
    page: Callable[[str | None], tuple[list[str], str | None]], *, limit: int, after: str, change: Callable[[], None]
) -> list[str]:
    """Every page of a listing; once ``after`` has been seen, ``change`` is made between two pages. Checks order and sizes."""
    seen: list[str] = []
    token: str | None = None
    changed = False
    while True:
        names, token = page(token)
        assert len(names) <= limit, "a page is longer than its limit"
        seen += names
        if after in seen and not changed:
            change()
            changed = True
        if not token:
            break
    assert seen == sorted(set(seen)), "pages repeat a name or are not sorted"
    return seen


class Refused(ConcurrentModification):
    """What a ``Confirm`` of the suite raises."""


@dataclass
class Confirmation:
    """A ``Confirm`` that counts its calls and records what this process sends afterwards; it raises Refused if ``refuses``."""

    refuses: bool = False
    calls: int = 0
    requests: list[bytes] = field(default_factory=list)

    def __call__(self) -> None:
        self.calls += 1
        if self.refuses:
            raise Refused("not confirmed")

    def note(self, data: bytes) -> None:
        # A stub may answer from a thread of this process.
        if self.calls and not data.startswith(b"HTTP/"):
            self.requests.append(data)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sees every message that is sent through a socket of this process."""
        send, sendall = socket.socket.send, socket.socket.sendall

        def noted_send(sender: socket.socket, data: Any, *flags: int) -> int:
            self.note(bytes(data))
            return send(sender, data, *flags)

        def noted_sendall(sender: socket.socket, data: Any, *flags: int) -> None:
            self.note(bytes(data))
            sendall(sender, data, *flags)

        with patch.object(socket.socket, "send", noted_send), patch.object(socket.socket, "sendall", noted_sendall):
            yield


class Contract:
    """What the suite's parts share: the fixtures, and the choice of the tests that apply."""

    connector: ClassVar[Connector[Any]]
    #: what the class runs against, for the documentation
    against: ClassVar[str] = ""
    #: properties that, on top of ``properties``, lead to a catalog that does not answer, where a test can have that
    unreachable: ClassVar[Mapping[str, str] | None] = None
    #: how many tables one page of the catalog's own listing holds, where that is few enough to declare more
    native_page: ClassVar[int] = 0
    #: of several that declare one name at once, one succeeds; plain files on an object store cannot promise it
    declares_once: ClassVar[bool] = True
    #: the server under test keeps the feed of changes that the connector can read
    keeps_feed: ClassVar[bool] = True
    #: what the requests that change or remove a table hold, each its own; empty where no request goes through a socket
    write_requests: ClassVar[tuple[bytes, ...]] = ()
    #: methods ``(self, namespace, name)`` that put a managed table marked as Lance, or an object that is not Lance at all,
    #: into a namespace, where a test can do that
    make_managed: Any = None
    make_foreign: Any = None
    #: a method ``(self, namespace)`` that takes the right to list a namespace away and returns the properties, on top of
    #: ``properties``, of who lost it, where a test can do that; the namespace itself stays visible
    deny: Any = None

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "connector"):
            return
        for name in (name for name in dir(cls) if name.startswith("test")):
            # From the class that defines it: a class above may have left it out for another connector.
            test = next(vars(base)[name] for base in cls.__mro__ if vars(base).get(name) is not None)
            applies = getattr(test, "applies", None)
            if applies is not None:
                setattr(cls, name, test if applies(cls) else None)

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        """How the source is configured."""
        raise NotImplementedError

    @pytest.fixture
    def namespace(self) -> Path:
        """An existing, empty namespace that can hold tables, of the test's own."""
        raise NotImplementedError

    @pytest.fixture
    def location(self) -> Location:
        """A location for a table of that name, where the catalog takes one."""
        raise NotImplementedError

    @pytest.fixture
    def face(self, properties: dict[str, str]) -> Iterator[CatalogNamespace]:
        made = namespace_class(self.connector, "ContractNamespace")(**properties)
        yield made
        made.close()

    @pytest.fixture
    def catalog(self, properties: dict[str, str]) -> Iterator[Catalog]:
        with self.connector.open(SOURCE, self.connector.configure(properties)) as opened:
            yield opened

    @pytest.fixture
    def worker(self, properties: dict[str, str]) -> Iterator[Catalog]:
        """A catalog opened as a Spark worker opens it: by a connector and settings that came as pickles."""
        settings = self.connector.configure(properties)
        connector, settings = pickle.loads(pickle.dumps((self.connector, settings)))  # noqa: S301 - our own bytes
        with connector.open(SOURCE, settings) as opened:
            yield opened

    @pytest.fixture
    def sibling(self, namespace: Path) -> Path:
        """A namespace that can be created and has not been, with its parent there."""
        depths = self.connector.capabilities.creates_namespaces_at
        depth = max(d for d in depths if d <= max(len(namespace), min(depths)))
        return (*namespace[: depth - 1], fresh("made"))

    def odd(self, location: Location, number: int, name: str) -> str:
        """A location for a table with an odd name; override it where the location must follow the name."""
        return location(f"odd_{number}_{len(name)}")

    def declared(self, catalog: Catalog, namespace: Path, location: Location, **fields: Any) -> TableRecord:
        """A new table, declared through the write face."""
        name = fresh("t")
        return catalog.declare_table(TableRecord(SOURCE, (*namespace, name), location(name), **fields))
