"""The documentation page: operations, problems and models on one page, without network or script."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

from evenhand_api.rest.problems import Kind

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
body { color: #1d2530; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #cfd6de; }
code, pre { font: 13px/1.45 ui-monospace, monospace; background: #f2f4f7; border-radius: 3px; }
code { padding: 0 .25em; } pre { padding: .8em; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; }
th, td { border-bottom: 1px solid #e3e8ee; }
nav { columns: 3; } .need { font-weight: 600; } .quiet { color: #5c6773; }
@media (prefers-color-scheme: dark) {
  body { background: #14181d; color: #dbe1e8; } code, pre { background: #20262d; } a { color: #8ab8ff; }
  th, td, h2 { border-color: #333c46; } .quiet { color: #93a0ad; }
}
"""


def docs_page(document: dict[str, Any]) -> str:
    """Render the OpenAPI document as HTML."""
    info, models = document["info"], document["components"]["schemas"]
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<title>{escape(info['title'])} {escape(info['version'])}</title>",
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{escape(info['title'])} <span class=quiet>{escape(info['version'])}</span></h1>",
        f"<p>{escape(info['summary'])} {escape(info['description'])}</p>",
        '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p><h2>Operations</h2>',
        *(
            _operation(method, path, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method != "parameters"
        ),
        "<h2>Problems</h2><p>Every error is <code>application/problem+json</code> (RFC 9457); its "
        "<code>type</code> leads here.</p>",
        _table(("status", "type", "meaning"), (_problem_row(kind) for kind in Kind)),
        "<h2>Models</h2><nav>",
        *(f"<div>{_link(name)}</div>" for name in sorted(models)),
        "</nav>",
        *(_model(name, models[name]) for name in sorted(models)),
        "</body></html>",
    ]
    return "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"<h3 id=operation-{operation['operationId']}><code>{method.upper()} {escape(path)}</code></h3>"]
    parts.append(f"<p><b>{escape(operation['summary'])}.</b> {escape(operation['description'])}</p>")
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<p>Body: {_kind(content['schema'])} as <code>{escape(media)}</code>, for example</p>")
        examples = content.get("examples", {}).values()
        parts += [f"<pre>{escape(json.dumps(example['value'], indent=1))}</pre>" for example in examples]
    rows = (
        (
            status,
            ", ".join(_kind(c["schema"]) for c in reply["content"].values()),
            escape(reply["description"]),
        )
        for status, reply in operation["responses"].items()
    )
    return "\n".join([*parts, _table(("status", "answer", "meaning"), rows)])


def _problem_row(kind: Kind) -> tuple[str, str, str]:
    name = f"<code id=problem-{kind.slug}>{escape(kind.type)}</code>"
    return str(kind.status), name, f"<b>{escape(kind.title)}.</b> {escape(kind.meaning)}"


def _model(name: str, schema: dict[str, Any]) -> str:
    parts = [
        f"<h3 id=model-{escape(name)}>{escape(name)}</h3>",
        f"<p>{escape(schema.get('description', ''))}</p>",
    ]
    if "enum" in schema:
        parts.append("<p>" + ", ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"]) + "</p>")
    needed = set(schema.get("required", ()))
    rows = [
        (
            f"<code class={'need' if field in needed else 'may'}>{escape(field)}</code>",
            _kind(part),
            escape(part.get("description", "")) + _default(part),
        )
        for field, part in schema.get("properties", {}).items()
    ]
    if rows:
        parts.append(_table(("field (bold: required)", "type", "meaning"), rows))
    return "\n".join(parts)


def _default(part: dict[str, Any]) -> str:
    if part.get("default") in (None, [], {}):
        return ""
    return f" <span class=quiet>Default <code>{escape(json.dumps(part['default']))}</code>.</span>"


def _kind(schema: dict[str, Any]) -> str:
    """Say the type of a value in a few words."""
    if "$ref" in schema:
        return _link(schema["$ref"].rsplit("/", 1)[-1])
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"] if part.get("type") != "null")
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if kind == "object" and isinstance(values := schema.get("additionalProperties"), dict):
        return f"map to {_kind(values)}"
    if schema.get("format") == "date-time":
        return "instant"
    bounds = [
        f"{sign} {schema[key]:g}"
        for key, sign in (("minimum", "≥"), ("exclusiveMinimum", "&gt;"), ("maximum", "≤"))
        if key in schema
    ]
    return escape(kind) + (f" <span class=quiet>{', '.join(bounds)}</span>" if bounds else "")


def _link(name: str) -> str:
    return f'<a href="#model-{escape(name)}">{escape(name)}</a>'


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</table>"])
