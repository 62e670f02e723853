"""What every page is put together from: its sources, its policy and its data."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files

PACKAGE = "attnviz.renderers.webpage"


def source(*names: str) -> str:
    """The text of these files of the package, one after the other."""
    parts = (files(PACKAGE).joinpath(name).read_text(encoding="utf-8") for name in names)
    return "".join(parts)


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with each `{{name}}` replaced.

    All places are filled in one go, so that a text that holds `{{name}}` is never taken for one.
    """
    return re.sub(r"{{(\w+)}}", lambda place: values[place[1]], template)


def policy(style: str, script: str, *, loads: bool = False) -> str:
    """A Content-Security-Policy that lets just this style and this script be, and no connection.

    Args:
        style: the one style of the page.
        script: the one script of the page.
        loads: whether the script may load others; `beside` says from where.
    """
    trusted = f"{_hashed(script)} 'strict-dynamic'" if loads else _hashed(script)
    return (
        f"default-src 'none'; script-src {trusted}; "
        f"style-src {_hashed(style)}; img-src data: blob:; connect-src 'none'; "
        "base-uri 'none'; form-action 'none'"
    )


def beside(script: str) -> str:
    """A second policy, which holds beside the first: scripts come from where the page lies.

    The first one has to say 'strict-dynamic', as a page that was opened from disk has no origin
    that 'self' stands for in every browser, and this word makes a browser ignore places.
    """
    return f"script-src {_hashed(script)} 'self' file:"


def _hashed(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def safe_json(value: object) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or a line."""
    written = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written
