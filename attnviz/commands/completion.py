"""What a shell offers behind an option, as its user presses Tab.

Each function takes the context of the unfinished line and the word that has begun, and gives
words, or pairs of a word and what it is. Nothing is an error here: no answer leaves the shell
to complete the names of files.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import TypeAlias

import typer

from attnviz.errors import AttnvizError
from attnviz.models.catalog import describe
from attnviz.models.folder.files import CONFIG
from attnviz.models.folder.hub import cached_names
from attnviz.models.placement import BUILTIN, BUNDLED, EMBEDDINGS, KNOWN_MODELS
from attnviz.writers.formats import VIEWS

Offered: TypeAlias = list[str | tuple[str, str]]
Offer: TypeAlias = Callable[[typer.Context, str], Offered]
HUB = "huggingface.co"
_PLAIN = re.compile(r"[\w.,/~+@=-]+")


def _quiet(offer: Callable[[typer.Context, str], Iterator[str | tuple[str, str]]]) -> Offer:
    @wraps(offer)
    def offered(ctx: typer.Context, incomplete: str) -> Offered:
        try:
            return list(offer(ctx, incomplete))
        except (AttnvizError, OSError, ValueError):
            return []

    return offered


@_quiet
def models(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
    """The known models, those in the cache, and the folders of models at the path begun."""
    cached = cached_names()
    for name in KNOWN_MODELS:
        where = "bundled" if name in (*BUNDLED, EMBEDDINGS) else f"from {HUB}, once"
        yield name, "in the cache" if name in cached else where
    for name in filter(_PLAIN.fullmatch, cached):
        if name not in KNOWN_MODELS:
            yield name, "in the cache"
    for path in _beside(incomplete):
        if os.path.isfile(os.path.join(os.path.expanduser(path), CONFIG)):
            yield path, "a folder"


@_quiet
def heads(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
    """The heads of the bundled model on the line; those that its card names come with a title.

    Behind a comma, one head more.
    """
    name = ctx.params.get("model", BUILTIN)
    if name == EMBEDDINGS:
        yield "L0H0"
    if name not in BUNDLED:
        return
    facts, card = describe(name)
    titles: dict[str, list[str]] = {}
    for named in card.heads:
        titles.setdefault(str(named.head), []).append(named.title)
    before, comma, _ = incomplete.rpartition(",")
    for layer in range(facts.layers):
        for number in range(facts.heads_per_layer):
            head = f"L{layer}H{number}"
            yield f"{before}{comma}{head}", "; ".join(titles.get(head, ()))


def views(ctx: typer.Context, incomplete: str) -> Offered:
    """The views of the terminal."""
    return list(VIEWS.items())


def formats(names: Sequence[str]) -> Offer:
    """The formats that a command writes."""

    def offered(ctx: typer.Context, incomplete: str) -> Offered:
        return [*names]

    return offered


def cmaps(ctx: typer.Context, incomplete: str) -> Offered:
    """The colour maps of matplotlib, which alone knows them: here it is imported."""
    from attnviz.draw.picture.paint import known_cmaps

    return [*known_cmaps()]


@_quiet
def captures(ctx: typer.Context, incomplete: str) -> Iterator[str | tuple[str, str]]:
    """Saved captures: what a text can be instead of words."""
    for path in _beside(incomplete):
        if path.lower().endswith(".npz"):
            yield path, "a saved capture"


def commands(ctx: typer.Context, incomplete: str) -> Offered:
    """The commands of the program."""
    root = ctx.find_root()
    listed = root.command
    assert isinstance(listed, typer.core.TyperGroup)
    return [*listed.list_commands(root)]


def _beside(incomplete: str) -> Iterator[str]:
    """The names in the folder of a path that has begun, each as the path goes on.

    A shell takes what it is offered as it is: a name that would have to be quoted is left to
    its own completion of files.
    """
    folder, _ = os.path.split(incomplete)
    paths = (os.path.join(folder, name) for name in os.listdir(os.path.expanduser(folder) or "."))
    return iter(sorted(filter(_PLAIN.fullmatch, paths)))
