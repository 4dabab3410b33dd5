"""Paths of namespaces and tables, and their text form, the path key.

A ``Path`` is the tuple of names below a source; the source itself is ``()``. The path key joins the names with ``$``. A ``$`` or ``%``
inside a name is percent-encoded, so each path has exactly one key.
"""

from __future__ import annotations

from collections.abc import Iterator

Path = tuple[str, ...]

DELIMITER = "$"
ROOT: Path = ()


def path_key(path: Path) -> str:
    """Return the text form of a path: ``("sales", "a$b")`` → ``sales$a%24b``. The root has the empty text."""
    text = DELIMITER.join(path)
    # A fast path: this function is called very often, and nearly no path needs encoding.
    if "%" not in text and text.count(DELIMITER) == len(path) - 1:
        return text
    return DELIMITER.join(name.replace("%", "%25").replace(DELIMITER, "%24") for name in path)


def parse_path_key(key: str) -> Path:
    """Return the path of a path key. A ``%`` that is not part of ``%24`` or ``%25`` stands for itself, as people type it."""
    if not key:
        return ROOT
    return tuple(name.replace("%24", DELIMITER).replace("%25", "%") for name in key.split(DELIMITER))


def object_id(source: str, key: str) -> str:
    """Return the object id of a path key below a source: ``("lake", "sales$orders")`` → ``lake$sales$orders``."""
    return path_key((source, *parse_path_key(key)))


def parent_path(path: Path) -> Path:
    """Return the namespace that contains ``path``. The root is its own parent."""
    return path[:-1]


def parent_key(key: str) -> str:
    """Return the path key of the namespace that contains the object with a path key."""
    return path_key(parent_path(parse_path_key(key)))


def iter_ancestors(path: Path) -> Iterator[Path]:
    """Yield the namespaces above ``path``, nearest first, ending with the root."""
    for depth in range(len(path) - 1, -1, -1):
        yield path[:depth]
