"""`attnviz predict`: which token comes next, and what the model attended to for it."""

from collections.abc import Iterator
from dataclasses import dataclass

from attnviz.commands import groups as g
from attnviz.commands.deliver import deliver_report, destination_of
from attnviz.commands.grouping import command, option_field
from attnviz.commands.session import Session
from attnviz.commands.texts import note_texts, text_alone
from attnviz.data.predict import NextTokens, Prediction
from attnviz.errors import UsageError, option
from attnviz.renderers.labels import distinct_labels
from attnviz.renderers.parts import part_name
from attnviz.renderers.terminal import predict as table
from attnviz.runs.predict import Reading, predict_text
from attnviz.runs.prepare import load_model

EPILOG = """
[bold]Examples[/]

attnviz predict "a fluffy blue creature roamed the verdant forest . the creature was"

attnviz predict "Bark is very cute and he is a" --lens

attnviz predict "Harry Potter went to" --model gpt2 --top 3 -f jsonl | jq -r .token
"""
COMMON = "file each lens attribute top model format output quiet".split()
"""The options that the short help lists."""


@dataclass(frozen=True)
class Candidates:
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
        help="Also show the likeliest token's logit as a sum over embeddings, heads and MLPs; as "
        "rows, these alone.",
    )
    versus: str | None = option_field(
        g.LOOK,
        None,
        "--versus",
        metavar="TOKEN",
        help="With --attribute, the difference from this token's logit.",
    )
    top: int = option_field(
        g.LOOK, Reading.top, "--top", metavar="K", min=1, help="Number of candidates."
    )


@command
def predict(
    session: Session,
    *,
    text: g.TextIn,
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
    given = text_alone(session, text, "a saved capture holds no predictions")
    loaded = load_model(g.source_of(session, model, run))
    if candidates.versus is not None and not candidates.attribute:
        raise UsageError(
            f"{option('versus')} is for {option('attribute')}", f"add {option('attribute')}"
        )
    if candidates.attribute and (candidates.each or candidates.lens):
        other = option("each" if candidates.each else "lens")
        raise UsageError(f"{option('attribute')} and {other} are two readings", "leave one out")
    reading = Reading(**vars(candidates))
    prediction = predict_text(loaded, given, tokens.options(run), reading)
    note_texts(session, [prediction.capture])
    most = candidates.top if session.chosen("top") else None
    deliver_report(
        session,
        to,
        lambda: list(_parts(prediction)[:most] if candidates.attribute else _records(prediction)),
        lambda: table.render(prediction, to.display(session), candidates.top),
    )


def _parts(prediction: Prediction) -> list[dict[str, object]]:
    """A row for each part of the logit, the strongest first."""
    made, labels = prediction.attribution, distinct_labels(prediction.capture.query_tokens)
    assert made is not None
    return [
        {
            "token": made.token.label,
            "versus": made.versus.label if made.versus else None,
            "logit": made.logit,
            "part": part_name(made.shares.parts[i], labels),
            **made.shares.parts[i]._asdict(),
            "value": float(made.shares.values[0, i]),
        }
        for i in made.shares.strongest(len(made.shares.parts))
    ]


def _records(prediction: Prediction) -> Iterator[dict[str, object]]:
    """A row for each candidate: of every position, of every layer, of the whole model."""
    for next_tokens in (*prediction.each, *prediction.lens[:-1], prediction.last):
        yield from _candidates(prediction, next_tokens)


def _candidates(prediction: Prediction, next_tokens: NextTokens) -> Iterator[dict[str, object]]:
    true = next_tokens.followed
    after = prediction.capture.query_tokens[next_tokens.position]
    for rank, candidate in enumerate(next_tokens.candidates, start=1):
        yield {
            "position": next_tokens.position,
            "after": after.label,
            "layer": next_tokens.layer,
            "rank": rank,
            "id": candidate.id,
            "token": candidate.label,
            "probability": candidate.probability,
            "followed": true.label if true else None,
            "followed_probability": true.probability if true else None,
            "followed_rank": next_tokens.rank,
            "after_exact": after.exact,
            "exact": candidate.exact,
            "followed_exact": true.exact if true else None,
        }
