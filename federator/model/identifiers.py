"""Paths of namespaces and tables, and the one text form they have everywhere.

A ``Path`` is the tuple of names from a source's root, the root itself being ``()``. Its text form joins the names with ``$``;
a ``$`` or ``%`` inside a name is percent-encoded, so that every path has one text and every text one path.
"""

from __future__ import annotations

from collections.abc import Iterator

Path = tuple[str, ...]

DELIMITER = "$"
ROOT: Path = ()


def path_key(path: Path) -> str:
    """The text form of a path: ``("sales", "a$b")`` → ``sales$a%24b``; the root is the empty string."""
    text = DELIMITER.join(path)
    # Nearly every path has nothing to encode, and this is asked for more often than anything else.
    if "%" not in text and text.count(DELIMITER) == len(path) - 1:
        return text
    return DELIMITER.join(name.replace("%", "%25").replace(DELIMITER, "%24") for name in path)


def parse_key(key: str) -> Path:
    """The path of a text form. A ``%`` that encodes nothing of ours stands for itself, as people type it."""
    if not key:
        return ROOT
    return tuple(name.replace("%24", DELIMITER).replace("%25", "%") for name in key.split(DELIMITER))


def parent(path: Path) -> Path:
    """The namespace that holds ``path``; the root is its own parent."""
    return path[:-1]


def ancestors(path: Path) -> Iterator[Path]:
    """The namespaces above ``path``, nearest first, ending with the root."""
    for depth in range(len(path) - 1, -1, -1):
        yield path[:depth]
