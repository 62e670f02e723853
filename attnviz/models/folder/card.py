"""A folder's `card.json`, as the training writes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnviz.data.card import Figure, ModelCard, NamedHead
from attnviz.data.head import Head, every_head
from attnviz.errors import ModelError
from attnviz.models.folder.files import read_object

CARD, SCHEMA = "card.json", 1


def read_card(folder: Path, name: str, heads_per_layer: Sequence[int]) -> ModelCard:
    """The card of a model folder; an empty one where the folder has no card of this program.

    Raises:
        ModelError: the card is there but cannot be read, or names a head that the model
            does not have.
    """
    path = folder / CARD
    raw = read_object(path) if path.is_file() else {}
    if raw.get("schema") != SCHEMA:  # another program may use the same file name
        return ModelCard(name, "", bos=False)
    try:
        card = _card(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"the card {str(path)!r} cannot be read ({error})", "write it again or remove it"
        ) from None
    known = every_head(heads_per_layer)
    for named in card.heads:
        if named.head not in known:
            raise ModelError(
                f"the card {str(path)!r} names the head {named.head}, which the model lacks",
                "use the card that belongs to this model, or remove it",
            )
    return card


def _card(raw: dict[str, Any]) -> ModelCard:
    return ModelCard(
        name=str(raw["name"]),
        description=str(raw["description"]),
        bos=bool(raw["bos"]),
        heads=tuple(_named_head(head) for head in raw["heads"]),
        figures=tuple(_figure(figure) for figure in raw["figures"]),
        loss_limit=None if raw.get("loss_limit") is None else float(raw["loss_limit"]),
    )


def _named_head(raw: dict[str, Any]) -> NamedHead:
    layer, head = str(raw["head"]).removeprefix("L").split("H")
    return NamedHead(
        behaviour=str(raw["behaviour"]),
        head=Head(int(layer), int(head)),
        title=str(raw["title"]),
    )


def _figure(raw: dict[str, Any]) -> Figure:
    return Figure(
        behaviour=str(raw["behaviour"]),
        measure=str(raw["measure"]),
        value=float(raw["held_out"]),
        bar=None if raw["bar"] is None else float(raw["bar"]),
        n=int(raw["n"]),
        texts=str(raw.get("texts", "")),
    )
