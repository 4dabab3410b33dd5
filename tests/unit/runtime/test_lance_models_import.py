"""The service imports the models of the Lance client, and nobody misses the client."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import sys, federator.api.app
from importlib.metadata import version
print(*(name for name in sys.modules if name.startswith("lance_namespace_urllib3_client.api")))
import lance_namespace, lance_namespace_urllib3_client as client
print(client.__version__ == version("lance-namespace-urllib3-client"), hasattr(client, "Nothing"))
from lance_namespace_urllib3_client import CreateTableRequest, TableApi
from lance_namespace_urllib3_client.api import DataApi
print(CreateTableRequest is lance_namespace.CreateTableRequest, client.TableApi is TableApi, DataApi.create_table.__name__)
"""


def test_the_client_is_imported_at_its_first_use() -> None:
    ran = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False, timeout=120)
    assert (ran.stderr, ran.stdout.splitlines()) == ("", ["", "True False", "True True create_table"])
