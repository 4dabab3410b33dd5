"""The SQL index: tables and the repositories over them. With ``migrations/`` the only place that imports sqlalchemy."""

from sqlalchemy import Connection

from federator.index.engine import Index, open_index

__all__ = ["Connection", "Index", "open_index"]
