"""Records as JSON: the parts that the JSON object and a saved capture have in common."""

import json
from typing import Any

from attnviz.data.capture import ModelIdentity
from attnviz.data.tokens import Token


def quoted(text: str) -> str:
    """A text as a JSON string that is safe on a terminal.

    Letters stay as they are; whatever cannot be printed (control and format characters,
    lone surrogates, unusual spaces) is written as `\\uXXXX`.
    """
    written = json.dumps(text, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)


def model_to_dict(model: ModelIdentity) -> dict[str, Any]:
    """A model's identity, as written to JSON."""
    return {
        "name": model.name,
        "architecture": model.architecture,
        "revision": model.revision,
        "engine": model.engine,
        "dtype": model.dtype,
        "trained": model.trained,
        "parameters": model.parameters,
        "heads_per_layer": list(model.heads_per_layer),
    }


def token_to_dict(token: Token) -> dict[str, Any]:
    """A token, as written to JSON; `label` is how a person reads it."""
    return {
        "index": token.index,
        "id": token.id,
        "text": token.text,
        "label": token.label,
        "start": token.start,
        "end": token.end,
        "special": token.special,
        "part": None if token.part is None else list(token.part),
    }
