"""One HTML file from its parts. Nothing in it comes from elsewhere, and nothing in it that names are made of is ever code."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

from .bundle import asset, bundle

ATTRIBUTES = "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def html(
    model: dict[str, Any],
    programs: str,
    *,
    saved: str = "",
    equations: str = "",
    entry: str = "page",
    connect: str = "",
) -> str:
    """The page as text. `saved`: the robot's own JSON; `equations`: MathML; `connect`: what the page may talk to, by default nothing."""
    script = f"{bundle(entry)}\nmodules.{entry}.start({programs});\n"
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the script of a page must not contain the end of its element.")
    style = asset("page.css")
    policy = f"{ATTRIBUTES}; script-src {_hash(script)}; style-src {_hash(style)}" + (f"; connect-src {connect}" if connect else "")
    parts = {
        "title": escape(model["name"]),
        "policy": escape(policy),
        "style": style,
        "model": as_json(model),
        "saved": as_json(saved),
        "equations": equations,
        "script": script,
    }
    before, *rest = asset("page.html").split("{{")
    text = [before]
    for piece in rest:
        name, _, after = piece.partition("}}")
        text += [parts[name], after]
    return "".join(text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def as_json(value: Any) -> str:
    """JSON that cannot end or open an element, wherever it stands in a page."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
