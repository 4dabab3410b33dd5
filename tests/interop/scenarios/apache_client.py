"""The Java client ``lance-namespace-apache-client``, driven by py4j. ``APACHE_CLIENT_JARS`` is the directory of its jars.

Runs in this project's environment: nothing of it is used except a JVM that py4j drives.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from federator.demo.servers.hive import open_jvm
from tests.interop.scenarios.runner import Server, Steps, equal, run


def failed(call: Callable[[], object]) -> tuple[int, int | None]:
    """Return the status and the code of the error that the call raises."""
    import json

    from py4j.protocol import Py4JJavaError

    try:
        call()
    except Py4JJavaError as error:
        exception = error.java_exception
        body = json.loads(exception.getResponseBody() or "{}")
        return exception.getCode(), body.get("code")
    raise AssertionError("not refused")


def identify(server: Server, namespace: list[str], request: Any, *names: str) -> Any:
    """Return a request. For the RestAdapter it gets an id, because the RestAdapter compares the `[]` of an unset one with the route."""
    if server.name == "reference":
        for name in (*namespace, *names):
            request.addIdItem(name)
    return request


def scenario(jvm: Any) -> Callable[[Server], Steps]:
    models = jvm.org.lance.namespace.model

    def steps(server: Server) -> Steps:
        client = jvm.org.lance.namespace.client.apache.ApiClient().setBasePath(server.uri)
        namespaces = jvm.org.lance.namespace.client.apache.api.NamespaceApi(client)
        tables = jvm.org.lance.namespace.client.apache.api.TableApi(client)
        path = server.new_namespace()
        above, parent = "$".join(path), "$".join(server.parent) or "$"
        # Glue would drop the tables of a namespace, too.
        confirmed = jvm.java.util.HashMap()
        confirmed.put("x-federator-confirm", "cascades")

        def table(name: str) -> str:
            return f"{above}${name}"

        about = partial(identify, server, path)

        def names() -> list[str]:
            return sorted(tables.listTables(above, "$", None, None, None).getTables())

        def describe(name: str) -> Any:
            return tables.describeTable(table(name), about(models.DescribeTableRequest(), name), "$", None, None, None)

        def declare(name: str) -> None:
            tables.declareTable(table(name), about(models.DeclareTableRequest(), name), "$")

        def exists(name: str) -> None:
            tables.tableExists(table(name), about(models.TableExistsRequest(), name), "$")

        def deregister(name: str) -> None:
            tables.deregisterTable(table(name), about(models.DeregisterTableRequest(), name), "$")
            equal(name in names(), False)

        def spaced() -> None:
            declare("two words")
            exists("two words")
            equal("two words" in names(), True)
            deregister("two words")

        def rename() -> None:
            tables.renameTable(table("orders"), about(models.RenameTableRequest(), "orders").newTableName("sales"), "$")
            equal(names(), ["sales"])
            tables.renameTable(table("sales"), about(models.RenameTableRequest(), "sales").newTableName("orders"), "$")

        yield "create a namespace", lambda: namespaces.createNamespace(above, about(models.CreateNamespaceRequest()), "$")
        yield (
            "list the namespace",
            lambda: equal(path[-1] in namespaces.listNamespaces(parent, "$", None, None).getNamespaces(), True),
        )
        yield (
            "describe the namespace",
            lambda: namespaces.describeNamespace(above, about(models.DescribeNamespaceRequest()), "$"),
        )
        yield "declare a table", lambda: declare("orders")
        yield "list tables", lambda: equal(names(), ["orders"])
        yield "describe the table", lambda: equal("orders" in describe("orders").getLocation(), True)
        yield "test that the table exists", lambda: exists("orders")
        yield "refuse an existing name (409, code 5)", lambda: equal(failed(lambda: declare("orders")), (409, 5))
        yield "refuse a missing table (404, code 4)", lambda: equal(failed(lambda: describe("none")), (404, 4))
        yield (
            "refuse to drop a namespace with a table (409, code 3)",
            lambda: equal(failed(lambda: namespaces.dropNamespace(above, about(models.DropNamespaceRequest()), "$")), (409, 3)),
        )
        yield "rename the table", rename
        yield "declare, list and deregister a name with a space", spaced
        yield "deregister the table", lambda: deregister("orders")
        yield (
            "drop the namespace",
            lambda: namespaces.dropNamespace(above, about(models.DropNamespaceRequest()), "$", confirmed),
        )
        yield (
            "refuse a missing namespace (404, code 1)",
            lambda: equal(
                failed(lambda: namespaces.describeNamespace(above, about(models.DescribeNamespaceRequest()), "$")), (404, 1)
            ),
        )

    return steps


with tempfile.TemporaryDirectory() as directory, open_jvm([f"{os.environ['APACHE_CLIENT_JARS']}/*"], Path(directory)) as jvm:
    run(scenario(jvm))
