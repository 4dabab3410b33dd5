"""Import of the models of ``lance_namespace`` without the generated client beside them.

The client checks the arguments of some 500 methods with pydantic, whose preparation takes three quarters of a second. The federator
serves and sends the same requests by itself.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from typing import Any

_PACKAGE = "lance_namespace_urllib3_client"


def defer_lance_client() -> None:
    """Let the package of the models import its client only when one of the package's attributes is first used.

    Without effect if the package was imported before. Call it before the first import of ``lance_namespace``.
    """
    if _PACKAGE in sys.modules:
        return
    spec = find_spec(_PACKAGE)
    assert spec is not None
    assert spec.loader is not None
    loader, package, lock = spec.loader, module_from_spec(spec), RLock()

    def get_attribute(name: str) -> Any:
        with lock:
            # The first caller executes the package, which replaces this function by the package's own attributes.
            if package.__dict__.pop("__getattr__", None) is not None:
                loader.exec_module(package)
        if name in package.__dict__:
            return package.__dict__[name]
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}", name=name)

    package.__getattr__ = get_attribute  # type: ignore[method-assign]  # how a module loads attributes late (PEP 562)
    sys.modules[_PACKAGE] = package
