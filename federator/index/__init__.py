"""The SQL index: tables and the repositories over them. With ``migrations/`` the only place that imports sqlalchemy."""

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import SQLAlchemyError as DatabaseError

from federator.index.engine import Index, open_index

__all__ = ["Connection", "DatabaseError", "Index", "RowMapping", "open_index"]
