"""The facade class of a connector module, created at its first use.

Importing ``lance_namespace`` takes 0.7 s, which a crawl or a command that lists sources should not spend.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from federator.connector.port import Connector


def lazy_facade_class(module: str, connector: Connector[Any], name: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a connector module that provides a class ``name`` for ``lance_namespace.connect``.

    ``__getattr__ = lazy_facade_class(__name__, CONNECTOR, "Hive3Namespace")``
    """

    def get_attribute(requested: str) -> Any:
        if requested != name:
            raise AttributeError(f"module {module!r} has no attribute {requested!r}")
        from federator.lance.facade import facade_class

        created = facade_class(connector, name)
        created.__module__ = module
        # Stored in the module, so that there is only one class and its instances can be pickled.
        setattr(sys.modules[module], name, created)
        return created

    return get_attribute
