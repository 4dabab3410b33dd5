"""Content digests: SHA-256 over canonical JSON, without volatile properties."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

# Properties that catalogs and engines rewrite on their own: Hive's StatsSetupConst and hive_metastoreConstants, Glue's crawler
# statistics, and what lance-namespace-impls writes into every declaration.
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
        "managed_by",
        "empty_table",
    }
)


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys, no white space and no escapes: one text per value. Raise TypeError for unsupported types."""
    return _ENCODER.encode(value)


# Shared, because json.dumps would create an encoder for each call.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(value: object) -> str:
    """Return the SHA-256 of the canonical JSON, as hexadecimal text. Lone surrogates, which UTF-8 forbids, are encoded distinctly."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def stable_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that count as content."""
    return {key: value for key, value in properties.items() if key not in VOLATILE_PROPERTIES}


def fold_digest(digests: Iterable[str]) -> int:
    """Return one number for digests in any order: the XOR of the first 60 bits of each.

    With 60 bits, SQL engines with signed 64-bit integers compute the same number. It proves completeness and is not a signature.
    """
    folded = 0
    for digest in digests:
        folded ^= int(digest[:15], 16)
    return folded
