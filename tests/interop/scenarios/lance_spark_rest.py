"""lance-spark 3.5: tables of a namespace by Spark SQL."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.interop.scenarios import spark_session
from tests.interop.scenarios.runner import Server, Steps, equal, refused, run


def session() -> SparkSession:
    """Return a session with one catalog for each server. The catalog's root is the server's ``parent``."""
    catalogs = {}
    for server in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["servers"]:
        parent = {"parent": ".".join(server["parent"])} if server["parent"] else {}
        catalogs[server["name"]] = {"impl": "rest", "uri": server["uri"], **parent}
    return spark_session.start(catalogs, sql_extensions="org.lance.spark.extensions.LanceSparkSessionExtensions")


SPARK = session()


def steps(server: Server) -> Steps:
    namespace = f"{server.name}.{server.new_namespace()[-1]}"

    def sql(text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in SPARK.sql(text).collect()]

    def names() -> list[str]:
        return sorted(str(row[1]) for row in sql(f"SHOW TABLES IN {namespace}"))

    def count(name: str) -> int:
        return int(str(sql(f"SELECT count(*) FROM {namespace}.{name}")[0][0]))

    def insert(name: str) -> None:
        sql(f"INSERT INTO {namespace}.{name} VALUES (1), (2), (3)")

    def spaced() -> None:
        sql(f"CREATE TABLE {namespace}.`two words` (id BIGINT)")
        insert("`two words`")
        equal(count("`two words`"), 3)

    def drop(name: str) -> None:
        sql(f"DROP TABLE {namespace}.{name}")
        equal(name.strip("`") in names(), False)

    yield "create a namespace", lambda: sql(f"CREATE NAMESPACE {namespace}")
    yield (
        "list the namespace",
        lambda: equal(namespace.partition(".")[2] in [row[0] for row in sql(f"SHOW NAMESPACES IN {server.name}")], True),
    )
    yield "create a table", lambda: sql(f"CREATE TABLE {namespace}.orders (id BIGINT)")
    yield "insert", lambda: insert("orders")
    yield "select", lambda: equal(sql(f"SELECT id FROM {namespace}.orders WHERE id > 1 ORDER BY id"), [(2,), (3,)])
    yield "insert again and count", lambda: (insert("orders"), equal(count("orders"), 6))
    yield "list tables", lambda: equal(names(), ["orders"])
    yield "refuse an existing name", lambda: refused(lambda: sql(f"CREATE TABLE {namespace}.orders (id BIGINT)"), "already")
    yield "refuse a missing table", lambda: refused(lambda: count("none"), "cannot be found", "not found")
    yield "create, insert and read a name with a space", spaced
    yield "drop a table", lambda: drop("orders")
    yield "drop a name with a space", lambda: drop("`two words`")
    yield "drop the namespace", lambda: sql(f"DROP NAMESPACE {namespace}")


run(steps)
