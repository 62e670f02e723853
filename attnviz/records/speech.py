"""Words of a text to seconds of a sound, by the attention of one to the other."""

from attnviz.records.capture import Capture

ALIGNMENT = "alignment"
"""The behaviour of heads that a model's settings name for the alignment of words and time."""


def heard_rows(capture: Capture) -> tuple[list[int], list[int]]:
    """The rows of what was written, with that of its end; and the frames in which there is sound.

    Tokens that only begin a text, such as its language, have no time.
    """
    queries = capture.query_tokens
    first = next((t.index for t in queries if not t.special), 0)
    frames = [t.index for t in capture.key_tokens if t.time is not None and not t.silent]
    return list(range(first, len(queries))), frames
