"""A Lance namespace in a process of its own: requests and responses are lines of JSON. Runs in a client's environment, alone.

The first line has ``impl`` and ``properties`` of ``lance_namespace.connect``; each further line has ``call`` and ``request``.
"""

import json
import sys

import lance_namespace

#: these modules register their impls when they are imported
MODULES = dict.fromkeys(("glue", "hive2", "hive3", "iceberg"), "lance_namespace_impls")


def main() -> None:
    start = json.loads(sys.stdin.readline())
    if start["impl"] in MODULES:
        __import__(MODULES[start["impl"]])
    namespace = lance_namespace.connect(start["impl"], start["properties"])
    for line in sys.stdin:
        order = json.loads(line)
        request_type = getattr(lance_namespace, "".join(word.title() for word in order["call"].split("_")) + "Request")
        try:
            response = getattr(namespace, order["call"])(request_type(**order["request"]))
            outcome = {"response": json.loads(response.model_dump_json()) if response is not None else None}
        except Exception as error:  # noqa: BLE001 - every failure of the client is an outcome
            outcome = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
