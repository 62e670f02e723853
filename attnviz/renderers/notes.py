"""Sentences to be said beside whatever a run gives."""

from attnviz.errors import option, readable
from attnviz.records.capture import Capture, ModelIdentity
from attnviz.records.positions import word_around
from attnviz.renderers.titles import amount

MOST_NAMED = 8
QUERIES, KEYS = ("query", "queries"), ("key", "keys", "drop_key", "drop_keys")
"""The options that name tokens of the text."""
MERGED = (
    "tokens that are parts of one character are merged; "
    f"{option('chars', value=False)} shows them apart"
)
"""That a view merged them although nobody asked for it."""


def run_notes(capture: Capture) -> tuple[str, ...]:
    """What was cut off, the words that the model does not know, and names that are pieces."""
    cut = left_out_note(capture.left_out)
    return (*((cut,) if cut else ()), *unknown_notes(capture), *piece_notes(capture))


def piece_notes(capture: Capture) -> tuple[str, ...]:
    """One sentence for each name of a query or key that no word of the text reads like."""
    sides = (capture.query_tokens, QUERIES), (capture.key_tokens, KEYS)
    said = []
    for tokens, options in sides:
        given = [capture.asked.options.get(name) or () for name in options]
        names = [n for each in given for n in ([each] if isinstance(each, str) else each)]
        around = ((name, word_around(tokens, name)) for name in names if isinstance(name, str))
        said += [
            f"“{readable(name)}” is a piece of “{readable(word)}”, as no word of the text reads so"
            for name, word in around
            if word
        ]
    return tuple(dict.fromkeys(said))


def full_note(new: int) -> str:
    """That an answer ends because its model can read no more."""
    return f"the answer ends after {amount(new, 'token')}, as the model's context is full"


def beams_note(beams: int) -> str:
    """That a model's own settings would write several answers and take the likeliest."""
    return (
        f"the model's generation settings ask for {beams} beams, and attnviz follows one, so that "
        "the answer may differ from that of transformers"
    )


def unknown_notes(capture: Capture) -> tuple[str, ...]:
    """One sentence where the model was not trained on some words of the text."""
    words = capture.unknown_words
    if not words:
        return ()
    named = ", ".join(f"“{readable(word)}”" for word in words[:MOST_NAMED])
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    said = "the model was not trained on these words and cannot translate them"
    return (f"{said}: {named}{more}",)


def model_notes(model: ModelIdentity | None) -> tuple[str, ...]:
    """What a model does otherwise than one expects.

    Its tokenizer is not that of transformers, some layers have no attention (Jamba, Bamba), or
    code of its own was not run.
    """
    if model is None:
        return ()
    notes = [model.differs] if model.differs else []
    if without := [str(layer) for layer, heads in enumerate(model.heads_per_layer) if not heads]:
        layers = f"layer{'s' * (len(without) > 1)} {', '.join(without)}"
        verb = "have" if len(without) > 1 else "has"
        notes.append(f"{layers} of {readable(model.name)} {verb} no attention")
    if model.own_code:
        notes.append(
            f"the folder of {readable(model.name)} names code of its own, and transformers' "
            f"{model.architecture} was run instead: results differ where that code does"
        )
    return tuple(notes)


def text_notes(capture: Capture) -> tuple[str, ...]:
    """What is to be said of a text and its model, also that the text is strange to it."""
    strange = strange_note(int(capture.strange), 1, "text")
    about_model = model_notes(capture.model)
    return (*about_model, *run_notes(capture), *((strange,) if strange else ()))


def strange_note(strange: int, texts: int, what: str) -> str:
    """That the built-in model has not seen texts like some of these; empty where there are none.

    Args:
        strange: how many of them are not of its world.
        texts: how many there are.
        what: one of them: "text", "line".
    """
    if not strange:
        return ""
    where = f"{strange:,} of {amount(texts, what)}: " if texts > 1 else ""
    other = f"try {option('model', 'gpt2')}"
    return f"{where}the built-in model is small and has not seen text like this; {other}"


def left_out_note(left_out: tuple[int, int]) -> str:
    """How many tokens were cut off; empty where all are there."""
    before, after = left_out
    count = before or after
    if not count:
        return ""
    verb = "is" if count == 1 else "are"
    cut = f"{'first' if before else 'last'} {amount(count, 'token')}"
    return f"the {cut} {verb} left out to fit the model's context"
