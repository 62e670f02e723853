"""A folder's `card.json`, as the training writes it."""

import json
from pathlib import Path
from typing import Any

from attnviz.data.card import Figure, ModelCard, NamedHead
from attnviz.data.heads import Head
from attnviz.errors import ModelError

CARD = "card.json"


def read_card(folder: Path, name: str) -> ModelCard:
    """The card of a model folder; an empty one where the folder has none.

    Raises:
        ModelError: the card is there but cannot be read.
    """
    path = folder / CARD
    if not path.is_file():
        return ModelCard(name, "", bos=False)
    try:
        return _card(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"the card {str(path)!r} cannot be read ({error})", "write it again or remove it"
        ) from None


def _card(raw: dict[str, Any]) -> ModelCard:
    return ModelCard(
        name=str(raw["name"]),
        description=str(raw["description"]),
        bos=bool(raw["bos"]),
        heads=tuple(_named_head(head) for head in raw["heads"]),
        figures=tuple(_figure(figure) for figure in raw["figures"]),
    )


def _named_head(raw: dict[str, Any]) -> NamedHead:
    layer, head = str(raw["head"]).removeprefix("L").split("H")
    return NamedHead(
        behaviour=str(raw["behaviour"]),
        head=Head(int(layer), int(head)),
        title=str(raw["title"]),
        typical=float(raw.get("typical", 0.0)),
    )


def _figure(raw: dict[str, Any]) -> Figure:
    return Figure(
        behaviour=str(raw["behaviour"]),
        measure=str(raw["measure"]),
        value=float(raw["held_out"]),
        bar=None if raw["bar"] is None else float(raw["bar"]),
        n=int(raw["n"]),
    )
