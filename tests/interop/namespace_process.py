"""A Lance namespace in a process of its own, by lines of JSON. Runs in a client's environment."""

import json
from collections.abc import Mapping
from typing import Any

import lance_namespace

from tests.interop.json_lines import Call, serve

#: these modules register their impls when they are imported
MODULES = dict.fromkeys(("glue", "hive2", "hive3", "iceberg", "polaris", "unity"), "lance_namespace_impls")


def open_client(impl: str, properties: dict[str, str]) -> Call:
    if impl in MODULES:
        __import__(MODULES[impl])
    namespace = lance_namespace.connect(impl, properties)

    def call(name: str, request: Mapping[str, Any]) -> Any:
        request_type = getattr(lance_namespace, "".join(word.title() for word in name.split("_")) + "Request")
        response = getattr(namespace, name)(request_type(**request))
        return json.loads(response.model_dump_json()) if response is not None else None

    return call


if __name__ == "__main__":
    serve(open_client)
