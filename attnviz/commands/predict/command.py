"""`attnviz predict`: which token comes next, and what the model attended to for it."""

from dataclasses import dataclass

from attnviz.commands.predict.rows import of_mean, of_prediction
from attnviz.commands.predict.run import Reading, predict_text
from attnviz.errors import IdleOption, option
from attnviz.kit import options as g
from attnviz.kit.deliver import deliver_result, destination_of
from attnviz.kit.lines import (
    OF_A_TEXT,
    Lines,
    check_one_file,
    deliver_lines,
    each_line,
    note_texts,
    text_alone,
)
from attnviz.kit.option import command, option_field
from attnviz.kit.result import Result
from attnviz.kit.session import Session
from attnviz.records.predict import Prediction, mean_of

EPILOG = """
Examples

attnviz predict "a fluffy blue creature roamed the verdant forest . the creature was"

attnviz predict "a blue bird slept . the bird was" --answer blue --versus red

attnviz predict "Bark is very cute and he is a" --lens

attnviz predict --lines --file sample_texts/moles.txt --each --top 1

attnviz predict "Harry Potter went to" --model gpt2 --top 3 -f jsonl | jq -r .token
"""
COMMON = "file lines answer versus each lens attribute top model format output quiet".split()
"""The options that the short help lists."""


@dataclass(frozen=True)
class Candidates(g.Measured):
    """Which predictions are listed."""

    each: bool = option_field(
        g.LOOK,
        False,
        "--each",
        help="For every position, also show the token that followed, its probability and rank.",
    )
    lens: bool = option_field(
        g.LOOK,
        False,
        "--lens",
        help="Show the prediction after each layer, as if the model ended there (the logit lens).",
    )
    attribute: bool = option_field(
        g.LOOK,
        False,
        "--attribute",
        help="Also show the logit of the --answer (by default the likeliest token) as a sum over "
        "embeddings, heads and MLPs; as rows, these alone.",
    )
    top: int = option_field(
        g.LOOK, Reading.top, "--top", metavar="K", min=1, help="Number of candidates."
    )


@command
def predict(
    session: Session,
    *,
    text: g.TextIn,
    lines: Lines = False,
    candidates: Candidates,
    tokens: g.Tokens,
    model: g.WhichModel,
    run: g.ModelRun,
    screen: g.Screen,
    output: g.RecordOutput,
    noise: g.Noise,
) -> None:
    """Show the most likely next tokens, with their probabilities.

    Below them, the strongest links of the last position in each layer show what it attends to.
    """
    to = destination_of(session, output)
    check_one_file(to, lines=lines)
    _check(candidates)
    refusal = "a saved capture holds no predictions"
    given = None if lines else text_alone(session, text, refusal)
    loaded = session.load(g.source_of(session, model, run))
    reading, options = Reading(**vars(candidates)), tokens.options(run)
    most = candidates.top if session.chosen("top") else None
    if given is not None:
        prediction = predict_text(loaded, given, options, reading)
        note_texts(session, [prediction.capture])
        deliver_result(session, to, of_prediction(prediction, most))
        return
    found = list[Prediction]()

    def predicted(line: str, number: int) -> tuple[int, Result[Prediction]]:
        found.append(predict_text(loaded, line, options, reading))
        return number, of_prediction(found[-1], most, number)

    answers = each_line(session, text, predicted, lambda _: found[-1].capture, OF_A_TEXT)
    # parts of logits of different tokens have no mean
    apart = candidates.attribute
    mean = (lambda: None) if apart else lambda: of_mean(mean_of(found))
    deliver_lines(session, to, answers, mean)


def _check(candidates: Candidates) -> None:
    """Only readings that go together."""
    if candidates.versus is not None and not (candidates.attribute or candidates.answer):
        raise IdleOption(
            f"{option('versus')} is for an {option('answer')} or {option('attribute')}",
            f"add {option('answer', 'TOKEN')}",
        )
    if candidates.attribute and (candidates.each or candidates.lens):
        other = option("each" if candidates.each else "lens")
        raise IdleOption(f"{option('attribute')} and {other} are two readings", "leave one out")
