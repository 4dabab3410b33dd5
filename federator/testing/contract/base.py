"""Common base of the contract suite: fixtures to override, and the selection of applicable tests."""

from __future__ import annotations

import pickle
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from unittest.mock import patch

import pytest

from federator.connector import Catalog, ConcurrentModification, Connector
from federator.lance.facade import CatalogNamespace, facade_class
from federator.model import Path, TableRecord

SOURCE = "contract"
#: an ownership marker as mirroring writes it: it must be returned unchanged
MARKER = {
    "federator.instance": "prod-eu",
    "federator.mirror": "hive-to-glue",
    "federator.origin": "lake$sales$a%24b",
    "federator.path": "sales$orders",
    "federator.op": "01JD3Z7Q",
}
#: names that a connector must keep exactly if its NameRules allow them, and refuse with InvalidInput otherwise
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
    # A letter with a combining accent: names are sequences of code points, and normalisation would change the name.
    "e\u0301",
    "back\\slash",
    "semi;colon",
    "sla/sh",
    "x" * 300,
)

#: The beginning of all generated names. A conformance run sets it, and changes only objects whose path contains such a name.
name_prefix = ContextVar("name_prefix", default="")

Test = TypeVar("Test", bound=Callable[..., None])
Location = Callable[[str], str]


def unique_name(prefix: str) -> str:
    """Return a new name that every catalog accepts."""
    return f"{name_prefix.get()}{prefix}_{secrets.token_hex(4)}"


def operation(name: str) -> Callable[[Test], Test]:
    """Name the operation that a test is about, if it is not its class's ``default_operation``."""

    def mark(test: Test) -> Test:
        test.__dict__["operation"] = name
        return test

    return mark


def requires(applies: Callable[[type[Contract]], bool]) -> Callable[[Test], Test]:
    """Collect a test only for the contracts that it applies to."""

    def mark(test: Test) -> Test:
        test.__dict__["applies"] = applies
        return test

    return mark


def supports_writes(contract: type[Contract]) -> bool:
    return contract.connector.capabilities.writes_tables


def supports_nesting(contract: type[Contract]) -> bool:
    return contract.connector.capabilities.max_depth > 0


def supports_creating(contract: type[Contract]) -> bool:
    return bool(contract.connector.capabilities.creates_namespaces_at)


class DictRequest(dict[str, Any]):
    """A request as lancedb passes it: a mapping of the set fields, with ``model_dump`` without options."""

    def model_dump(self) -> dict[str, Any]:
        return dict(self)


