"""The contract suite: tests of a connector's namespace, crawl and write interfaces against one real catalog.

The following test module runs the suite for your own connector::

    import pytest

    from federator.connector import Catalog
    from federator.model import NamespaceRecord, Path
    from federator.testing import CONNECTOR, ConnectorContract  # import your CONNECTOR instead
    from federator.testing.contract import SOURCE, unique_name


    class TestMyCatalog(ConnectorContract):
        connector = CONNECTOR
        unreachable = {"faults": "fail:*; undescribed:*; refuse:*=17"}

        @pytest.fixture
        def properties(self, tmp_path) -> dict[str, str]:
            return {"file": str(tmp_path / "catalog.json")}

        @pytest.fixture
        def namespace(self, catalog: Catalog) -> Path:
            return catalog.create_namespace(NamespaceRecord(SOURCE, (unique_name("db"),))).path

        @pytest.fixture
        def location(self):
            return lambda name: f"s3://bucket/{name}.lance"

The three fixtures return the configuration of the source, an empty namespace for the test, and a function from a table's name to a
valid location. The suite cannot find out the following attributes and methods itself. Most of them enable more tests:

=====================  ====================================================================================
``against``            text that describes the server under test
``unreachable``        additional properties of a server that does not respond: an error is neither empty nor absent
``deny``               removes the right to list a namespace: denied is neither empty nor absent
``native_page``        number of tables on one page of the catalog: no page is lost
``make_managed``       adds a managed table marked as Lance to a namespace: it is never listed
``make_foreign``       adds a foreign object to a namespace: it is neither listed nor touched
``declares_once``      False if two concurrent declarations of one name can both succeed
``write_requests``     bytes of the requests that change or remove a table: the first message after ``confirm`` contains one
``keeps_feed``         False if the server under test has no change feed, although the connector can read one
``crawls_everything``  False if a full crawl of the server would read more than the test may
``races_for_names``    False if concurrent declarations of one name could harm the server
``has_complete_name_rules``        False if the server under test may refuse names that the connector's NameRules allow
``odd_location``       override it if the location of a table must follow its name
=====================  ====================================================================================

Tests that the connector's capabilities exclude are not collected. Claimed capabilities are checked against the catalog: for example, a
name that its ``NameRules`` allow must be kept unchanged. Names that the suite generates end in eight random hexadecimal digits. The
suite needs pytest; ``pytest.register_assert_rewrite("federator.testing.contract")`` in a ``conftest.py`` makes failures readable.
"""

from __future__ import annotations

from federator.testing.contract.base import MARKER, ODD_NAMES, SOURCE, unique_name
from federator.testing.contract.capabilities import CapabilityContract
from federator.testing.contract.concurrency import ConcurrencyContract
from federator.testing.contract.crawl import CrawlContract
from federator.testing.contract.failures import FailureContract
from federator.testing.contract.feed import FeedContract
from federator.testing.contract.namespaces import NamespaceContract
from federator.testing.contract.tables import TableContract
from federator.testing.contract.writes import WriteContract


class ConnectorContract(
    NamespaceContract, TableContract, CapabilityContract, CrawlContract, FeedContract, WriteContract, FailureContract,
    ConcurrencyContract,
):  # fmt: skip
    """The complete suite."""


__all__ = [
    "MARKER",
    "ODD_NAMES",
    "SOURCE",
    "CapabilityContract",
    "ConcurrencyContract",
    "ConnectorContract",
    "CrawlContract",
    "FailureContract",
    "FeedContract",
    "NamespaceContract",
    "TableContract",
    "WriteContract",
    "unique_name",
]
