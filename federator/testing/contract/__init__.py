"""The suite that every connector passes: its namespace, crawl and write faces against one real catalog.

Subclass it in a test module, say which connector, and where it finds an empty namespace::

    class TestMyCatalog(ConnectorContract):
        connector = CONNECTOR

        @pytest.fixture
        def properties(self) -> dict[str, str]: ...

        @pytest.fixture
        def namespace(self, properties) -> Path: ...

        @pytest.fixture
        def location(self, tmp_path) -> Callable[[str], str]: ...

What a connector's capabilities rule out is not collected. Names that the suite makes end in eight random hexadecimal digits.
Needs pytest; ``pytest.register_assert_rewrite("federator.testing.contract")`` in a ``conftest.py`` makes failures readable.
"""

from __future__ import annotations

from federator.testing.contract.base import MARK, ODD_NAMES, SOURCE, fresh
from federator.testing.contract.crawl import CrawlFace
from federator.testing.contract.namespaces import NamespaceFace
from federator.testing.contract.tables import TableFace
from federator.testing.contract.writes import WriteFace


class ConnectorContract(NamespaceFace, TableFace, CrawlFace, WriteFace):
    """The whole suite."""


__all__ = ["MARK", "ODD_NAMES", "SOURCE", "ConnectorContract", "CrawlFace", "NamespaceFace", "TableFace", "WriteFace", "fresh"]
