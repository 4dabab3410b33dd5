"""What the parts of the suite share: fixtures to override, and the choice of the tests that apply."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import pytest

from federator.connector import Catalog, Connector
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
ODD_NAMES = (
    "Upper",
    "sp ace",
    "dollar$",
    "per%cent",
    "do.t",
    "em😀ji",
    "ünïcode",
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


class Contract:
    """What the suite's parts share: the fixtures, and the choice of the tests that apply."""

    connector: ClassVar[Connector[Any]]
    #: properties that lead to a catalog that does not answer, where a test can have that
    unreachable: ClassVar[Mapping[str, str] | None] = None
    #: methods ``(self, namespace, name)`` that put a managed table marked as Lance, or an object that is not Lance at all,
    #: into a namespace, where a test can do that
    make_managed: Any = None
    make_foreign: Any = None

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
