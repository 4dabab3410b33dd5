"""What the namespace face answers with, computed from records: storage options, URIs, namespace properties, modes.

Apart from the face so that it is tested, and used by the API, without the Lance packages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from federator.connector.errors import InvalidInput
from federator.connector.options import is_endpoint_key, is_secret_key
from federator.connector.port import LANCE, LANCE_MARKER
from federator.model import NamespaceRecord, Path, TableRecord, local_path, stable_properties

#: how the properties of a namespace name what has a place of its own in a record: the Hive specs' names, used for every
#: catalog since the other specs have none
_LOCATION, _DOC, _OWNER = "database.location-uri", "database.description", "database.owner"
_OURS = "federator."

#: the header, or the entry ``header.<it>`` of a request's context, by which a caller confirms that dropping a namespace cascades
CONFIRM_HEADER, CASCADES = "x-federator-confirm", "cascades"
_IDENTIFYING = (LANCE_MARKER, "external")


def storage_options(storage: Mapping[str, str], record: TableRecord, *, vend_credentials: bool | None = None) -> dict[str, str]:
    """How to open a table: the source's own ``storage.*`` overlaid by the table's parameters.

    Parameters that identify, mark or redirect are left out, and so are secrets among them. A table whose parameters name an
    endpoint gets no credentials at all, since its catalog's answer must not send ours elsewhere; neither does a caller who
    declined them (``vend_credentials`` False).
    """
    redirected = any(is_endpoint_key(key) for key in record.properties)
    options = dict(storage)
    if redirected or vend_credentials is False:
        options = {key: value for key, value in options.items() if not is_secret_key(key)}
    return options | {key: value for key, value in stable_properties(record.properties).items() if _opens(key)}


def _opens(key: str) -> bool:
    identifies = key.startswith(_OURS) or key.lower() in _IDENTIFYING
    return not (identifies or is_secret_key(key) or is_endpoint_key(key))


def table_uri(location: str) -> str:
    """The location as a complete and valid URI: a path as ``file://``, and whatever a URI may not hold percent-encoded."""
    local = local_path(location)
    if local is not None:
        return "file://" + quote(local, errors="surrogatepass")
    # Outside a file system a location is a URI already, so that what looks encoded is.
    encoded = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", location)
    return quote(encoded, safe="%/:@$&'()*+,;=~-._", errors="surrogatepass")


def table_properties(given: Mapping[str, str] | None) -> dict[str, str]:
    """The properties of a new table, less those that the connector sets itself. Raises InvalidInput where they contradict it."""
    kept: dict[str, str] = {}
    for key, value in (given or {}).items():
        lowered = key.lower()
        if lowered == LANCE_MARKER and value.lower() != LANCE:
            raise InvalidInput(f"{key}={value}: only Lance tables can be declared here")
        if lowered == "external" and value.lower() != "true":
            raise InvalidInput(f"{key}={value}: only external tables can be declared here")
        if lowered not in _IDENTIFYING:
            kept[key] = value
    return kept


def namespace_record(source: str, path: Path, given: Mapping[str, str] | None) -> NamespaceRecord:
    """The wanted namespace; ``database.location-uri``, ``database.description`` and ``database.owner`` go where they belong."""
    rest = dict(given or {})
    location, doc, owner = rest.pop(_LOCATION, None), rest.pop(_DOC, None), rest.pop(_OWNER, None)
    return NamespaceRecord(source, path, rest, location, doc, owner)


def namespace_properties(record: NamespaceRecord) -> dict[str, str]:
    """The inverse of ``namespace_record``."""
    special = {_LOCATION: record.location, _DOC: record.doc, _OWNER: record.owner}
    return {**record.properties, **{key: value for key, value in special.items() if value is not None}}


def choice(what: str, given: str | None, *allowed: str) -> str:
    """One of ``allowed`` (snake case), the first when nothing is given; any case, ``ExistOk`` as well as ``EXIST_OK``.

    Raises InvalidInput that names the valid ones.
    """
    if not given:
        return allowed[0]
    folded = re.sub(r"[\s_-]", "", given).lower()
    for candidate in allowed:
        if candidate.replace("_", "") == folded:
            return candidate
    raise InvalidInput(f"{what} {given!r} is unknown here", hint=f"one of {', '.join(allowed)}, in any case")
