"""The contract suite bound to a target: its fixtures, and the tests that do not apply. Needs pytest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from federator.connector.errors import split_hint
from federator.model import Path
from federator.testing.conformance.report import Check, Verdict
from federator.testing.conformance.target import Target
from federator.testing.contract import ConnectorContract, unique_name
from federator.testing.contract.base import Contract, Location

#: why a test does not run that needs an attribute of the contract
_UNTESTED = {
    "unreachable": "a server that does not respond tests the connector, and needs an address in its settings",
    "deny": "the run cannot remove the right to list a namespace",
    "make_managed": "the run cannot make a managed table",
    "make_foreign": "the run cannot make a foreign object",
    "native_page": "the page size is not known: set page_size, if the connector has it",
    "crawls_everything": "reads the complete catalog: add --crawl",
    "races_for_names": "leaves an unusable table in some servers: add --races",
}
_PARTS = ("connector", "capabilities", "names")


class ConformanceContract(ConnectorContract):
    """The suite with the fixtures of a target."""

    target: ClassVar[Target]
    #: what the running test reported as unsupported
    unsupported: ClassVar[list[str]] = []

    @pytest.fixture
    def properties(self) -> dict[str, str]:
        return self.target.test_properties(unique_name("test"))

    @pytest.fixture
    def namespace(self, properties: dict[str, str]) -> Iterator[Path]:
        with (
            self.target.open(properties) as catalog,
            self.target.test_namespace(catalog, unique_name("ns")) as path,
        ):
            yield path

    @pytest.fixture
    def location(self, properties: dict[str, str], namespace: Path) -> Location:
        with self.target.open(properties) as catalog:
            prefix = self.target.location_prefix(catalog, namespace)
        return lambda name: f"{prefix}/{name}.lance"

    def odd_location(self, location: Location, number: int, name: str) -> str:
        # A directory has no locations besides those that follow from the names.
        return super().odd_location(location, number, name) if self.target.namespace else ""

    def record_unsupported(self, error: Exception) -> None:
        self.unsupported.append(split_hint(str(error))[0])


def build_contract(target: Target) -> type[ConformanceContract]:
    """Return the test class for a target."""
    attributes = {
        "connector": target.scoped_connector,
        "target": target,
        # With a server that does not respond, only the client could fail.
        "unreachable": None if target.server_only else target.unreachable,
        "native_page": target.native_page,
        "keeps_feed": target.keeps_feed,
        "crawls_everything": target.crawls_everything,
        "races_for_names": target.races_for_names,
        # The client's rule allows every name that it can send.
        "has_complete_name_rules": not target.server_only,
    }
    return type("TestConformance", (ConformanceContract,), attributes)


def operation_of(name: str) -> str:
    """Return the operation that a test of the suite is about."""
    part = next(base for base in ConnectorContract.__mro__ if name in vars(base))
    operation = getattr(vars(part)[name], "operation", None) or getattr(part, "default_operation", "")
    return str(operation)


def title_of(name: str) -> str:
    """Return the name of a test as a sentence."""
    return name.removeprefix("test_").replace("_", " ")


def list_tests() -> list[str]:
    """Return the names of all tests of the suite."""
    return [name for name in dir(ConnectorContract) if name.startswith("test_")]


def list_omitted(contract: type[Contract]) -> list[Check]:
    """Return a check for each test that the contract omits, with the capability or the attribute that decides it.

    A test of the opposite case, such as ``creating a namespace is unsupported`` for a catalog that creates namespaces, has no check.
    """
    checks = []
    for name in list_tests():
        applies: Callable[[Any], bool] | None = getattr(getattr(ConnectorContract, name), "applies", None)
        if applies is None:
            continue
        reads: list[tuple[str, Any]] = []
        if applies(_Reads(contract, reads)):
            continue
        # A condition ends at the attribute that decides it.
        attribute, value = reads[-1]
        if value or attribute == "names.folds_case":
            continue
        if attribute in _UNTESTED:
            checks.append(Check(operation_of(name), title_of(name), Verdict.UNTESTED, _UNTESTED[attribute]))
        else:
            detail = (
                "the server has no change feed" if attribute == "keeps_feed" else f"capability {attribute} = {_text(value)}"
            )
            checks.append(Check(operation_of(name), title_of(name), Verdict.UNSUPPORTED, detail))
    return checks


class _Reads:
    """Stands for a contract in a condition of the suite, and records the attributes that the condition reads."""

    def __init__(self, subject: Any, reads: list[tuple[str, Any]], prefix: str = "") -> None:
        self._subject, self._reads, self._prefix = subject, reads, prefix

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._subject, name)
        if name in _PARTS:
            return _Reads(value, self._reads, "names." if name == "names" else "")
        self._reads.append((f"{self._prefix}{name}", value))
        return value


def _text(value: Any) -> str:
    return "none" if isinstance(value, frozenset) and not value else str(value).lower()
