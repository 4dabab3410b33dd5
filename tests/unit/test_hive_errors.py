"""What the metastore's exceptions become; texts as real servers wrote them."""

from __future__ import annotations

import pytest
from thrift.Thrift import TApplicationException

from federator.connector import (
    CatalogError,
    ConcurrentModification,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    TableNotFound,
    Unsupported,
)
from federator_connectors._hive import errors, structs

DATABASE = errors.namespace(("hive", "sales"))
TABLE = errors.table(("hive", "sales", "orders"))


@pytest.mark.parametrize(
    ("about", "error", "expected"),
    [
        (TABLE, structs.NoSuchObjectException("hive.sales.orders table not found"), TableNotFound),
        (DATABASE, structs.NoSuchObjectException("sales"), NamespaceNotFound),
        (DATABASE, structs.UnknownDBException("Could not find database hive.sales"), NamespaceNotFound),
        (DATABASE, structs.AlreadyExistsException("Database sales already exists"), NamespaceAlreadyExists),
        (DATABASE, structs.InvalidOperationException("Database sales is not empty."), NamespaceNotEmpty),
        (TABLE, structs.InvalidOperationException("table sales.orders doesn't exist"), TableNotFound),
        (TABLE, structs.InvalidObjectException("orders! is not a valid object name"), InvalidInput),
        (TABLE, structs.MetaException('No FileSystem for scheme "s3"'), InvalidInput),
        (
            TABLE,
            structs.MetaException("The table has been modified. The parameter value for key 'v' is"),
            ConcurrentModification,
        ),
        (TABLE, structs.MetaException("org.apache.hadoop.security.AccessControlException: denied"), PermissionDenied),
        (DATABASE, structs.MetaException("Can not drop default database in catalog hive"), Unsupported),
        (TABLE, structs.MetaException(None), Internal),
        (TABLE, TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'x'"), Unsupported),
        (TABLE, TApplicationException(TApplicationException.INTERNAL_ERROR, "Internal error processing x"), Internal),
    ],
)
def test_each_answer_has_its_code(about: errors.Subject, error: Exception, expected: type[CatalogError]) -> None:
    ours = errors.answered("lake", about, error)
    assert type(ours) is expected
    assert ours.message.startswith("lake: ")
    assert "\n" not in ours.message


def test_stack_traces_of_the_server_stay_there() -> None:
    text = "java.lang.NullPointerException: x\n\tat org.apache.hadoop.hive.Foo(Foo.java:1)\n" * 50
    assert "Foo.java" not in str(errors.answered("lake", TABLE, structs.MetaException(text)))
