"""The heads whose rows an answer is shown by: named, or known to retrieve, else all."""

import shlex
from typing import TYPE_CHECKING

from attnviz.commands.heads.retrieval import heads_for_answers, known
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.kit.prepare import HeadOptions
from attnviz.records.exhibit import Choice
from attnviz.records.heads import choose_heads

if TYPE_CHECKING:
    from attnviz.models.catalog import Source
    from attnviz.models.loaded import LoadedModel


def choice_of(model: "LoadedModel", heads: HeadOptions) -> Choice:
    """The heads that the user names, else those known to retrieve, else all.

    Of a translator: the head that its card names, as `show` takes it.
    """
    if model.kind == "cross" and len(model.card.heads) == 1 and not heads.named:
        (named,) = model.card.heads
        return Choice((named.head,), "card", named)
    retrieving = () if heads.named else heads_for_answers(model)
    if retrieving:
        return Choice(tuple(sorted(retrieving)), "retrieval")
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    return Choice(chosen, "asked" if heads.named else "all")


def note_on(choice: Choice, model: "LoadedModel", source: "Source | None") -> str | None:
    """That no head is known to retrieve, and what measures it; None where nothing could.

    `source`: where the model came from; None: it was in memory.
    """
    if choice.why != "all" or model.kind != "self" or not model.causal:
        return None
    name = readable(model.identity.name)
    every = f"so all {amount(len(choice.heads), 'head')} are joined"
    if known(model) is not None:
        return f"no head of {name} was found to retrieve, {every}"
    every += ", most of which look at what is near"
    if source is None:
        measures = "attnviz.heads(model=…, retrieval=True).record.heads"
        return f"no retrieval heads of {name} are known, {every}; {measures} measures them"
    words = ["attnviz", "heads", "--retrieval", "-m", source.name]
    placed = source.placement
    words += ["--revision", source.revision] if source.revision else []
    words += ["--dtype", placed.dtype] if placed.dtype != "auto" else []
    words += ["--engine", source.engine] if source.engine != "auto" else []
    return f"no retrieval heads of {name} are known, {every}; measure them once: " + (
        readable(shlex.join(words))
    )


def names_of(choice: Choice) -> str:
    """The heads as an option takes them: `L1H0,L4H2`, or `all`."""
    return "all" if choice.why == "all" else ",".join(map(str, choice.heads))
