"""Frozen value types, identifiers, locations and digests. Standard library only."""

from federator.model.coverage import (
    COMPLETE,
    Coverage,
    CoverageState,
    Evidence,
    carried_evidence,
    failed_evidence,
    skipped_evidence,
)
from federator.model.digests import canonical_json, digest_of, fold_digest, stable_properties
from federator.model.identifiers import ROOT, Path, iter_ancestors, object_id, parent_key, parent_path, parse_path_key, path_key
from federator.model.identity import NO_IDENTITY, WHOLE, Identity, describe_parts
from federator.model.locations import (
    LocationAliases,
    canonical_location,
    encode_key,
    is_ambiguous,
    is_location,
    local_path,
    parent_locations,
    relative_location,
    to_lance_uri,
)
from federator.model.records import Kind, NamespaceRecord, Properties, Record, TableRecord
from federator.model.scopes import EVERYTHING, Scopes

__all__ = [
    "COMPLETE",
    "EVERYTHING",
    "NO_IDENTITY",
    "ROOT",
    "WHOLE",
    "Coverage",
    "CoverageState",
    "Evidence",
    "Identity",
    "Kind",
    "LocationAliases",
    "NamespaceRecord",
    "Path",
    "Properties",
    "Record",
    "Scopes",
    "TableRecord",
    "canonical_json",
    "canonical_location",
    "carried_evidence",
    "describe_parts",
    "digest_of",
    "encode_key",
    "failed_evidence",
    "fold_digest",
    "is_ambiguous",
    "is_location",
    "iter_ancestors",
    "local_path",
    "object_id",
    "parent_key",
    "parent_locations",
    "parent_path",
    "parse_path_key",
    "path_key",
    "relative_location",
    "skipped_evidence",
    "stable_properties",
    "to_lance_uri",
]  # fmt: skip
