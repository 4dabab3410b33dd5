"""The metadata of all tables, and the column types that they share."""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, MetaData, Text

metadata = MetaData()

# SQLite assigns row numbers only to an INTEGER primary key.
RowId = BigInteger().with_variant(Integer, "sqlite")
# Text in byte order, independent of the database's locale.
ByteOrderedText = Text().with_variant(Text(collation="C"), "postgresql")
