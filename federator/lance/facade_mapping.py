"""Mapping between requests, records and responses of the facade: storage options, URIs, properties, modes.

This module does not import the Lance packages, so that the API and tests can use it without them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import quote

from federator.connector.errors import InvalidInput
from federator.connector.options import is_endpoint_key, is_secret_key
from federator.connector.port import LANCE, TABLE_TYPE_KEY
from federator.connector.storage_options import option_name, plain_options
from federator.model import NamespaceRecord, Path, TableRecord, local_path, stable_properties

#: namespace properties that are fields of a record. The names come from the Hive specs; the other specs have none.
_LOCATION, _DOC, _OWNER = "database.location-uri", "database.description", "database.owner"
_FEDERATOR_PREFIX = "federator."

#: the header, also as entry ``header.<name>`` of a request's context, that confirms that dropping a namespace cascades
CONFIRM_HEADER, CASCADES = "x-federator-confirm", "cascades"
_IDENTIFYING = (TABLE_TYPE_KEY, "external")
# Options whose values clients put into the name of a host.
_HOST_PARTS, _REGIONS = ("account_name", "bucket", "bucket_name", "container_name"), ("region", "default_region")
_REGION = re.compile(r"[A-Za-z0-9-]+")


def storage_options_for(
    storage: Mapping[str, str], record: TableRecord, *, plain: Collection[str] = (), vend_credentials: bool | None = None
) -> dict[str, str]:
    """Return the storage options of a table: the source's ``storage.*``, overridden by the table's parameters.

    Identifying parameters, ownership markers, endpoints and secrets among the parameters are left out. If the parameters name an
    endpoint, only plain options are returned, because the catalog's data must not send credentials elsewhere. The same applies if
    ``vend_credentials`` is False. ``plain`` are further plain options of the source.
    """
    redirected = any(is_endpoint_key(key) for key in record.properties)
    is_public = redirected or vend_credentials is False
    options = plain_options(storage, plain, record.location) if is_public else dict(storage)
    return options | {
        key: value for key, value in stable_properties(record.properties).items() if _is_storage_option(key, value)
    }


def _is_storage_option(key: str, value: str) -> bool:
    identifies = key.startswith(_FEDERATOR_PREFIX) or key.lower() in _IDENTIFYING
    return not (identifies or is_secret_key(key) or is_endpoint_key(key) or _is_part_of_host(key, value))


def _is_part_of_host(key: str, value: str) -> bool:
    """Return whether a parameter could lead requests to another host than the source's, of which clients make it a part."""
    name = option_name(key)
    return name in _HOST_PARTS or (name in _REGIONS and not _REGION.fullmatch(value))


def table_uri(location: str) -> str:
    """Return the location as a complete URI: a path as ``file://``, with forbidden characters percent-encoded."""
    local = local_path(location)
    if local is not None:
        return "file://" + quote(local, errors="surrogatepass")
    # A location outside a file system is already a URI, so an existing percent-encoding is kept.
    encoded = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", location)
    return quote(encoded, safe="%/:@$&'()*+,;=~-._", errors="surrogatepass")


def validate_table_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """Return the properties of a new table without those that the connector sets. Raise InvalidInput if they contradict it."""
    accepted: dict[str, str] = {}
    for key, value in (properties or {}).items():
        lowered = key.lower()
        if lowered == TABLE_TYPE_KEY and value.lower() != LANCE:
            raise InvalidInput(f"{key}={value}: only Lance tables can be declared here")
        if lowered == "external" and value.lower() != "true":
            raise InvalidInput(f"{key}={value}: only external tables can be declared here")
        if lowered not in _IDENTIFYING:
            accepted[key] = value
    return accepted


def namespace_from_properties(source: str, path: Path, properties: Mapping[str, str] | None) -> NamespaceRecord:
    """Return the desired namespace. ``database.location-uri``, ``database.description`` and ``database.owner`` become its fields."""
    rest = dict(properties or {})
    location, doc, owner = rest.pop(_LOCATION, None), rest.pop(_DOC, None), rest.pop(_OWNER, None)
    return NamespaceRecord(source, path, rest, location, doc, owner)


def namespace_to_properties(record: NamespaceRecord, native_names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the properties of a namespace: the inverse of ``namespace_from_properties``.

    A property that has a name in ``native_names``, too, is returned by both names.
    """
    special = {_LOCATION: record.location, _DOC: record.doc, _OWNER: record.owner}
    properties = {**record.properties, **{key: value for key, value in special.items() if value is not None}}
    for name, native_name in (native_names or {}).items():
        value = properties.get(name, properties.get(native_name))
        if value is not None:
            properties[name] = properties[native_name] = value
    return properties


def parse_choice(field: str, value: str | None, *allowed: str) -> str:
    """Return the one of ``allowed`` (snake case) that a value means in any case, ``ExistOk`` as well as ``EXIST_OK``.

    Quotes are left out: lancedb's remote client sends them within the value. Return the first one for an empty value. Raise
    InvalidInput with the allowed ones for any other value.
    """
    if not value:
        return allowed[0]
    folded = re.sub(r'[\s_"-]', "", value).lower()
    for candidate in allowed:
        if candidate.replace("_", "") == folded:
            return candidate
    raise InvalidInput(f"unknown {field} {value!r}", hint=f"use one of {', '.join(allowed)}, in any case")
