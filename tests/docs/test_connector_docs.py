"""The reference of the connectors is what the code and the contract tests say."""

from __future__ import annotations

from pathlib import Path

from federator.registry import connector, impls
from tests.docs import connectors

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == connectors.text(), "python -m tests.docs.connectors > docs/connectors.md"


def test_every_property_says_what_it_does() -> None:
    for impl in impls():
        for key, _, said in connectors.properties(connector(impl).settings_type):
            assert said.rstrip("*").endswith((".", ".)")), f"{impl}.{key}: {said}"


def test_every_connector_is_held_to_the_contract_and_says_against_what() -> None:
    assert {contract.connector.impl for contract in connectors.contracts()} == {connector(impl).impl for impl in impls()}
    for contract in connectors.contracts():
        assert contract.against, f"{contract.__module__}.{contract.__name__}: against is missing"
