"""Typed settings of a connector, declared once and used for parsing, error messages and documentation.

A connector's settings are a frozen dataclass whose fields are made with ``option``. Values may be secret references
(``${VAR}``, ``file:PATH``): they travel as they stand and are resolved only where the connection is opened.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path as FilePath
from typing import Any, Self

from federator.connector.errors import ConfigError
from federator.connector.politeness import Limits
from federator.connector.secrets import MASKED as MASKED
from federator.connector.secrets import is_secret_key as is_secret_key
from federator.connector.secrets import remember

_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def boolean(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("one of true, false")
    return lowered == "true"


def positive(text: str) -> int:
    """A whole number from 1 up."""
    number = int(text) if re.fullmatch(r"[0-9]+", text) else 0
    if number < 1:
        raise ValueError("a whole number from 1 up")
    return number


def number(text: str) -> float:
    """A number above 0."""
    found = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else 0.0
    if found <= 0:
        raise ValueError("a number above 0")
    return found


def option(
    key: str,
    default: Any = None,
    *,
    doc: str,
    parse: Callable[[str], Any] = str,
    secret: bool = False,
    required: bool = False,
) -> Any:
    """A settings field.

    ``key`` is its name in configuration, without the impl's prefix (``client.pool-size``). ``parse`` raises ValueError with the
    allowed values as its text. A ``secret`` must be a reference in configuration and is masked in every ``repr``.
    """
    metadata = {"key": key, "doc": doc, "parse": parse, "secret": secret, "required": required}
    return field(default=default, metadata=metadata, repr=not secret)


def family(key: str, *, doc: str) -> Any:
    """A settings field that holds every setting below ``key`` (``storage.*``), by what stands for the asterisk.

    Those of its keys that sound secret must be references in configuration; the whole field is masked in every ``repr``.
    """
    return field(default_factory=dict, repr=False, metadata={"key": key, "doc": doc, "secret": True, "required": False})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every source takes: ``root``, ``storage.*`` and how much it may be burdened with."""

    root: str | None = option("root", doc="Storage root for tables and namespaces without a location of their own. Default: the current working directory.")  # fmt: skip  # noqa: E501
    storage: Mapping[str, str] = family("storage.*", doc="Storage options for opening tables, e.g. storage.region=us-west-2.")
    requests_per_second: float | None = option("limit.requests-per-second", doc="Requests a second at most, of each process. Default: no limit.", parse=number)  # fmt: skip  # noqa: E501
    max_requests: int | None = option("limit.concurrent-requests", doc="Requests at once at most, of each process. Default: no limit.", parse=positive)  # fmt: skip  # noqa: E501

    @property
    def limits(self) -> Limits:
        return Limits(requests_per_second=self.requests_per_second, concurrency=self.max_requests)

    @property
    def drops_confirmed(self) -> bool:
        """Whether namespaces are dropped unasked where the catalog drops them with all that is in them."""
        return False

    @classmethod
    def from_properties(cls, impl: str, properties: Mapping[str, str], *, where: str = "") -> Self:
        """Settings from ``key = value`` pairs, bare or prefixed with ``<impl>.``; secret references are resolved here.

        Raises ConfigError that names the key and the allowed ones.
        """
        known = {f.metadata["key"]: f for f in fields(cls) if not f.metadata["key"].endswith(".*")}
        families = {f.metadata["key"].removesuffix("*"): f for f in fields(cls) if f.metadata["key"].endswith(".*")}
        values: dict[str, Any] = {f.name: {} for f in families.values()}
        for full, raw in properties.items():
            key = full.removeprefix(f"{impl}.")
            text = resolve(str(raw), where=f"{where}{full}")
            family = next((prefix for prefix in families if key.startswith(prefix) and key != prefix), None)
            if key in known:
                values[known[key].name] = _parsed(known[key], f"{where}{full}", text)
            elif family:
                if is_secret_key(key):
                    text = _read(f"{where}{full}", text)
                values[families[family].name][key.removeprefix(family)] = text
            else:
                allowed = ", ".join([*sorted(known), *(f"{prefix}*" for prefix in families)])
                raise ConfigError(f"{where}{full}: unknown key", hint=f"allowed: {allowed}")
        missing = [key for key, f in known.items() if f.metadata["required"] and f.name not in values]
        if missing:
            raise ConfigError(f"{where}{impl}.{missing[0]}: required, and not set")
        return cls(**values)

    @classmethod
    def check_references(cls, impl: str, properties: Mapping[str, str], *, where: str) -> None:
        """Raises ConfigError where a secret stands in the configuration in clear."""
        secrets = secret_keys(cls)
        for full, raw in properties.items():
            key = full.removeprefix(f"{impl}.")
            hidden = key in secrets or (f"{key.split('.')[0]}.*" in secrets and is_secret_key(key))
            if hidden and not is_reference(str(raw)):
                raise ConfigError(f"{where}{full}: a secret must not stand in the file", hint="write ${VARIABLE} or file:PATH")


def secret_keys(settings_type: type[Settings]) -> set[str]:
    """The keys, without the impl's prefix, whose values must be references."""
    return {f.metadata["key"] for f in fields(settings_type) if f.metadata["secret"]}


def _parsed(option_field: dataclasses.Field[Any], where: str, text: str) -> Any:
    try:
        found = option_field.metadata["parse"](text)
        return remember(found) if option_field.metadata["secret"] and isinstance(found, str) else found
    except ValueError as error:
        shown = "" if option_field.metadata["secret"] else f" {text!r} is not allowed"
        raise ConfigError(f"{where}:{shown}", hint=f"allowed: {error}") from None


def _read(where: str, text: str) -> str:
    try:
        return secret(text)
    except ValueError as error:
        raise ConfigError(f"{where}:", hint=f"allowed: {error}") from None


def masked(value: Any) -> Any:
    """JSON data without the texts whose names say that they are secrets."""
    if isinstance(value, dict):
        return {key: MASKED if is_secret_key(str(key)) and isinstance(v, str) else masked(v) for key, v in value.items()}
    return [masked(item) for item in value] if isinstance(value, list | tuple) else value


def is_endpoint_key(key: str) -> bool:
    """Whether a property would send requests, and so credentials, somewhere else."""
    lowered = key.lower().replace("-", "_").replace(".", "_")
    return any(
        word in lowered
        for word in ("endpoint", "proxy", "allow_http", "virtual_hosted", "metadata_url", "authority", "base_url", "emulator")
    )


def is_reference(text: str) -> bool:
    return text.startswith("file:") or _REFERENCE.fullmatch(text) is not None


def resolve(text: str, *, where: str) -> str:
    """The value of a setting: ``${VAR}`` from the environment. Raises ConfigError that names the missing variable."""

    def variable(match: re.Match[str]) -> str:
        value = os.environ.get(match["name"])
        if value is None:
            raise ConfigError(f"{where}: the environment variable {match['name']} is not set")
        return value

    return _REFERENCE.sub(variable, text)


def secret(text: str) -> str:
    """``parse`` of a secret option: the file's content for ``file:PATH`` (without its last line break), else the text itself."""
    if not text.startswith("file:"):
        return remember(text)
    path = FilePath(text.removeprefix("file:"))
    try:
        return remember(path.read_text(encoding="utf-8").rstrip("\r\n"))
    except OSError as error:
        raise ValueError(f"a readable file ({error.strerror}: {path})") from None
