"""The error tree has exactly the codes of the Lance spec."""

from __future__ import annotations

import pickle

import pytest
from lance_namespace import LanceNamespaceError, from_error_code
from lance_namespace.errors import ErrorCode

from federator.connector import CatalogError, FederatorError, Unsupported

CLASSES = CatalogError.__subclasses__()
# Nothing here has transactions that go on for a while.
ABOUT_TRANSACTIONS = {10}


def test_every_code_of_the_spec_has_one_class() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(codes) == len(set(codes))
    assert set(codes) == {code.value for code in ErrorCode} - ABOUT_TRANSACTIONS


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_and_its_official_one_have_the_same_name_and_code(kind: type[CatalogError]) -> None:
    official = from_error_code(kind.code, "text")
    assert isinstance(official, LanceNamespaceError)
    assert official.code == kind.code
    name, official_name = kind.__name__, type(official).__name__.removesuffix("Error")
    assert official_name == {"Unsupported": "UnsupportedOperation", "Throttled": "Throttling"}.get(name, name)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_errors_travel_between_processes(kind: type[CatalogError]) -> None:
    copy = pickle.loads(pickle.dumps(kind("what", hint="do")))
    assert (type(copy), copy.message, copy.hint, str(copy)) == (kind, "what", "do", "what\n  hint: do")


def test_the_tree_has_one_root() -> None:
    assert issubclass(CatalogError, FederatorError)
    assert str(Unsupported("what")) == "what"
