"""Frozen value types, identifiers, locations and digests. Standard library only."""

from federator.model.coverage import COMPLETE, Coverage, CoverageState, Evidence, carried, failed, skipped
from federator.model.digests import canonical_json, digest_of, fold_digest, stable_properties
from federator.model.identifiers import ROOT, Path, ancestors, parent, parse_key, path_key
from federator.model.identity import NO_IDENTITY, WHOLE, Identity, describe_parts
from federator.model.locations import Aliases, canonical_location, is_location, lance_uri, local_path, places_above
from federator.model.records import Kind, NamespaceRecord, Properties, Record, TableRecord
from federator.model.scopes import EVERYTHING, Scopes

__all__ = [
    "COMPLETE", "EVERYTHING", "NO_IDENTITY", "ROOT", "WHOLE", "Aliases", "Coverage", "CoverageState", "Evidence", "Identity", "Kind",
    "NamespaceRecord", "Path", "Properties", "Record", "Scopes", "TableRecord", "ancestors", "canonical_json",
    "canonical_location", "carried", "describe_parts", "digest_of", "failed", "fold_digest", "is_location", "lance_uri",
    "local_path", "parent", "parse_key", "path_key", "places_above",
    "skipped", "stable_properties",
]  # fmt: skip
