"""The process from which Spark forks its Python workers, with the imports that every worker needs.

Without it, each worker of a cold session imports Arrow and the pipeline on its own, at the same time, on few cores. Modules that
start threads (pylance) must not be imported here, and no connection may be opened.
"""

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def _use_installed_pyspark() -> None:
    """Import PySpark from its installation and not from its archive, if both are in one directory.

    Spark puts the archive first, and modules of an archive have no byte code: each process would compile them.
    """
    for entry in list(sys.path):
        path = Path(entry)
        if path.suffix != ".zip" or path.parts[-3:-1] != ("python", "lib"):
            continue
        packages = path.parents[3]
        if (packages / path.name.partition("-")[0].removesuffix(".zip") / "__init__.py").is_file():
            sys.path.remove(entry)
            if str(packages) not in sys.path:
                sys.path.append(str(packages))


def freezing_after_imports() -> Callable[[str, Mapping[str, Any]], None]:
    """Return a callback for ``gc.callbacks`` that freezes all objects after a full collection if modules were imported before it.

    PySpark makes a full collection after each task. Without this, each of them walks the modules that earlier tasks imported: 40 ms.
    """
    modules = 0

    def freeze(phase: str, info: Mapping[str, Any]) -> None:
        nonlocal modules
        if phase == "stop" and info["generation"] == 2 and len(sys.modules) != modules:
            modules = len(sys.modules)
            gc.freeze()

    return freeze


if __name__ == "__main__":
    # Imports create many objects and no garbage.
    gc.disable()
    _use_installed_pyspark()
    from federator.runtime.arrow_import import import_arrow_without_pandas

    import_arrow_without_pandas()

    from pyspark.daemon import manager

    from federator.connector import ConfigError
    from federator.registry import PRELOAD, get_connector

    for module in ("federator.pipeline.candidates", "federator.pipeline.crawl", "federator.pipeline.verify", "pyspark.worker"):
        importlib.import_module(module)
    for impl in filter(None, os.environ.get(PRELOAD, "").split(",")):
        # A missing library is reported when the source is opened.
        with contextlib.suppress(ConfigError, ModuleNotFoundError):
            get_connector(impl).preload_imports()
    # Workers share the memory of these objects with the daemon, as long as no collection writes to them.
    gc.callbacks.append(freezing_after_imports())
    gc.collect()
    # Decoding a response creates many objects and no garbage. With Python's own limit, it takes twice the time.
    gc.set_threshold(100_000)
    gc.enable()
    manager()
