"""Sentences about comparisons of texts, and of models."""

from attnviz.commands.compare.record import ModelComparison, TextComparison
from attnviz.draw.labels import fenced
from attnviz.draw.titles import caption, facts, transform_title
from attnviz.errors import readable


def texts_title(comparison: TextComparison) -> str:
    """The head that differs most over the texts, and by how much."""
    first = comparison.heads[0]
    title = f"{first.head} in {len(comparison.captures)} texts: difference {first.difference:.2f}"
    if comparison.queries is not None:
        title += f" between the rows of {_words(comparison)}"
    return title + ("" if len(comparison.heads) == 1 else ", the largest of all heads")


def about_texts(comparison: TextComparison) -> list[str]:
    """The model, each text, and what a causal model means for the word."""
    first = comparison.captures[0]
    lines = [f"{readable(first.model.name)}, {len(comparison.captures)} texts"]
    for n, captured in enumerate(comparison.captures, start=1):
        changes = ", ".join(readable(transform_title(each)) for each in captured.transforms)
        lines.append(
            f"{n}  {fenced(readable(captured.text))}" + (f" ({changes})" if changes else "")
        )
    if comparison.queries is not None and first.causal:
        attends = "attends" if len(set(_labels(comparison))) == 1 else "each attends"
        lines.append(
            f"the model is causal: {_words(comparison)} {attends} only to itself and to earlier "
            "tokens"
        )
    return lines


def _labels(comparison: TextComparison) -> list[str]:
    """The compared word as each text has it."""
    places = zip(comparison.captures, comparison.queries or (), strict=True)
    return [captured.query_tokens[place].label for captured, place in places]


def _words(comparison: TextComparison) -> str:
    """The word whose rows are compared; all of them where the texts have several in its place."""
    *others, last = (f"“{fenced(label)}”" for label in dict.fromkeys(_labels(comparison)))
    return f"{', '.join(others)} and {last}" if others else last


PAIRED = {"best": "the most similar head", "same": "the head of the same name"}


def _unit(comparison: ModelComparison) -> str:
    return "words, as their tokens differ" if comparison.words else "tokens"


def similarity_title(comparison: ModelComparison) -> list[str]:
    """The title of a matrix of similarities, and the models below it."""
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
