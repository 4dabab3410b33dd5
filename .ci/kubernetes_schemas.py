"""JSON schemas for kubeconform, strict, from Kubernetes' OpenAPI document and a custom resource definition.

``python .ci/kubernetes_schemas.py SWAGGER.json CRD.yaml DIRECTORY`` writes one file per kind: ``deployment-apps-v1.json``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

#: the kinds that the chart may have
_KINDS = frozenset({
    "ConfigMap", "Deployment", "Job", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget", "Role", "RoleBinding", "Service",
    "ServiceAccount",
})  # fmt: skip
_INT_OR_STRING = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
_QUANTITY = {"oneOf": [{"type": "string"}, {"type": "number"}]}


def make_strict(schema: Any) -> Any:
    """Return the schema without unknown fields, and with the types that Kubernetes spells as formats."""
    if isinstance(schema, list):
        return [make_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return _INT_OR_STRING
    strict = {key: make_strict(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        strict.setdefault("additionalProperties", False)
    return strict


def list_references(schema: Any) -> set[str]:
    """Return the names of the definitions that a schema refers to."""
    return set(re.findall(r'"#/definitions/([^"]+)"', json.dumps(schema)))


def select_definitions(definitions: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a definition and all that it refers to, strict."""
    selected: dict[str, Any] = {}
    waiting = {name}
    while waiting:
        current = waiting.pop()
        quantity = current.endswith(".api.resource.Quantity")
        selected[current] = _QUANTITY if quantity else make_strict(definitions[current])
        waiting |= list_references(selected[current]) - selected.keys()
    return selected


def file_name(kind: str, group: str, version: str) -> str:
    """Return kubeconform's name for a kind: {{.ResourceKind}}{{.KindSuffix}}.json."""
    return "-".join([kind.lower(), *([group.split(".")[0]] if group else []), version]) + ".json"


def main(swagger: Path, crd: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    definitions = json.loads(swagger.read_text(encoding="utf-8"))["definitions"]
    for name, definition in definitions.items():
        for known in definition.get("x-kubernetes-group-version-kind", []):
            if known["kind"] in _KINDS:
                schema = {"$ref": f"#/definitions/{name}", "definitions": select_definitions(definitions, name)}
                (directory / file_name(known["kind"], known["group"], known["version"])).write_text(
                    json.dumps(schema), encoding="utf-8"
                )
    spec = yaml.safe_load(crd.read_text(encoding="utf-8"))["spec"]
    for version in spec["versions"]:
        schema = make_strict(version["schema"]["openAPIV3Schema"])
        # The definition leaves the metadata to Kubernetes.
        schema["properties"]["metadata"] = {"type": "object"}
        name = file_name(spec["names"]["kind"], spec["group"], version["name"])
        (directory / name).write_text(json.dumps(schema), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
