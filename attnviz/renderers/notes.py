"""Sentences to be said beside whatever a run gives."""

from attnviz.data.capture import Capture, ModelIdentity
from attnviz.errors import option
from attnviz.harmless import readable
from attnviz.renderers.titles import amount

MOST_NAMED = 8
MERGED = (
    "tokens that are parts of one character are merged; "
    f"{option('chars', value=False)} shows them apart"
)
"""That a view merged them although nobody asked for it."""


def run_notes(capture: Capture) -> tuple[str, ...]:
    """The tokens that were cut off, and the words that the model does not know."""
    cut = left_out_note(capture.left_out)
    return (*((cut,) if cut else ()), *unknown_notes(capture))


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


def model_notes(model: ModelIdentity) -> tuple[str, ...]:
    """What its tokenizer does otherwise, and which layers have no attention (Jamba, Bamba)."""
    told = (model.differs,) if model.differs else ()
    without = [str(layer) for layer, heads in enumerate(model.heads_per_layer) if not heads]
    if not without:
        return told
    layers = f"layer{'s' * (len(without) > 1)} {', '.join(without)}"
    return (*told, f"{layers} of this model {'have' if len(without) > 1 else 'has'} no attention")


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
