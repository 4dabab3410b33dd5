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
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    Unauthenticated,
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


DUPLICATE = """JDODataStoreException: Insert of object "MTable@1" using statement "INSERT INTO TBLS (DB_ID) VALUES (?)" failed :
Root cause: ERROR 23505: The statement was aborted because it would have caused a duplicate key value in a unique constraint"""
INCOMPARABLE = """JDODataStoreException: Error executing SQL query "update "TABLE_PARAMS" set "PARAM_VALUE"=? where "PARAM_VALUE"=?".
Root cause: ERROR 42818: Comparisons between 'CLOB (UCS_BASIC)' and 'CLOB (UCS_BASIC)' are not supported."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (structs.MetaException(DUPLICATE), TableAlreadyExists),
        (structs.MetaException(DUPLICATE.replace("INSERT INTO TBLS", "INSERT INTO SDS")), Internal),
        (structs.MetaException(INCOMPARABLE), errors.Incomparable),
        (structs.InvalidOperationException("new table sales.orders already exists"), TableAlreadyExists),
    ],
)
def test_what_hive_4_says_in_other_words(error: Exception, expected: type[CatalogError]) -> None:
    assert type(errors.answered("lake", TABLE, error)) is expected


def test_a_kdc_that_is_away_is_soft_and_a_refused_login_is_not() -> None:
    away = errors.LoginFailed("Unspecified GSS failure: Cannot contact any KDC for realm 'EXAMPLE.COM'")
    assert type(errors.not_logged_in("lake", "host:9083", away)) is ServiceUnavailable
    assert type(errors.not_logged_in("lake", "host:9083", errors.LoginFailed("no ticket"))) is Unauthenticated
