"""The page ``/docs``: the OpenAPI document as plain HTML, without scripts and external resources."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; color: #1b1f24; background: #fff; overflow-wrap: anywhere }
nav { padding: 1rem; border-bottom: 1px solid #d0d7de; max-height: 40vh; overflow: auto }
nav h2 { font-size: .95rem; margin: 1rem 0 .25rem } nav ul { list-style: none; margin: 0; padding: 0; font-size: .9rem }
nav a { display: block; padding: .15rem 0; text-decoration: none }
main { max-width: 60rem; padding: 0 1rem 4rem; min-width: 0 }
main h2 { margin: 3rem 0 0 } article { border-top: 1px solid #d0d7de; margin-top: 1.5rem; padding-top: .5rem }
h3 { font-size: 1.05rem; margin: .5rem 0 } h3 span { font-weight: normal; margin-left: .5rem } summary { cursor: pointer }
code, pre { font: 14px/1.45 ui-monospace, monospace } pre { background: #f6f8fa; padding: .75rem; overflow: auto }
table { border-collapse: collapse } td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top } td p { margin: 0 }
a { color: #0550ae } a:focus-visible, summary:focus-visible { outline: 2px solid #0550ae }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 19rem 1fr }
  nav { position: sticky; top: 0; height: 100vh; max-height: none; box-sizing: border-box; border: 0; border-right: 1px solid #d0d7de }
  main { padding: 0 2rem 4rem }
}
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117 } pre { background: #161b22 } a { color: #6cb6ff } nav, article { border-color: #30363d }
}
"""
#: digest of the page's inline style for the content security policy, which allows no other inline code
STYLE_DIGEST = f"sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}"


def render_docs(document: Mapping[str, Any]) -> str:
    """Render an OpenAPI document as an HTML page: its groups (tags), with navigation, and descriptions as Markdown."""
    info = document["info"]
    schemas = document["components"]["schemas"]
    title = f"{info['title']} API {info['version']}"
    operations: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            operations.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    navigation = "".join(
        f"<h2>{escape(group)}</h2><ul>"
        + "".join(f'<li><a href="#{_anchor(item)}">{escape(item["summary"])}</a></li>' for _, _, item in members)
        + "</ul>"
        for group, members in operations.items()
    )
    body = "".join(
        f"<section><h2>{escape(group)}</h2>{''.join(_render_operation(*member, schemas) for member in members)}</section>"
        for group, members in operations.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f'<body><nav aria-label="Operations" tabindex="0">{navigation}</nav><main><h1>{escape(title)}</h1>'
        f'{_markdown(info["description"])}<p><a href="/ui/">The page</a> · <a href="/openapi.json">The OpenAPI document</a></p>'
        f"{body}</main></body></html>"
    )


def _anchor(operation: Mapping[str, Any]) -> str:
    return escape(operation["operationId"])


def _markdown(text: str) -> str:
    """Return Markdown as HTML. HTML in the text is shown as text."""
    # Imported here because only this page needs it.
    from markdown_it import MarkdownIt

    return str(MarkdownIt("js-default").render(text))


def add_examples(document: Mapping[str, Any]) -> None:
    """Add an example to each JSON response of the document. It is built from the examples and types in the schema."""
    schemas = document["components"]["schemas"]
    for operation in (operation for methods in document["paths"].values() for operation in methods.values()):
        for status, response in operation["responses"].items():
            content = response.get("content", {}).get("application/json")
            if status.startswith("2") and content and content.get("schema") and "example" not in content:
                content["example"] = _example(content["schema"], schemas, ())


def _render_operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    heading = f"<code>{method} {escape(path)}</code><span>{escape(operation['summary'])}</span>"
    parts = [f'<article id="{_anchor(operation)}"><h3>{heading}</h3>{_markdown(operation.get("description", ""))}']
    if parameters := operation.get("parameters"):
        rows = "".join(
            f"<tr><td><code>{escape(p['name'])}</code></td><td>{p['in']}{', required' if p.get('required') else ''}</td>"
            f"<td>{_markdown(p.get('description', ''))}</td></tr>"
            for p in parameters
        )
        parts.append(f"<table><tr><th>Parameter</th><th>In</th><th>Description</th></tr>{rows}</table>")
    request_example = _example_of(operation.get("requestBody", {}), schemas)
    if request_example is not None:
        parts.append(_render_example("Request body", request_example))
    failures = ""
    for status, response in operation["responses"].items():
        example = _example_of(response, schemas) if status.startswith("2") else None
        if example is not None:
            parts.append(_render_example(f"Response {status}", example))
        else:
            failures += f"<tr><td><code>{status}</code></td><td>{_markdown(response['description'])}</td></tr>"
    parts += [f"<details><summary>Other responses</summary><table>{failures}</table></details>"] if failures else []
    return "".join([*parts, "</article>"])


def _render_example(title: str, value: Any) -> str:
    return f"<details><summary>{title}</summary>{_render_json(value)}</details>"


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
