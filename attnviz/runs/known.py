"""Retrieval scores, kept in the user's cache so that a model is measured once."""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz.data.retrieval import Needles, Retrieval
from attnviz.errors import OutputError
from attnviz.kit.write import make_folder, write_bytes
from attnviz.records.heads import Head, every_head
from attnviz.records.rows import model_to_dict, to_json

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel

SCHEMA = "attnviz-retrieval/1"


def cache_folder() -> Path:
    """Where programs keep what they can make again (XDG Base Directory Specification)."""
    kept = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(kept) if os.path.isabs(kept) else Path("~/.cache").expanduser()
    return base / "attnviz"


def kept_in(model: "LoadedModel") -> Path:
    """The file for this model, of this revision, with these weights."""
    folder = model.tokenizer.folder
    files = sorted(folder.iterdir()) if folder else []
    states = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file()]
    about = json.dumps([SCHEMA, model_to_dict(model.identity), str(folder), states])
    return cache_folder() / f"retrieval-{hashlib.sha256(about.encode()).hexdigest()[:32]}.json"


def keep(model: "LoadedModel", retrieval: Retrieval) -> Path | None:
    """Keep the scores; None where the user's cache cannot be written."""
    path = kept_in(model)
    content = {
        "schema": SCHEMA,
        "model": model_to_dict(retrieval.model),
        "needles": asdict(retrieval.needles),
        "scores": {str(head): score for head, score in retrieval.scores},
    }
    with suppress(OutputError):
        make_folder(path.parent)
        write_bytes(path, f"{to_json(content)}\n".encode())
        return path
    return None


def known(model: "LoadedModel") -> Retrieval | None:
    """The scores of an earlier measurement; None where there is none that can be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        content: Any = json.loads(kept_in(model).read_text(encoding="utf-8"))
        heads = every_head(model.identity.heads_per_layer)
        scores = tuple((head, float(content["scores"][str(head)])) for head in heads)
        needles = Needles(**{**content["needles"], "depths": tuple(content["needles"]["depths"])})
        if content["schema"] == SCHEMA and all(0 <= score <= 1 for _, score in scores):
            return Retrieval(model.identity, needles, scores)
    return None


def heads_for_answers(model: "LoadedModel") -> tuple[Head, ...]:
    """The heads whose rows say most about an answer: those of the card, else those measured."""
    measured = None if model.card.retrieval else known(model)
    return model.card.retrieval or tuple(sorted(measured.heads if measured else ()))
