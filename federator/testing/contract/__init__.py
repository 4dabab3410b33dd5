"""The suite that every connector passes: its namespace, crawl and write faces against one real catalog.

A connector of your own is held to it by a test module such as this one::

    import pytest

    from federator.connector import Catalog
    from federator.model import NamespaceRecord, Path
    from federator.testing import CONNECTOR, ConnectorContract  # import your CONNECTOR instead
    from federator.testing.contract import SOURCE, fresh


    class TestMyCatalog(ConnectorContract):
        connector = CONNECTOR
        unreachable = {"faults": "fail:*; undescribed:*; refuse:*=17"}

        @pytest.fixture
        def properties(self, tmp_path) -> dict[str, str]:
            return {"file": str(tmp_path / "catalog.json")}

        @pytest.fixture
        def namespace(self, catalog: Catalog) -> Path:
            return catalog.create_namespace(NamespaceRecord(SOURCE, (fresh("db"),))).path

        @pytest.fixture
        def location(self):
            return lambda name: f"s3://bucket/{name}.lance"

The three fixtures say how the source is configured, where an empty namespace of the test's own is, and where a table of a name may
lie. What the suite cannot know it asks of attributes, most of which add tests:

==================  ====================================================================================
``against``         what the class runs against, for people to read
``unreachable``     properties on top that lead to no answer: an error is neither empty nor gone
``deny``            takes the right to list a namespace away: denied is neither empty nor gone
``native_page``     how many tables one page of the catalog holds: no page is lost
``make_managed``    puts a managed table marked as Lance into a namespace: it is never listed
``make_foreign``    puts something else there: it is neither listed nor touched
``declares_once``   False where of two declarations of one name at once both may succeed
``write_requests``  what the requests hold that change or remove a table: the first message after ``confirm`` is one of them
``keeps_feed``      False where the server under test keeps no feed of changes, though the connector reads one
``odd``             overridden where the location of a table must follow its name
==================  ====================================================================================

What the connector's capabilities rule out is not collected; what they claim is held against the catalog: a name that its
``NameRules`` allow must be kept as it is. Names that the suite makes end in eight random hexadecimal digits. Needs pytest;
``pytest.register_assert_rewrite("federator.testing.contract")`` in a ``conftest.py`` makes failures readable.
"""

from __future__ import annotations

from federator.testing.contract.base import MARK, ODD_NAMES, SOURCE, fresh
from federator.testing.contract.concurrency import ConcurrencyFace
from federator.testing.contract.crawl import CrawlFace
from federator.testing.contract.failures import FailureFace
from federator.testing.contract.feed import FeedFace
from federator.testing.contract.namespaces import NamespaceFace
from federator.testing.contract.tables import TableFace
from federator.testing.contract.writes import WriteFace


class ConnectorContract(NamespaceFace, TableFace, CrawlFace, FeedFace, WriteFace, FailureFace, ConcurrencyFace):
    """The whole suite."""


__all__ = [
    "MARK",
    "ODD_NAMES",
    "SOURCE",
    "ConcurrencyFace",
    "ConnectorContract",
    "CrawlFace",
    "FailureFace",
    "FeedFace",
    "NamespaceFace",
    "TableFace",
    "WriteFace",
    "fresh",
]