def run_concurrently(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each task in its own thread; all start together. Return results in order; a failed task gives its error."""
    barrier = threading.Barrier(len(tasks))

    def run(task: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return task()
        except Exception as error:  # noqa: BLE001 - the calling test checks each result
            return error

    with ThreadPoolExecutor(len(tasks)) as threads:
        return list(threads.map(run, tasks))


def collect_pages(
    page: Callable[[str | None], tuple[list[str], str | None]], *, limit: int, after: str, change: Callable[[], None]
) -> list[str]:
    """Return the names of all pages of a listing. After the page with the name ``after``, ``change`` is called once.

    The order of the names and the sizes of the pages are checked.
    """
    collected: list[str] = []
    token: str | None = None
    changed = False
    while True:
        names, token = page(token)
        assert len(names) <= limit, "a page is longer than its limit"
        collected += names
        if after in collected and not changed:
            change()
            changed = True
        if not token:
            break
    assert collected == sorted(set(collected)), "pages repeat a name or are not sorted"
    return collected


class Refused(ConcurrentModification):
    """The error that a ``Confirm`` of the suite raises."""


@dataclass
class Confirmation:
    """A ``Confirm`` that counts its calls and records the messages that are sent afterwards. It raises Refused if ``refuses``."""

    refuses: bool = False
    calls: int = 0
    requests: list[bytes] = field(default_factory=list)

    def __call__(self) -> None:
        self.calls += 1
        if self.refuses:
            raise Refused("not confirmed")

    def note(self, data: bytes) -> None:
        # Ignore responses of a stub server in a thread of this process.
        if self.calls and not data.startswith(b"HTTP/"):
            self.requests.append(data)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record every message that is sent through a socket of this process."""
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
    """Base class of the suite's parts: the fixtures, and the selection of applicable tests."""

    connector: ClassVar[Connector[Any]]
    #: the operation that the tests of a part are about, for reports
    default_operation: ClassVar[str] = ""
    #: description of the server under test, for the documentation
    against: ClassVar[str] = ""
    #: properties that, in addition to ``properties``, give a catalog that does not respond, if a test can have one
    unreachable: ClassVar[Mapping[str, str] | None] = None
    #: number of tables on one page of the catalog's own listing, if it is small enough to declare more
    native_page: ClassVar[int] = 0
    #: only one of several concurrent declarations of one name succeeds; plain files on an object store cannot guarantee this
    declares_once: ClassVar[bool] = True
    #: whether the server under test has the change feed that the connector can read
    keeps_feed: ClassVar[bool] = True
    #: whether tests may read the complete catalog
    crawls_everything: ClassVar[bool] = True
    #: whether tests may declare one name concurrently, which leaves an unusable table in some servers
    races_for_names: ClassVar[bool] = True
    #: whether the connector's NameRules are those of the server: False if the server may refuse names that they allow
    has_complete_name_rules: ClassVar[bool] = True
    #: one part of each request that changes or removes a table; empty if no request goes through a socket
    write_requests: ClassVar[tuple[bytes, ...]] = ()
    #: methods ``(self, namespace, name)`` that add a managed table marked as Lance, or a foreign object, to a namespace, if
    #: a test can do this
    make_managed: Any = None
    make_foreign: Any = None
    #: a method ``(self, namespace)`` that removes the right to list a namespace, if a test can do this. It returns the properties of
    #: the restricted user, in addition to ``properties``. The namespace itself stays visible
    deny: Any = None

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "connector"):
            return
        for name in (name for name in dir(cls) if name.startswith("test")):
            # Take the test from the class that defines it: a base class may have omitted it for another connector.
            test = next(vars(base)[name] for base in cls.__mro__ if vars(base).get(name) is not None)
            applies = getattr(test, "applies", None)
            if applies is not None:
                setattr(cls, name, test if applies(cls) else None)

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        """The configuration of the source."""
        raise NotImplementedError

    @pytest.fixture
    def namespace(self) -> Path:
        """An existing, empty namespace that can contain tables and is used by this test only."""
        raise NotImplementedError

    @pytest.fixture
    def location(self) -> Location:
        """A function that returns a valid location for a table name."""
        raise NotImplementedError

    @pytest.fixture
    def facade(self, properties: dict[str, str]) -> Iterator[CatalogNamespace]:
        facade = facade_class(self.connector, "ContractNamespace")(**properties)
        yield facade
        facade.close()

    @pytest.fixture
    def catalog(self, properties: dict[str, str]) -> Iterator[Catalog]:
        with self.connector.open(SOURCE, self.connector.parse_settings(properties)) as opened:
            yield opened

    @pytest.fixture
    def worker(self, properties: dict[str, str]) -> Iterator[Catalog]:
        """A catalog opened like on a Spark worker: with a pickled connector and pickled settings."""
        settings = self.connector.parse_settings(properties)
        connector, settings = pickle.loads(pickle.dumps((self.connector, settings)))  # noqa: S301 - bytes of this process
        with connector.open(SOURCE, settings) as opened:
            yield opened

    @pytest.fixture
    def new_namespace_path(self, namespace: Path) -> Path:
        """The path of a namespace that does not exist yet, but whose parent exists."""
        depths = self.connector.capabilities.creates_namespaces_at
        depth = max(d for d in depths if d <= max(len(namespace), min(depths)))
        return (*namespace[: depth - 1], unique_name("made"))

    def record_unsupported(self, error: Exception) -> None:
        """Called by a test that accepts an unsupported operation. Override it for a report."""

    def odd_location(self, location: Location, number: int, name: str) -> str:
        """Return a location for a table with an odd name. Override it if the location must follow the name."""
        return location(f"odd_{number}_{len(name)}")

    def declare_new_table(self, catalog: Catalog, namespace: Path, location: Location, **fields: Any) -> TableRecord:
        """Declare a new table through the write interface and return its record."""
        name = unique_name("t")
        return catalog.declare_table(TableRecord(SOURCE, (*namespace, name), location(name), **fields))
