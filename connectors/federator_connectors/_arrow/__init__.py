"""Schemas between Arrow, Spark's types as catalogs write them, and the columns of Unity Catalog.

=====================================  =====================  ==============================
Arrow                                  Spark                  Arrow, read back without ``arrow``
=====================================  =====================  ==============================
null, bool                             void, boolean          the same
int8, int16, int32, int64              tinyint ... bigint     the same
uint8, uint16, uint32                  smallint, int, bigint  int16, int32, int64
uint64                                 decimal(20,0)          decimal128(20, 0)
float16, float32, float64              float, float, double   float32, float32, float64
decimal of any width, 0 ≤ scale ≤ 38   decimal(p,s)           decimal128(p, s)
string and its variants                string                 string
binary and its variants                binary                 binary
date32, date64                         date                   date32
timestamp with a zone                  timestamp              timestamp("us", "UTC")
timestamp without                      timestamp_ntz          timestamp("us")
duration                               interval day to second duration("us")
month_day_nano interval                interval year to month month_day_nano
list and its variants, vectors         array<...>             list
struct, map                            struct<...>, map<...>  the same
dictionary, run-end encoded            that of its values     that of its values
extension (bfloat16, uuid, json, ...)  that of its storage    its storage
time, union, a larger decimal          string                 string
=====================================  =====================  ==============================

Where reading a column back would not give the very field that was written (its type, nullability and metadata, and those of
everything nested), the exact field goes along, as a base64 Arrow IPC schema under ``arrow``: so every round trip is exact, and
who does not know of it reads the nearest type.
"""
