"""Typed settings of a connector, declared once for parsing, error messages and documentation.

The settings are a frozen dataclass with fields created by ``option``. Values may be secret references (``${VAR}``, ``file:PATH``). They
are resolved only where the connection is opened.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path as FilePath
from typing import Any, ClassVar, Self

from federator.connector.call_policy import CallLimits
from federator.connector.errors import ConfigError
from federator.connector.storage_options import is_plain_option
from federator.runtime.redaction import MASKED as MASKED
from federator.runtime.redaction import is_secret_key as is_secret_key
from federator.runtime.redaction import mask_readable, mask_value, register_secret
from federator.runtime.text import nearest_name

#: settings that decide how tables are opened and shown, and never what a listing contains
OPENING_KEYS = frozenset({"plain", "allowed_bases", "ambient_credentials", "schemes", "endpoints"})
#: settings that the configuration file has as lists of texts
LIST_KEYS = OPENING_KEYS - {"ambient_credentials"}
MAX_REQUESTS_KEY = "limit.concurrent-requests"
DEFAULT_SCHEMES = ("file", "s3", "s3+ddb", "gs", "az", "abfss")
#: keys and tokens of object stores are at least this long; names of accounts are shorter
_MIN_KEY_LENGTH = 32
_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser that accepts the texts ``allowed`` in any case, and returns them in lower case."""

    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return text.lower()

    return parse


def parse_boolean(text: str) -> bool:
    """Parse ``true`` or ``false``, in any case."""
    return one_of("true", "false")(text) == "true"


def parse_positive_int(text: str) -> int:
    """Parse a whole number of 1 or more."""
    number = int(text) if re.fullmatch(r"[0-9]+", text) else 0
    if number < 1:
        raise ValueError("a whole number from 1 up")
    return number


def parse_positive_number(text: str) -> float:
    """Parse a number above 0."""
    number = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else 0.0
    if number <= 0:
        raise ValueError("a number above 0")
    return number


def read_count(properties: Mapping[str, str], key: str, default: int) -> int:
    """Return the number at ``key`` of raw properties, with or without prefix; ``default`` if there is none.

    No reference is resolved.
    """
    text = next((value for name, value in properties.items() if name == key or name.endswith(f".{key}")), "")
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,3}", str(text)) else default


