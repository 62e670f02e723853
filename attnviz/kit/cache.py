"""Measurements of a model that are kept in the user's cache."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.errors import OutputError
from attnviz.kit.write import make_folder, write_bytes
from attnviz.models.folder.files import cache_folder
from attnviz.records.rows import MODEL, to_json

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


def kept_in(model: "LoadedModel", what: str) -> Path:
    """The file of one measurement of this model, of this revision, with these weights."""
    folder = model.tokenizer.folder
    files = sorted(folder.iterdir()) if folder else []
    states = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file()]
    about = json.dumps([_schema(what), MODEL.row(model.identity), str(folder), states])
    return cache_folder() / f"{what}-{hashlib.sha256(about.encode()).hexdigest()[:32]}.json"


def keep(model: "LoadedModel", what: str, found: Mapping[str, Any]) -> Path | None:
    """Keep a measurement; None if the user's cache cannot be written."""
    path = kept_in(model, what)
    content = {"schema": _schema(what), "model": MODEL.row(model.identity), **found}
    with suppress(OutputError):
        make_folder(path.parent)
        write_bytes(path, f"{to_json(content)}\n".encode())
        return path
    return None


def known(model: "LoadedModel", what: str) -> Any:
    """An earlier measurement, or {} without one; the caller checks it."""
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(kept_in(model, what).read_text(encoding="utf-8"))
        if isinstance(content, dict) and content.get("schema") == _schema(what):
            return content
    return {}


def _schema(what: str) -> str:
    return f"attnviz-{what}/1"
