"""One HTML file from its parts. It loads nothing from elsewhere, and no name in it is ever code."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

from ...errors import CoadjointError
from .bundle import asset, bundle

ATTRIBUTES = "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def html(
    model: dict[str, Any],
    programs: str,
    *,
    saved: str = "",
    equations: str = "",
    entry: str = "page",
    wasm: bool = False,
    connect: str = "",
) -> str:
    """The page as text. `saved`: the robot's own JSON; `equations`: MathML; `connect`: what the page may talk to, by default nothing.

    `wasm`: the programs are a promise of functions and contain WebAssembly, which the page then may compile.
    """
    start = f"{programs}.then(modules.{entry}.start);" if wasm else f"modules.{entry}.start({programs});"
    script = f"{bundle(entry)}\n{start}\n"
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the script of a page must not contain the end of its element.")
    style = asset("page.css")
    allowed = [_hash(script), *(["'wasm-unsafe-eval'"] if wasm else [])]
    policy = f"{ATTRIBUTES}; script-src {' '.join(allowed)}; style-src {_hash(style)}" + (
        f"; connect-src {connect}" if connect else ""
    )
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
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    except ValueError:
        raise CoadjointError(
            "the page cannot show numbers that are not finite, as those of lengths or masses of 1e200 are."
        ) from None
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