def parse_list(text: str) -> tuple[str, ...]:
    """Parse texts that are separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def option(
    key: str,
    default: Any = None,
    *,
    doc: str,
    parse: Callable[[str], Any] = str,
    secret: bool = False,
    required: bool = False,
) -> Any:
    """Return a settings field.

    ``key`` is its name in the configuration, without the impl's prefix (``client.pool-size``). ``parse`` raises ValueError with the
    allowed values as its text. A ``secret`` must be a reference in the configuration and is masked in every ``repr``.
    """
    metadata = {"key": key, "doc": doc, "parse": parse, "secret": secret, "required": required}
    return field(default=default, metadata=metadata, repr=not secret)


def option_family(key: str, *, doc: str) -> Any:
    """Return a settings field for all settings that match ``key`` (``storage.*``), keyed by the text for the asterisk.

    Values of keys that name a secret must be references in the configuration. The field is masked in every ``repr``.
    """
    return field(default_factory=dict, repr=False, metadata={"key": key, "doc": doc, "secret": True, "required": False})


def root_to_uri(root: str | None) -> str:
    """Return a storage root as a URI without a slash at its end. None is the working directory."""
    root = root or str(FilePath.cwd())
    is_path = ":" not in root.partition("/")[0]
    return (FilePath(root).absolute().as_uri() if is_path else root).rstrip("/")


@dataclass(frozen=True, kw_only=True)
class ConnectorSettings:
    """The settings that every source has: ``root``, ``storage.*`` and call limits."""

    #: the keys that name the storage root; the first one that is set counts
    root_keys: ClassVar[tuple[str, ...]] = ("root",)

    root: str | None = option("root", doc="Storage root for tables and namespaces without a location of their own. Default: the current working directory.")  # fmt: skip  # noqa: E501
    storage: Mapping[str, str] = option_family(
        "storage.*", doc="Storage options for opening tables, e.g. storage.region=us-west-2."
    )
    plain: tuple[str, ...] = option("plain", (), doc='Storage options that are not secret, besides those that the federator knows: ["x-tenant"].', parse=parse_list)  # fmt: skip  # noqa: E501
    allowed_bases: tuple[str, ...] = option("allowed_bases", (), doc='Locations outside a table that it may refer to, by base paths of a shallow clone or by symbolic links: ["s3://lake/shared"].', parse=parse_list)  # fmt: skip  # noqa: E501
    ambient_credentials: bool = option("ambient_credentials", False, doc="Open tables with credentials of the machine (environment, profile, metadata service) if storage.* has none. Otherwise, they are opened anonymously.", parse=parse_boolean)  # fmt: skip  # noqa: E501
    schemes: tuple[str, ...] = option("schemes", DEFAULT_SCHEMES, doc="Schemes of locations that are opened, as Lance spells them: s3a is s3.", parse=parse_list)  # fmt: skip  # noqa: E501
    endpoints: tuple[str, ...] = option("endpoints", (), doc="Endpoints, and hosts of Azure accounts, that tables may name. Such a table is opened there with the source's credentials; with any other endpoint, anonymously.", parse=parse_list)  # fmt: skip  # noqa: E501
    requests_per_second: float | None = option("limit.requests-per-second", doc="Maximum number of requests per second of each process. The tasks of a crawl share it. Default: no limit.", parse=parse_positive_number)  # fmt: skip  # noqa: E501
    max_requests: int | None = option(MAX_REQUESTS_KEY, doc="Maximum number of concurrent requests of each process. The tasks of a crawl share it. Default: no limit.", parse=parse_positive_int)  # fmt: skip  # noqa: E501

    @property
    def root_uri(self) -> str:
        """Return ``root`` as a URI without a slash at its end; by default, that of the working directory."""
        return root_to_uri(self.root)

    @classmethod
    def read_root(cls, impl: str, properties: Mapping[str, str]) -> str | None:
        """Return the configured storage root of raw properties as a URI; None if there is none. No other reference is resolved.

        Raise ConfigError if the root has a reference that cannot be resolved.
        """
        keys = [key for name in cls.root_keys for key in (name, f"{impl}.{name}")]
        text = next((str(properties[key]) for key in keys if properties.get(key)), None)
        return root_to_uri(resolve_reference(text, where=impl)) if text is not None else None

    @property
    def limits(self) -> CallLimits:
        return CallLimits(requests_per_second=self.requests_per_second, concurrency=self.max_requests)

    def share_limits(self, processes: int) -> Self:
        """Return the settings of one of several processes that have the limits together. Each may make one request at a time."""
        rate, concurrent = self.requests_per_second, self.max_requests
        return replace(
            self,
            requests_per_second=rate / processes if rate is not None else None,
            max_requests=max(1, concurrent // processes) if concurrent is not None else None,
        )

    @property
    def drops_confirmed(self) -> bool:
        """Return whether namespaces may be dropped without a confirmation if the catalog drops them with all their objects."""
        return False

    def check(self, where: str) -> None:
        """Raise ConfigError for settings that contradict each other. ``where`` is the text before their keys."""

    def list_doubts(self) -> list[str]:
        """Return texts about values that are allowed, but hardly meant. ``doctor`` shows them."""
        return []

    @classmethod
    def from_properties(cls, impl: str, properties: Mapping[str, str], *, where: str = "") -> Self:
        """Return checked settings from ``key = value`` pairs, with references resolved. Keys may have the prefix ``<impl>.``.

        Raise ConfigError with the key and the allowed keys.
        """
        known = {f.metadata["key"]: f for f in fields(cls) if not f.metadata["key"].endswith(".*")}
        families = {f.metadata["key"].removesuffix("*"): f for f in fields(cls) if f.metadata["key"].endswith(".*")}
        values: dict[str, Any] = {f.name: {} for f in families.values()}
        declared = plain_storage_keys(impl, properties)
        for full_key, raw in properties.items():
            key = full_key.removeprefix(f"{impl}.")
            text = resolve_reference(str(raw), where=f"{where}{full_key}")
            family = next((prefix for prefix in families if key.startswith(prefix) and key != prefix), None)
            if key in known:
                values[known[key].name] = _parse_option(known[key], f"{where}{full_key}", text)
            elif family:
                name = key.removeprefix(family)
                is_plain = family == "storage." and is_plain_option(name, declared)
                if not is_plain and (is_secret_key(key) or has_reference(str(raw))):
                    text = _read_secret_at(f"{where}{full_key}", text)
                values[families[family].name][name] = text
            else:
                allowed = ", ".join([*sorted(known), *(f"{prefix}*" for prefix in families)])
                nearest = nearest_name(key, sorted(known))
                hint = f"did you mean {impl}.{nearest}?" if nearest else f"allowed: {allowed}"
                raise ConfigError(f"{where}{full_key}: unknown key", hint=hint)
        missing = [key for key, f in known.items() if f.metadata["required"] and f.name not in values]
        if missing:
            raise ConfigError(f"{where}{impl}.{missing[0]}: required, and not set")
        settings = cls(**values)
        settings.check(f"{where}{impl}.")
        return settings

    @classmethod
    def register_secrets(cls, impl: str, properties: Mapping[str, str]) -> None:
        """Register the values of all secret references, so that they are masked also where the connection is never opened.

        A reference that cannot be resolved is left out. Opening the connection reports it.
        """
        hidden, declared = secret_keys(cls), plain_storage_keys(impl, properties)
        for full_key, raw in properties.items():
            key = full_key.removeprefix(f"{impl}.")
            family, _, name = key.partition(".")
            is_plain = family == "storage" and is_plain_option(name, declared)
            if key in hidden or (f"{family}.*" in hidden and not is_plain):
                register_reference(str(raw))

    @classmethod
    def check_references(cls, impl: str, properties: Mapping[str, str], *, where: str) -> None:
        """Raise ConfigError if the configuration contains a secret in plain text."""
        secrets, declared = secret_keys(cls), plain_storage_keys(impl, properties)
        for full_key, raw in properties.items():
            key = full_key.removeprefix(f"{impl}.")
            is_declared_plain = key.removeprefix("storage.") in declared
            is_secret = key in secrets or (f"{key.split('.')[0]}.*" in secrets and is_secret_key(key) and not is_declared_plain)
            if is_secret and not is_secret_reference(str(raw)):
                raise ConfigError(
                    f"{where}{full_key}: a secret must not stand in the file", hint="write ${VARIABLE} or file:PATH"
                )


def require_if_set(where: str, key: str, value: object, cause: str, cause_value: object) -> None:
    """Raise ConfigError if the setting ``cause`` is set, and the setting ``key``, which it requires, is not."""
    if cause_value and not value:
        raise ConfigError(f"{where}{key}: required, because {cause} is set")


def secret_keys(settings_type: type[ConnectorSettings]) -> set[str]:
    """Return the keys, without the impl's prefix, whose values must be references."""
    return {f.metadata["key"] for f in fields(settings_type) if f.metadata["secret"]}


