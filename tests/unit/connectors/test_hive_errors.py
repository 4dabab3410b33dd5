"""Mapping of the metastore's exceptions, with texts as real servers wrote them."""

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
from federator_connectors._hive import errors, thrift_types

DATABASE = errors.namespace_subject(("hive", "sales"))
TABLE = errors.table_subject(("hive", "sales", "orders"))


@pytest.mark.parametrize(
    ("about", "error", "expected"),
    [
        (TABLE, thrift_types.NoSuchObjectException("hive.sales.orders table not found"), TableNotFound),
        (DATABASE, thrift_types.NoSuchObjectException("sales"), NamespaceNotFound),
        (DATABASE, thrift_types.UnknownDBException("Could not find database hive.sales"), NamespaceNotFound),
        (DATABASE, thrift_types.AlreadyExistsException("Database sales already exists"), NamespaceAlreadyExists),
        (DATABASE, thrift_types.InvalidOperationException("Database sales is not empty."), NamespaceNotEmpty),
        (TABLE, thrift_types.InvalidOperationException("table sales.orders doesn't exist"), TableNotFound),
        (TABLE, thrift_types.InvalidObjectException("orders! is not a valid object name"), InvalidInput),
        (TABLE, thrift_types.MetaException('No FileSystem for scheme "s3"'), InvalidInput),
        (
            TABLE,
            thrift_types.MetaException("The table has been modified. The parameter value for key 'v' is"),
            ConcurrentModification,
        ),
        (TABLE, thrift_types.MetaException("org.apache.hadoop.security.AccessControlException: denied"), PermissionDenied),
        (DATABASE, thrift_types.MetaException("Can not drop default database in catalog hive"), Unsupported),
        (TABLE, thrift_types.MetaException(None), Internal),
        (TABLE, TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'x'"), Unsupported),
        (TABLE, TApplicationException(TApplicationException.INTERNAL_ERROR, "Internal error processing x"), Internal),
    ],
)
def test_each_answer_has_its_code(about: errors.CallSubject, error: Exception, expected: type[CatalogError]) -> None:
    translated = errors.error_for_response("lake", about, error)
    assert type(translated) is expected
    assert translated.message.startswith("lake: ")
    assert "\n" not in translated.message


def test_stack_traces_of_the_server_stay_there() -> None:
    text = "java.lang.NullPointerException: x\n\tat org.apache.hadoop.hive.Foo(Foo.java:1)\n" * 50
    assert "Foo.java" not in str(errors.error_for_response("lake", TABLE, thrift_types.MetaException(text)))


DUPLICATE = """JDODataStoreException: Insert of object "MTable@1" using statement "INSERT INTO TBLS (DB_ID) VALUES (?)" failed :
Root cause: ERROR 23505: The statement was aborted because it would have caused a duplicate key value in a unique constraint"""
INCOMPARABLE = """JDODataStoreException: Error executing SQL query "update "TABLE_PARAMS" set "PARAM_VALUE"=? where "PARAM_VALUE"=?".
Root cause: ERROR 42818: Comparisons between 'CLOB (UCS_BASIC)' and 'CLOB (UCS_BASIC)' are not supported."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (thrift_types.MetaException(DUPLICATE), TableAlreadyExists),
        (thrift_types.MetaException(DUPLICATE.replace("INSERT INTO TBLS", "INSERT INTO SDS")), Internal),
        (thrift_types.MetaException(INCOMPARABLE), errors.Incomparable),
        (thrift_types.InvalidOperationException("new table sales.orders already exists"), TableAlreadyExists),
    ],
)
def test_what_hive_4_says_in_other_words(error: Exception, expected: type[CatalogError]) -> None:
    assert type(errors.error_for_response("lake", TABLE, error)) is expected


def test_a_kdc_that_is_away_is_soft_and_a_refused_login_is_not() -> None:
    away = errors.LoginFailed("Unspecified GSS failure: Cannot contact any KDC for realm 'EXAMPLE.COM'")
    assert type(errors.error_for_login("lake", "host:9083", away)) is ServiceUnavailable
    assert type(errors.error_for_login("lake", "host:9083", errors.LoginFailed("no ticket"))) is Unauthenticated
