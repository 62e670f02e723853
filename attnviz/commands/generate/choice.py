"""The heads whose rows an answer is shown by: named, or measured to retrieve, else all."""

from typing import TYPE_CHECKING

from attnviz.commands.heads.retrieval import FOR_ANSWERS, heads_for_answers, not_measurable
from attnviz.draw.titles import amount
from attnviz.errors import readable
from attnviz.kit.prepare import HeadOptions
from attnviz.records.exhibit import Choice
from attnviz.records.heads import choose_heads

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


def choice_of(model: "LoadedModel", heads: HeadOptions, max_memory: int | None = None) -> Choice:
    """The heads that the user names, else those that retrieve, which are measured once, else all.

    For a translator, the head is the one on its card, as in `show`.
    """
    if model.kind == "cross" and len(model.card.heads) == 1 and not heads.named:
        (named,) = model.card.heads
        return Choice((named.head,), "card", named)
    retrieving = () if heads.named else heads_for_answers(model, max_memory)
    if retrieving:
        return Choice(tuple(sorted(retrieving)), "retrieval")
    chosen = choose_heads(model.identity.heads_per_layer, heads.layers, heads.heads)
    return Choice(chosen, "asked" if heads.named else "all")


def note_on(choice: Choice, model: "LoadedModel") -> str | None:
    """A note that no head retrieves, or cannot be seen to; None if nothing is to be measured."""
    writes = model.kind == "self" and model.causal and model.can("generate")
    if choice.why != "all" or not writes:
        return None
    every = f"so all {amount(len(choice.heads), 'head')} are joined, and most attend to tokens "
    if wrong := not_measurable(model, FOR_ANSWERS):
        return f"retrieval heads cannot be measured, as {wrong}, {every}nearby"
    return f"no head of {readable(model.identity.name)} is known to retrieve, {every}nearby"


def names_of(choice: Choice) -> str:
    """The heads as an option takes them: `L1H0,L4H2`, or `all`."""
    return "all" if choice.why == "all" else ",".join(map(str, choice.heads))
