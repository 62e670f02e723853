"""Sentences about comparisons of texts, and of models."""

from attnviz.commands.compare.record import ModelComparison, TextComparison
from attnviz.draw.labels import fenced
from attnviz.draw.titles import caption, facts, transform_title
from attnviz.errors import readable
from attnviz.records.capture import Capture


def texts_title(comparison: TextComparison) -> str:
    """The head that differs most over the texts, and by how much."""
    first = comparison.heads[0]
    title = f"{first.head} in {len(comparison.captures)} texts: difference {first.difference:.2f}"
    if comparison.queries is not None:
        title += f" between the rows of {_words(comparison)}"
    return title + ("" if len(comparison.heads) == 1 else ", the largest of all heads")


def about_texts(comparison: TextComparison) -> list[str]:
    """The model, each text with the word's place in it, and what a causal model means for it."""
    first = comparison.captures[0]
    lines = [f"{readable(first.model.name)}, {len(comparison.captures)} texts"]
    for n, captured in enumerate(comparison.captures, start=1):
        lines.append(f"{n}  {fenced(readable(captured.text))}{_done(captured)}")
    if comparison.queries is not None and first.causal:
        attends = "attends" if len(set(_labels(comparison))) == 1 else "each attends"
        lines.append(
            f"the model is causal: {_words(comparison)} {attends} only to itself and to earlier "
            "tokens"
        )
    return lines


def _labels(comparison: TextComparison) -> list[str]:
    """What the word that is compared reads in each text."""
    places = zip(comparison.captures, comparison.queries or (), strict=True)
    return [captured.query_tokens[place].label for captured, place in places]


def _words(comparison: TextComparison) -> str:
    """The word whose rows are compared; several, where the texts have others in its place."""
    *others, last = (f"“{fenced(label)}”" for label in dict.fromkeys(_labels(comparison)))
    return f"{', '.join(others)} and {last}" if others else last


def _done(captured: Capture) -> str:
    done = ", ".join(readable(transform_title(t)) for t in captured.transforms)
    return f" ({done})" if done else ""


PAIRED = {"best": "the most similar head", "same": "the head of the same name"}


def _unit(comparison: ModelComparison) -> str:
    return "words, as their tokens differ" if comparison.words else "tokens"


def similarity_title(comparison: ModelComparison) -> list[str]:
    """What a matrix of similarities shows, and what it is of."""
    ours, theirs = comparison.captures
    return [
        f"Similarity of heads over {_unit(comparison)}; circles: {PAIRED[comparison.pair]}",
        f"{caption(ours)}; beside {readable(theirs.model.name)}",
    ]


def about_models(comparison: ModelComparison) -> list[str]:
    """Both models, and over what they are compared."""
    lines = [facts(captured) for captured in comparison.captures]
    order = "most similar" if comparison.pair == "best" else "largest change"
    lines.append(
        f"each head of the first model, with {PAIRED[comparison.pair]} of the second, over "
        f"{_unit(comparison)}; {order} first"
    )
    if comparison.silent:
        names = ", ".join(map(str, comparison.silent))
        lines.append(f"heads with no weight on these: {names}")
    return lines
