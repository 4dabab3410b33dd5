"""The text of a first configuration file: sources with the commented options that such a source often needs."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

_HEAD = """\
# Sources and mirrors of the federator. `federator validate` checks this file,
# `federator doctor` the connections.
# Do not write secrets into it: use ${{VARIABLE}} or file:PATH.

[instance]
# Marks the objects that this deployment owns in catalogs. Never change it.
id = {instance}

[index]
# A file in the directory of this one. In production:
# "postgresql+psycopg://federator:${{INDEX_PASSWORD}}@host/federator"
url = "sqlite:///federator.db"
"""

_TAIL = """\
# A mirror declares the tables of one source in another. `federator plan` shows
# the changes.
# [mirrors.first]
# from = "{name}"
# to = "another source"
# include = ["*"]
# schedule = "@every 15m"
"""


#: keys without the prefix of the impl, and values as TOML
SettingPairs = tuple[tuple[str, str], ...]
#: a comment, and the settings that it introduces
SettingGroup = tuple[str, SettingPairs]


@dataclass(frozen=True, slots=True)
class SourceTemplate:
    """What ``init`` writes and asks for one connector.

    ``name`` is the first source's. ``init`` asks for the ``address``, with ``example`` as the default; ``key`` is its setting.
    ``required`` are other required settings, with the values of a fresh server. ``optional`` ones are written as comments.
    """

    name: str
    description: str
    address: str
    example: str
    key: str
    required: SettingPairs = ()
    optional: tuple[SettingGroup, ...] = ()


_KERBEROS: SettingGroup = (
    "A metastore with Kerberos.",
    (
        ("client.auth", '"kerberos"'),
        ("client.kerberos.principal", '"hive/_HOST@EXAMPLE.COM"'),
        ("client.kerberos.keytab", '"/etc/security/federator.keytab"'),
    ),
)
_HIVE_TLS: SettingGroup = ("TLS.", (("client.tls.enabled", "true"), ("client.tls.ca-file", '"/etc/ssl/metastore.pem"')))
_ROOT: SettingGroup = ("Where tables are declared without a location of their own.", (("root", '"s3://lake"'),))

#: connector → template, in the order of the questions
TEMPLATES = {
    "dir": SourceTemplate(
        "files", "A directory of Lance tables: a path, or s3://bucket/prefix.", "path, relative to the file, or URI", "tables", "path"
    ),
    "hive3": SourceTemplate(
        "hive", "A Hive Metastore 3 or 4.", "URI", "thrift://localhost:9083", "uri", (), (_KERBEROS, _HIVE_TLS, _ROOT)
    ),
    "hive2": SourceTemplate(
        "hive2", "A Hive Metastore 2.", "URI", "thrift://localhost:9083", "uri", (), (_KERBEROS, _HIVE_TLS, _ROOT)
    ),
    "glue": SourceTemplate(
        "aws", "AWS Glue, with the credentials of the environment.", "region", "us-east-1", "region", (),
        (
            (
                "A role of another account.",
                (
                    ("assume_role_arn", '"arn:aws:iam::123456789012:role/federator"'),
                    ("assume_role_external_id", '"${GLUE_EXTERNAL_ID}"'),
                ),
            ),
            (
                "A key instead of the credentials of the environment.",
                (("access_key_id", '"${GLUE_KEY_ID}"'), ("secret_access_key", '"${GLUE_SECRET}"')),
            ),
            _ROOT,
        ),
    ),
    "unity": SourceTemplate(
        "unity", "One catalog of a Unity server.", "URL", "http://localhost:8080", "endpoint", (("catalog", '"unity"'),),
        (
            ("The server's token.", (("auth_token", '"${UNITY_TOKEN}"'),)),
            (
                "Databricks: a service principal instead.",
                (("client_id", '"${UNITY_CLIENT_ID}"'), ("client_secret", '"${UNITY_CLIENT_SECRET}"')),
            ),
            _ROOT,
        ),
    ),
    "polaris": SourceTemplate(
        "polaris", "Apache Polaris.", "URL", "http://localhost:8181", "endpoint", (),
        (
            ("Its login.", (("client_id", '"${POLARIS_CLIENT_ID}"'), ("client_secret", '"${POLARIS_CLIENT_SECRET}"'))),
            ("The realm, if it is not the server's default.", (("realm", '"POLARIS"'),)),
            ("The catalogs, if the login may not list them.", (("catalogs", '"lake,staging"'),)),
            _ROOT,
        ),
    ),
    "iceberg": SourceTemplate(
        "iceberg", "An Iceberg REST catalog. A crawl needs its warehouses.", "URL, without /v1", "http://localhost:8181", "endpoint",
        (("warehouses", '"warehouse"'),),
        (
            (
                "Its login: client_id:client_secret. Some servers need a scope.",
                (("credential", '"${ICEBERG_CREDENTIAL}"'), ("scope", '"PRINCIPAL_ROLE:ALL"')),
            ),
            ("A token instead.", (("auth_token", '"${ICEBERG_TOKEN}"'),)),
            ("AWS: signed requests instead.", (("sigv4", "true"), ("signing_region", '"us-west-2"'))),
            _ROOT,
        ),
    ),
    "rest": SourceTemplate(
        "lance", "A Lance REST server.", "URL, without /v1", "http://localhost:2333", "uri", (),
        (
            ("The server's token.", (("auth_token", '"${LANCE_TOKEN}"'),)),
            ("LanceDB: a key and a database.", (("api_key", '"${LANCEDB_KEY}"'), ("header.x-lancedb-database", '"db"'))),
            ("Gravitino: a catalog and a schema are above each table.", (("depth", "2"),)),
            _ROOT,
        ),
    ),
}  # fmt: skip

# How tables are opened, by the schemes of their locations: catalogs give no credentials.
_STORAGE: tuple[tuple[tuple[str, ...], SettingGroup], ...] = (
    (
        ("s3", "s3+ddb", "s3a", "s3n"),
        (
            "Tables are opened with these options. Amazon S3, or a server like it.",
            (
                ("storage.region", '"us-west-2"'),
                ("storage.access_key_id", '"${S3_KEY_ID}"'),
                ("storage.secret_access_key", '"${S3_SECRET}"'),
                ("storage.endpoint", '"https://s3.example.com"'),
            ),
        ),
    ),
    (("gs", "gcs"), ("Google Cloud Storage.", (("storage.google_service_account_key", '"file:/etc/federator/gcs.json"'),))),
    (
        ("az", "azure", "abfs", "abfss", "wasb", "wasbs", "https"),
        (
            "Azure.",
            (
                ("storage.account_name", '"lake"'),
                ("storage.account_key", '"${AZURE_KEY}"'),
            ),
        ),
    ),
)
_AMBIENT: SettingGroup = ("Or with the credentials of this machine.", (("ambient_credentials", "true"),))  # fmt: skip


def render_config(addresses_by_impl: dict[str, list[str]]) -> str:
    """Return the text of a configuration with one source for each address."""
    parts = [_HEAD.format(instance=json.dumps(f"dev-{secrets.token_hex(3)}"))]
    names: list[str] = []
    for impl, addresses in addresses_by_impl.items():
        template = TEMPLATES[impl]
        for number, address in enumerate(addresses, 1):
            names.append(template.name if number == 1 else f"{template.name}_{number}")
            parts.append(_render_source(names[-1], impl, template, address))
    parts.append(_TAIL.format(name=names[0]))
    return "\n".join(parts)


def _render_source(name: str, impl: str, template: SourceTemplate, address: str) -> str:
    lines = [f"# {template.description}", f"[sources.{name}]", f'impl = "{impl}"']
    lines.append(f"{impl}.{template.key} = {json.dumps(address, ensure_ascii=False)}")
    lines += [f"{impl}.{key} = {value}" for key, value in template.required]
    for comment, settings in (*template.optional, *_storage_groups(impl, address)):
        lines.append(f"# {comment}")
        lines += [f"# {impl}.{key} = {value}" for key, value in settings]
    lines += ["# Crawls while `federator serve` runs.", '# schedule = "*/15 * * * *"']
    return "\n".join(lines) + "\n"


def _storage_groups(impl: str, address: str) -> list[SettingGroup]:
    """Return how the tables of a source can be opened: those of Glue are on S3. A directory of this machine needs no credentials."""
    scheme = {"dir": address.partition("://")[0] if "://" in address else "file", "glue": "s3"}.get(impl)
    groups = [group for schemes, group in _STORAGE if scheme is None or scheme in schemes]
    return [*groups, _AMBIENT] if groups else []
