"""Check identifiers against the banned words of .ci/words.md, and modules against the size limit.

Prints one line per finding and exits 1 if there is any. ``names_allowed.txt`` beside this file lists the spellings that are fixed,
each with its reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOTS = ("federator", "connectors", "migrations", "tests", "examples")
MAX_LINES = 450
#: never, also as a part of an identifier
PARTS = frozenset(
    [
        "told",
        "said",
        "unsaid",
        "doer",
        "deed",
        "fate",
        "brake",
        "halves",
        "alien",
        "courier",
        "bury",
        "anew",
        "twins",
        "whoever",
        "ours",
        "place",
        "places",
        "face",
        "faces",
    ]
)
#: not as the whole name of a function, class, parameter, field or module
WHOLE = frozenset(
    [
        "found",
        "seen",
        "made",
        "given",
        "wanted",
        "kept",
        "asked",
        "look",
        "looks",
        "one",
        "some",
        "each",
        "others",
        "here",
        "there",
        "why",
        "because",
        "began",
        "word",
        "turn",
        "then",
    ]
)
_ALLOWED = Path(__file__).with_name("names_allowed.txt")


def main() -> int:
    allowed = dict(_read_allowed())
    used, findings = set[str](), list[str]()
    for path in sorted(path for root in ROOTS for path in Path(root).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if (lines := text.count("\n")) > MAX_LINES:
            findings.append(f"{path}: {lines} lines, more than {MAX_LINES}: divide it, by what its parts own")
        for line, name, declares in _identifiers(path, ast.parse(text)):
            if not (banned := _banned(name, declares=declares)):
                continue
            key = next((key for key in (f"{path.as_posix()}:{name}", name) if key in allowed), None)
            if key is None:
                findings.append(
                    f"{path}:{line}: {name}: the glossary bans {banned!r}; use the term of docs/reference/glossary.md. "
                    f"A spelling that is fixed (a key, a column, a code) goes into .ci/{_ALLOWED.name}, with its reason"
                )
            else:
                used.add(key)
    findings += [f".ci/{_ALLOWED.name}: {key} does not occur any more: remove its line" for key in sorted(set(allowed) - used)]
    sys.stdout.writelines(f"{finding}\n" for finding in findings)
    return 1 if findings else 0


def _banned(name: str, *, declares: bool) -> str | None:
    parts = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    if declares and name.strip("_").lower() in WHOLE:
        return name
    return next((part for part in parts if part in PARTS), None)


def _identifiers(path: Path, tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Line, name, and whether it is the name of a function, class, parameter, field or module."""
    yield 1, path.parent.name if path.stem == "__init__" else path.stem, True
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name, True
            if isinstance(node, ast.ClassDef):
                fields = (item.target for item in node.body if isinstance(item, ast.AnnAssign))
                yield from ((field.lineno, field.id, True) for field in fields if isinstance(field, ast.Name))
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id, False


def _read_allowed() -> Iterator[tuple[str, str]]:
    for line in _ALLOWED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            key, _, reason = line.partition(" ")
            yield key, reason.strip()


if __name__ == "__main__":
    sys.exit(main())