def _parse_option(option_field: dataclasses.Field[Any], where: str, text: str) -> Any:
    try:
        value = option_field.metadata["parse"](text)
        return register_secret(value) if option_field.metadata["secret"] and isinstance(value, str) else value
    except ValueError as error:
        problem = " the value is not allowed" if option_field.metadata["secret"] else f" {text!r} is not allowed"
        raise ConfigError(f"{where}:{problem}", hint=f"allowed: {error}") from None


def mask_secrets(value: Any) -> Any:
    """Replace the texts in JSON data whose keys name a secret, and in all others secrets of URLs and known secrets."""
    if isinstance(value, str):
        return mask_readable(value)
    if isinstance(value, dict):
        return {key: _mask_member(str(key), inner) for key, inner in value.items()}
    return [mask_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def _mask_member(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return mask_secrets(value)
    return MASKED if is_secret_key(key) else mask_value(value)


def is_endpoint_key(key: str) -> bool:
    """Return whether a property could redirect requests, and so credentials, to another server."""
    lowered = key.lower().replace("-", "_").replace(".", "_")
    return any(
        word in lowered
        for word in ("endpoint", "proxy", "allow_http", "virtual_hosted", "metadata_url", "authority", "base_url", "emulator")
    )


def plain_storage_keys(impl: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the storage options that a source declares as plain (``plain``), from its properties."""
    return parse_list(properties.get("plain") or properties.get(f"{impl}.plain") or "")


def is_secret_reference(text: str) -> bool:
    return text.startswith("file:") or _REFERENCE.fullmatch(text) is not None


def has_reference(text: str) -> bool:
    """Return whether a value, or a part of it, comes from a reference."""
    return text.startswith("file:") or _REFERENCE.search(text) is not None


def resolve_reference(text: str, *, where: str) -> str:
    """Return the value of a setting, with ``${VAR}`` from the environment. Raise ConfigError with the missing variable."""

    def variable(match: re.Match[str]) -> str:
        value = os.environ.get(match["name"])
        if value is None:
            hint = f"export {match['name']}, or write file:PATH for a secret in a file"
            raise ConfigError(f"{where}: the environment variable {match['name']} is not set", hint=hint)
        return value

    return _REFERENCE.sub(variable, text)


def resolve_secret(text: str, *, where: str) -> str:
    """Return the secret that a reference (``${VAR}`` or ``file:PATH``) names.

    Raise ConfigError, which names the setting ``where`` and the variable or the file.
    """
    return _read_secret_at(where, resolve_reference(text, where=where))


def _read_secret_at(where: str, text: str) -> str:
    try:
        return read_secret(text)
    except ValueError as error:
        allowed = str(error)
        raise ConfigError(f"{where}: not {allowed}") from None


def register_reference(text: str) -> None:
    """Register the value of a secret reference, if it can be resolved. A text without a reference is not registered."""
    with contextlib.suppress(ConfigError, ValueError):
        if has_reference(text):
            resolved = resolve_reference(text, where="")
            # A pipe can be read once, by the part that needs the secret.
            if not resolved.startswith("file:") or FilePath(resolved.removeprefix("file:")).is_file():
                read_secret(resolved)
    for match in _REFERENCE.finditer(text):
        # Other variables inside a longer text are names of accounts and regions, which are parts of locations.
        value = os.environ.get(match["name"], "")
        if is_secret_key(match["name"]) or len(value) >= _MIN_KEY_LENGTH:
            register_secret(value)


def read_secret(text: str) -> str:
    """Return the value of a secret option: for ``file:PATH`` the file's content without its last line break, else the text.

    Raise ValueError if the file cannot be read. Its text names what is allowed, like those of the other functions that parse an option.
    """
    if not text.startswith("file:"):
        return register_secret(text)
    path = FilePath(text.removeprefix("file:"))
    try:
        return register_secret(path.read_text(encoding="utf-8").rstrip("\r\n"))
    except OSError as error:
        raise ValueError(f"a readable file ({error.strerror}: {path})") from None
