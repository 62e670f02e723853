"""A folder's `card.json`, as the training writes it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from attnviz.errors import ModelError
from attnviz.models.folder.files import read_object
from attnviz.models.folder.gate import cut, is_number, is_size
from attnviz.records.heads import Figure, Head, ModelCard, NamedHead, every_head
from attnviz.records.restore import LONGEST_NAME

T = TypeVar("T")
CARD, SCHEMA = "card.json", 1
MOST, LARGEST = 1_000, 1 << 53
"""The most heads, or figures, that a card may name, and the largest number in it."""
TYPE_NAMES: Mapping[type, str] = MappingProxyType(
    {bool: "true or false", int: "whole number", str: "text", list: "list"}
)


def read_card(folder: Path, name: str, heads_per_layer: Sequence[int]) -> ModelCard:
    """The card of a model folder; an empty one where the folder has no card of this program.

    Raises:
        ModelError: the card is there but cannot be read, or names a head that the model
            does not have.
    """
    path = folder / CARD
    raw = read_object(path) if path.is_file() else {}
    if (
        raw.get("schema") is True or raw.get("schema") != SCHEMA
    ):  # another program may use the same file name
        return ModelCard(name, "", bos=False)
    try:
        card = _card(raw)
    except ValueError as error:
        raise ModelError(
            f"the card {str(path)!r} cannot be read ({error})", "write it again or remove it"
        ) from None
    known = every_head(heads_per_layer)
    for head in (*(named.head for named in card.heads), *card.retrieval):
        if head not in known:
            raise ModelError(
                f"the card {str(path)!r} names the head {head}, which the model lacks",
                "use the card that belongs to this model, or remove it",
            )
    return card


def _card(raw: dict[str, Any]) -> ModelCard:
    return ModelCard(
        name=_text(raw, "name"),
        description=_text(raw, "description"),
        bos=_get(raw, "bos", bool),
        heads=tuple(_named_head(head) for head in _entries(raw, "heads")),
        figures=tuple(_figure(figure) for figure in _entries(raw, "figures")),
        loss_limit=None if raw.get("loss_limit") is None else _number(raw, "loss_limit"),
        retrieval=_heads(raw.get("retrieval", [])),
        stop=_stop(raw.get("stop", [])),
    )


def _heads(names: object) -> tuple[Head, ...]:
    if not isinstance(names, list) or len(names) > MOST:
        raise ValueError(f"retrieval is no list of at most {MOST:,} heads")
    return tuple(map(_head, names))


def _stop(texts: object) -> tuple[str, ...]:
    if not isinstance(texts, list) or len(texts) > MOST:
        raise ValueError(f"stop is no list of at most {MOST:,} texts")
    if not all(isinstance(text, str) and 0 < len(text) <= LONGEST_NAME for text in texts):
        raise ValueError(f"stop has an entry that is no text of 1 to {LONGEST_NAME:,} characters")
    return tuple(texts)


def _named_head(raw: dict[str, Any]) -> NamedHead:
    head = _head(_text(raw, "head"))
    return NamedHead(_text(raw, "behaviour"), head, title=_text(raw, "title"))


def _head(name: object) -> Head:
    named = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", name) if isinstance(name, str) else None
    if named is None:
        raise ValueError(f"{cut(repr(name))} is no head")
    return Head(int(named[1]), int(named[2]))


def _figure(raw: dict[str, Any]) -> Figure:
    n = _get(raw, "n", int)
    if not is_size(n, LARGEST):
        raise ValueError("n is no number of cases")
    return Figure(
        behaviour=_text(raw, "behaviour"),
        measure=_text(raw, "measure"),
        value=_number(raw, "held_out"),
        bar=None if raw.get("bar") is None else _number(raw, "bar"),
        n=n,
        texts=_text(raw, "texts") if "texts" in raw else "",
    )


def _entries(raw: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = _get(raw, name, list)
    if len(entries) > MOST or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{name} is no list of at most {MOST:,} objects")
    return cast("list[dict[str, Any]]", entries)


def _text(raw: dict[str, Any], name: str) -> str:
    text = _get(raw, name, str)
    if len(text) > LONGEST_NAME:
        raise ValueError(f"{name} has more than {LONGEST_NAME:,} characters")
    return text


def _number(raw: dict[str, Any], name: str) -> float:
    value = raw.get(name)
    if not is_number(value) or abs(value) > LARGEST:
        raise ValueError(f"{name} is no number")
    return float(value)


def _get(raw: dict[str, Any], name: str, kind: type[T]) -> T:
    value = raw.get(name)
    if type(value) is not kind:  # not isinstance: True is no number here
        raise ValueError(f"{name} is missing, or no {TYPE_NAMES[kind]}")
    return value
