"""The port that a connector implements, capabilities as data, and the error tree with the specs' codes.

A new connector is one module that subclasses ``Connector`` and ``Catalog``, and one entry point in the group
``federator.connectors``.
"""

from federator.connector.capabilities import Capabilities, NameRules
from federator.connector.errors import (
    CatalogError,
    ConcurrentModification,
    ConfigError,
    FederatorError,
    Internal,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    PermissionDenied,
    ServiceUnavailable,
    StateError,
    TableAlreadyExists,
    TableNotFound,
    Throttled,
    Unauthenticated,
    Unsupported,
)  # fmt: skip
from federator.connector.options import (
    Settings,
    boolean,
    family,
    is_endpoint_key,
    is_secret_key,
    number,
    option,
    positive,
    secret,
)
from federator.connector.politeness import Limits, Politeness, politeness
from federator.connector.port import LANCE, LANCE_MARKER, Catalog, Changes, Connector, Observation, Shard, SourceSpec

__all__ = [
    "LANCE",
    "LANCE_MARKER",
    "Capabilities",
    "Catalog",
    "CatalogError",
    "Changes",
    "ConcurrentModification",
    "ConfigError",
    "Connector",
    "FederatorError",
    "Internal",
    "InvalidInput",
    "Limits",
    "NameRules",
    "NamespaceAlreadyExists",
    "NamespaceNotEmpty",
    "NamespaceNotFound",
    "Observation",
    "PermissionDenied",
    "Politeness",
    "ServiceUnavailable",
    "Settings",
    "Shard",
    "SourceSpec",
    "StateError",
    "TableAlreadyExists",
    "TableNotFound",
    "Throttled",
    "Unauthenticated",
    "Unsupported",
    "boolean",
    "family",
    "is_endpoint_key",
    "is_secret_key",
    "number",
    "option",
    "politeness",
    "positive",
    "secret",
]  # fmt: skip
