"""Code that opens one table through this service: with pylance, lancedb, Spark and DuckDB.

A snippet contains no secret. It reads a token from the environment variable ``FEDERATOR_TOKEN`` if the service requires one. Names of
catalogs are untrusted: they are written as literals of their language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from federator.connector.errors import InvalidInput
from federator.model import Path

#: the environment variable with the token, in snippets for a service that requires one
TOKEN_VARIABLE = "FEDERATOR_TOKEN"  # noqa: S105 - a name
#: the connector and its configuration are those of its documentation: https://lance.org/integrations/spark/config/
SPARK_PACKAGE = "org.lance:lance-spark-bundle-3.5_2.12:0.4.0"
_SPARK_CATALOG = "spark.sql.catalog.federator"
_DEFAULT_DELIMITER = "$"
# A host is a name of DNS, perhaps with underscores, or an IP address. Nothing here needs an escape in a literal or in a shell.
_ADDRESS = re.compile(
    r"https?://(?:[a-z0-9][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?(?:/[a-z0-9._~%/-]*)?",
    re.IGNORECASE | re.ASCII,
)
_MAX_PORT = 65_535
_DELIMITERS = (_DEFAULT_DELIMITER, "|", "::", "\x1f", "\x1e")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Python code that opens the table with one client: as `dataset` for pylance and duckdb, as `table` for lancedb and spark."""

    client: Annotated[Literal["pylance", "lancedb", "spark", "duckdb"], Field(examples=["pylance"])]
    packages: Annotated[list[str], Field(examples=[["pylance"]], description="packages of PyPI that the code needs")]
    code: Annotated[str, Field(examples=["import lance\n\ndataset = lance.dataset(...)\n"])]


def build_snippets(uri: str, path: Path, *, requires_token: bool) -> list[Snippet]:
    """Return the snippets for the table at ``path``, which starts with its source. ``uri``: the address of the service.

    Raise InvalidInput if ``uri`` is not an http or https URL, or contains a user, a password, a query or a fragment.
    """
    uri = _check_address(uri)
    delimiter = next((each for each in _DELIMITERS if not any(each in name for name in path)), None)
    if delimiter is None:
        raise InvalidInput("the names of the table contain every delimiter that a snippet can use")
    properties = {"uri": literal(uri)}
    if delimiter != _DEFAULT_DELIMITER:
        properties["delimiter"] = literal(delimiter)
    python, spark = dict(properties), {"impl": literal("rest"), **properties}
    if requires_token:
        bearer = f'"Bearer " + os.environ["{TOKEN_VARIABLE}"]'
        python["header.Authorization"] = spark["headers.Authorization"] = bearer
    imports = "import os\n\n" if requires_token else ""
    connection = _dict_literal(python)
    query = "SELECT * FROM dataset LIMIT 10"
    dataset = (
        f'federator = lance_namespace.connect("rest", {connection})\n'
        f"dataset = lance.dataset(namespace_client=federator, table_id={_list_literal(path)})\n"
    )
    return [
        Snippet("pylance", ["pylance"], f"{imports}import lance\nimport lance_namespace\n\n{dataset}"),
        Snippet(
            "lancedb", ["lancedb", "pylance"],
            f'{imports}import lancedb\n\nfederator = lancedb.connect_namespace("rest", {connection})\n'
            f"table = federator.open_table({literal(path[-1])}, namespace_path={_list_literal(path[:-1])})\n",
        ),
        Snippet("spark", ["pyspark>=3.5,<3.6"], imports + _spark_code(spark, path)),
        Snippet(
            "duckdb", ["duckdb", "pylance"],
            f'{imports}import duckdb\nimport lance\nimport lance_namespace\n\n{dataset}duckdb.sql("{query}").show()\n',
        ),
    ]  # fmt: skip


def literal(text: str) -> str:
    """Return a text as a literal of Python. Control, zero-width and direction characters are escaped."""
    quoted = repr(text)
    return quoted if '"' in quoted or "\\" in quoted else f'"{quoted[1:-1]}"'


def _spark_code(options: dict[str, str], path: Sequence[str]) -> str:
    identifier = ".".join(["federator", *("`" + name.replace("`", "``") + "`" for name in path)])
    settings = [
        ("spark.jars.packages", literal(SPARK_PACKAGE)), (_SPARK_CATALOG, literal("org.lance.spark.LanceNamespaceSparkCatalog")),
        *((f"{_SPARK_CATALOG}.{key}", value) for key, value in options.items()),
    ]  # fmt: skip
    lines = "".join(f'    .config("{key}", {value})\n' for key, value in settings)
    return (
        "from pyspark.sql import SparkSession\n\n"
        f"spark = (\n    SparkSession.builder\n{lines}    .getOrCreate()\n)\ntable = spark.table({literal(identifier)})\n"
    )


def _dict_literal(properties: dict[str, str]) -> str:
    if list(properties) == ["uri"]:
        return f'{{"uri": {properties["uri"]}}}'
    return "{\n" + "".join(f'    "{key}": {value},\n' for key, value in properties.items()) + "}"


def _list_literal(names: Sequence[str]) -> str:
    return f"[{', '.join(map(literal, names))}]"


def _check_address(uri: str) -> str:
    match = _ADDRESS.fullmatch(uri)
    if match is None or int(match["port"] or 0) > _MAX_PORT:
        raise InvalidInput("uri is not the address of a service", hint="use http://host:port or https://host")
    return uri.rstrip("/")
