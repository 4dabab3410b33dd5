"""The namespace face of a connector module, made when it is asked for.

Importing ``lance_namespace`` costs 0.7 s, which a crawl or a command that lists sources should not pay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from federator.connector.port import Connector


def lazy_namespace(module: str, connector: Connector[Any], name: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a connector module, which then has a class ``name`` for ``lance_namespace.connect``.

    ``__getattr__ = lazy_namespace(__name__, CONNECTOR, "Hive3Namespace")``
    """

    def attribute(wanted: str) -> Any:
        if wanted != name:
            raise AttributeError(f"module {module!r} has no attribute {wanted!r}")
        from federator.connector.namespace import namespace_class

        made = namespace_class(connector, name)
        made.__module__ = module
        # Kept, so that the class is one object and instances of it can be pickled.
        setattr(sys.modules[module], name, made)
        return made

    return attribute
