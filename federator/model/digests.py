"""Content digests: SHA-256 over canonical JSON, and what is left out of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

# What catalogs and engines rewrite on their own. Hive: StatsSetupConst and hive_metastoreConstants; Glue: crawler statistics.
VOLATILE_PROPERTIES = frozenset(
    {
        "transient_lastDdlTime",
        "last_modified_time",
        "last_modified_by",
        "numFiles",
        "numFilesErasureCoded",
        "numPartitions",
        "numRows",
        "rawDataSize",
        "totalSize",
        "COLUMN_STATS_ACCURATE",
        "STATS_GENERATED_VIA_STATS_TASK",
        "DO_NOT_UPDATE_STATS",
        "bucketing_version",
        "UPDATED_BY_CRAWLER",
        "CrawlerSchemaDeserializerVersion",
        "CrawlerSchemaSerializerVersion",
        "averageRecordSize",
        "objectCount",
        "recordCount",
        "sizeKey",
    }
)


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no white space and no escapes: one text per value. Raises TypeError for foreign types."""
    return _ENCODER.encode(value)


# json.dumps would make one for each call.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON, hexadecimal. Lone surrogates, which JSON allows and UTF-8 does not, are kept apart."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def stable_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that count as content."""
    return {key: value for key, value in properties.items() if key not in VOLATILE_PROPERTIES}


def fold_digest(digests: Iterable[str]) -> int:
    """One number for a set of digests in any order: the XOR of each one's first 60 bits.

    Sixty bits so that SQL engines with signed 64-bit integers compute the same. Evidence of completeness, not a signature.
    """
    folded = 0
    for digest in digests:
        folded ^= int(digest[:15], 16)
    return folded
