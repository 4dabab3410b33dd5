"""The page ``/docs``: the OpenAPI document as plain HTML, without scripts and external resources."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; background: #fff }
h2 { font-size: 1.05rem; margin: 2rem 0 .25rem; border-top: 1px solid #d0d7de; padding-top: 1rem }
code, pre { font: 14px/1.45 ui-monospace, monospace } pre { background: #f6f8fa; padding: .75rem; overflow: auto }
table { border-collapse: collapse } td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } pre { background: #161b22 } a { color: #6cb6ff } }
"""
#: digest of the page's inline style for the content security policy, which allows no other inline code
STYLE_DIGEST = f"sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}"


def render_docs(document: Mapping[str, Any]) -> str:
    """Render an OpenAPI document as an HTML page."""
    info = document["info"]
    schemas = document["components"]["schemas"]
    title = f"{info['title']} API {info['version']}"
    body = "".join(
        _render_operation(method, path, operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1><p>{escape(info['description'])}</p>"
        f'<p><a href="/ui/">The page</a> · <a href="/openapi.json">The OpenAPI document</a></p>{body}</main></body></html>'
    )


def add_examples(document: Mapping[str, Any]) -> None:
    """Add an example to each JSON response of the document. It is built from the examples and types in the schema."""
    schemas = document["components"]["schemas"]
    for operation in (operation for methods in document["paths"].values() for operation in methods.values()):
        for status, response in operation["responses"].items():
            content = response.get("content", {}).get("application/json")
            if status.startswith("2") and content and content.get("schema") and "example" not in content:
                content["example"] = _example(content["schema"], schemas, ())


def _render_operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(p['name'])}</code></td><td>{p['in']}{', required' if p.get('required') else ''}</td>"
        f"<td>{escape(p.get('description', ''))}</td></tr>"
        for p in operation.get("parameters", [])
    )
    table = f"<table><tr><th>Parameter</th><th>In</th><th>Description</th></tr>{rows}</table>" if rows else ""
    parts = [f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation.get('description', ''))}</p>", table]
    request_example = _example_of(operation.get("requestBody", {}), schemas)
    parts += [f"<p>Request body:</p>{_render_json(request_example)}"] if request_example is not None else []
    for status, response in operation["responses"].items():
        example = _example_of(response, schemas) if status.startswith("2") else None
        parts.append(f"<p><code>{status}</code> {escape(response['description'])}</p>")
        parts += [_render_json(example)] if example is not None else []
    return "".join(parts)


def _render_json(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _example_of(holder: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    schema = holder.get("content", {}).get("application/json", {}).get("schema")
    return _example(schema, schemas, ()) if schema else None


def _example(schema: Mapping[str, Any], schemas: Mapping[str, Any], parent_names: tuple[str, ...]) -> Any:
    """Return the schema's own example, else one built from its parts."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return None if name in parent_names else _example(schemas[name], schemas, (*parent_names, name))
    for example in _explicit_examples(schema):
        return example
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], schemas, parent_names)
    if schema.get("type") == "object":
        return {name: _example(part, schemas, parent_names) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        item = _example(schema["items"], schemas, parent_names)
        return [] if item is None else [item]
    if schema.get("format") == "date-time":
        return "2026-01-31T12:00:00Z"
    return {"string": "…", "integer": 1, "boolean": False}.get(schema.get("type", ""))


def _explicit_examples(schema: Mapping[str, Any]) -> Iterator[Any]:
    if "example" in schema:
        yield schema["example"]
    yield from schema.get("examples", [])[:1]
    if "const" in schema:
        yield schema["const"]
    yield from schema.get("enum", [])[:1]
