"""`attnviz align`: the seconds of a sound in which each word of its text is spoken."""

from typing import TYPE_CHECKING

from attnviz.console import Display
from attnviz.draw.labels import fenced
from attnviz.draw.terminal.cells import Column, TextLines, titled_listing
from attnviz.draw.titles import facts
from attnviz.errors import readable
from attnviz.kit import options as g
from attnviz.kit.choose import plan_capture
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import note_texts, text_or_capture
from attnviz.kit.option import Call, command_of, feature
from attnviz.kit.prepare import HeadOptions, prepare
from attnviz.kit.result import Form, Result
from attnviz.kit.session import Session
from attnviz.kit.values import AnyModel, loaded, model_of, which_heads
from attnviz.records.capture import Capture
from attnviz.records.heads import choose_heads, listed
from attnviz.records.rows import Field, Fields, JsonOutput, model_name
from attnviz.records.speech import (
    Alignment,
    SpokenWord,
    aligned,
    alignment_heads,
    check_aligned,
    lost_letters,
)

if TYPE_CHECKING:
    from attnviz.commands.show.capture import AttentionCapture

ROWS = Fields[tuple[Alignment, SpokenWord]](
    "WordRow",
    "A word, and the seconds of a sound in which it is heard.",
    (
        model_name(lambda row: row[0].capture.model.name),
        Field("word", str, "", lambda row: row[1].text),
        Field("start_seconds", float, "Where it begins.", lambda row: round(row[1].begin, 4)),
        Field("end_seconds", float, "Where it ends.", lambda row: round(row[1].end, 4)),
        Field(
            "weight",
            float,
            "The share of its attention to the sound that is on these seconds; mean over heads.",
            lambda row: row[1].weight,
        ),
        Field("first", int, "The position of its first token.", lambda row: row[1].tokens[0]),
        Field("after", int, "The position behind its last.", lambda row: row[1].tokens[1]),
    ),
)
JSON = JsonOutput((ROWS,))


def _render(found: Alignment, display: Display) -> TextLines:
    title = f"{facts(found.capture)}; by the mean of {listed(found.heads)}"
    names = "from", "to", "weight"
    columns = [Column("word", wraps=True), *(Column(name, right=True) for name in names)]
    rows = [
        (
            fenced(readable(word.text)),
            f"{word.begin:.2f} s",
            f"{word.end:.2f} s",
            f"{word.weight:.2f}",
        )
        for word in found.words
    ]
    about = "weight: the share of the word's attention to the sound that is on these seconds"
    if any(word.begin == word.end for word in found.words):
        about += "; a word without length was not told apart from the next one"
    return titled_listing(title, columns, rows, display.width, about)


FORM = Form[Alignment](
    "align",
    ROWS,
    lambda found, top, line: ((found, word) for word in found.words),
    lambda found: facts(found.capture),
    terminal=_render,
)


def _result(capture: Capture, which: HeadOptions) -> Result[Alignment]:
    """The alignment of a capture, by those of its heads that are meant."""
    check_aligned(capture)
    held = tuple(head for head in alignment_heads(capture) if head in capture.heads)
    named = plan_capture(capture, which).recorded if which.named else ()
    found = aligned(capture, named or held or capture.heads)
    return Result(FORM, found, [found.capture])


@feature(g.check_capture)
def align(
    text: "str | AttentionCapture" = "",
    model: AnyModel = "builtin",
    *,
    audio: g.Sound = None,
    start: g.StartSecond = 0.0,
    target: g.TargetText = None,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
) -> Result[Alignment]:
    """Find the seconds of a sound in which each word of its text is spoken.

    Attention of the words to the sound is aligned by dynamic time warping, as the authors of
    Whisper do it. Without heads, those are taken that the model's settings name for it; else all
    of the upper half of its layers.

    >>> import numpy
    >>> weights = numpy.repeat(numpy.eye(3), 10, axis=1) / 10
    >>> heard = attnviz.from_attention(weights, ["a", " cat", "</s>"], times=0.05)
    >>> [(word.text, word.begin, word.end) for word in attnviz.align(heard).record.words]
    [('a', 0.0, 0.5), ('cat', 0.5, 1.0)]

    Args:
        text: a sound file, for a model that reads speech; or a capture of one.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        a result whose record is an `Alignment`.
    """
    captured = getattr(text, "record", text)
    if isinstance(captured, Capture):
        return _result(captured, which_heads(None, layers, heads))
    ready = loaded(model)
    which = which_heads(ready, layers, heads)
    options = ready._text_options(None, False, None, target, (), audio, start)
    prepared = prepare(ready._loaded, str(captured), options)
    check_aligned(prepared.empty)
    per_layer = prepared.empty.model.heads_per_layer
    named = choose_heads(per_layer, which.layers, which.heads) if which.named else ()
    return _result(prepared.record(named or alignment_heads(prepared.empty)), which)


EXAMPLES = """
attnviz align speech.wav --model openai/whisper-tiny
attnviz align speech.wav --model openai/whisper-tiny --target "what was said" -f csv
"""
SHORT_HELP = "model audio start target heads format output quiet"


@command_of(align, "text audio start model run target layers heads")
def command_line(
    session: Session,
    call: Call[Result[Alignment]],
    *,
    text: g.TextIn,
    model: g.WhichModel,
    run: g.ModelRun,
    output: g.RecordOutput,
) -> None:
    """Find the seconds of a sound in which each word of its text is spoken."""
    to = destination_of(session, output)
    given = text_or_capture(session, text)
    if isinstance(given, Capture):
        result = call(given)
    else:
        result = call(given, model_of(session, model, run))
    note_texts(session, result.captures)
    if lost := lost_letters(result.record.capture):
        short = readable(lost[:20])
        session.note(f"the model's tokenizer has no token for “{short}”, which is left out")
    deliver_result(session, to, result)
