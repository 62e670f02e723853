"""Sentences to be said beside whatever a run gives."""

from attnviz.data.capture import Capture
from attnviz.data.tokens import readable
from attnviz.renderers.titles import left_out_note

MOST_NAMED = 8


def run_notes(capture: Capture) -> tuple[str, ...]:
    """The tokens that were cut off, and the words that the model does not know."""
    cut = left_out_note(capture.left_out)
    return (*((cut,) if cut else ()), *unknown_notes(capture))


def unknown_notes(capture: Capture) -> tuple[str, ...]:
    """One sentence where the model was not trained on some words of the text."""
    words = capture.unknown_words
    if not words:
        return ()
    named = ", ".join(f"“{readable(word)}”" for word in words[:MOST_NAMED])
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    said = "the model was not trained on these words and cannot translate them"
    return (f"{said}: {named}{more}",)
