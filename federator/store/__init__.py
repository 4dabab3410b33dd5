"""The SQL index: tables and the repositories over them.

Only ``store``, ``views`` and ``migrations/`` contain SQL.
"""

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError as DatabaseError

from federator.store.engine import Index, open_index

__all__ = ["Connection", "DatabaseError", "Index", "open_index"]
