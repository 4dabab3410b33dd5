"""docs/reference/connectors.md equals the reference generated from the code and the contract tests."""

from __future__ import annotations

from pathlib import Path

from federator.registry import get_connector, list_impls
from tests.docs import connectors

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "connectors.md"


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == connectors.text(), (
        "generate the page again: .venv/bin/python -m tests.docs.connectors > docs/reference/connectors.md"
    )


def test_every_property_says_what_it_does() -> None:
    for impl in list_impls():
        for key, _, description in connectors.properties(get_connector(impl).settings_type):
            assert description.rstrip("*").endswith((".", ".)")), f"{impl}.{key}: {description}"


def test_every_connector_is_held_to_the_contract_and_says_against_what() -> None:
    assert {contract.connector.impl for contract in connectors.contracts()} == {
        get_connector(impl).impl for impl in list_impls()
    }
    for contract in connectors.contracts():
        assert contract.against, f"{contract.__module__}.{contract.__name__}: against is missing"
