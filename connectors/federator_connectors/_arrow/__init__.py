"""Spark types as catalogs write them, their Arrow types, and columns of Unity Catalog.

==========================  ======================
Spark                       Arrow
==========================  ======================
void, boolean               null, bool
tinyint ... bigint          int8 ... int64
float, double               float32, float64
decimal(p,s)                decimal128(p, s)
string, char(n), varchar(n) string
binary, date                binary, date32
timestamp                   timestamp("us", "UTC")
timestamp_ntz               timestamp("us")
interval day to second      duration("us")
interval year to month      month_day_nano
array<...>                  list
struct<...>, map<...>       the same
==========================  ======================

``federator.lance.columns`` is the opposite direction.
"""
