"""Predictions in a terminal: candidates with bars, and what led the model to them."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from attnviz.console import Display
from attnviz.draw.effects import (
    difference,
    mean_parts,
    named,
    said_of_features,
    strongest_parts,
    what_is_measured,
)
from attnviz.draw.labels import distinct_labels, fenced, name_of
from attnviz.draw.terminal.cells import (
    Column,
    bar_style,
    cut,
    fitting,
    folded,
    listing,
    named_bars,
    pad,
    table,
    widest,
    words,
)
from attnviz.draw.titles import amount, bar_of, facts, probability, with_error
from attnviz.errors import readable
from attnviz.records.predict import (
    Attribution,
    LastLink,
    NextTokens,
    PredictedAnswer,
    Prediction,
    PredictionMean,
)

BAR = 24  # cells at most
MOST_LAYERS = 8  # with links of the last position: those of the strongest ones


def render(prediction: Prediction, display: Display, top: int) -> Iterator[RenderableType]:
    """Render the tokens that may follow the text; then what else the prediction holds.

    `top`: the number of parts of a logit to list.
    """
    labels = distinct_labels(prediction.capture.query_tokens, unicode=display.unicode)
    yield from folded(Text(facts(prediction.capture), "dim"), display.width)
    yield Text()
    if prediction.fills:
        for filled in prediction.each:
            yield Text(f"in place of {fenced(labels[filled.position])}", "bold")
            yield from _candidates(filled, display)
            yield Text()
    elif prediction.each:
        yield Text("token by token: the token that followed, its probability and rank", "bold")
        yield from _each([*prediction.each, prediction.last], labels, display)
        yield Text()
    last = fenced(labels[prediction.last.position])
    where = f"{'in place of' if prediction.fills else 'after'} {last}"
    yield Text("class of the image" if prediction.capture.image_alone else where, "bold")
    yield from _candidates(prediction.last, display)
    if prediction.asked is not None:
        yield Text()
        yield from _asked(prediction.asked, display)
    if prediction.lens:
        yield Text()
        where = f" in place of {last}" if prediction.fills else ""
        yield Text(f"prediction{where} if the model ended after each layer", "bold")
        yield from _lens(prediction.lens, display)
    if prediction.attribution is not None:
        yield Text()
        yield from _attribution(prediction.attribution, labels, top, display)
    elif prediction.evidence:
        yield Text()
        kept = "without itself, the first token and rests"
        title = f"what “{last}” attends to in each layer ({kept})"
        yield from folded(Text(title, "bold"), display.width)
        captured = prediction.capture
        names = [
            captured.inset_name(token.image) if token.inset else label
            for label, token in zip(labels, captured.query_tokens, strict=True)
        ]
        yield from _evidence(prediction.evidence, prediction.last.position, names, display)


def render_mean(mean: PredictionMean, display: Display, top: int = 10) -> Iterator[Text]:
    """Render the mean certainty over texts; `top`: the number of parts of a logit to list."""
    title = f"{readable(mean.model)}, mean of {amount(mean.texts, mean.noun)} ± standard error"
    yield from folded(Text(title, "dim"), display.width)
    likeliest = "likeliest token in place of a mask" if mean.fills else "likeliest next token"
    likeliest = "likeliest class" if mean.classes else likeliest
    yield Text(f"probability of the {likeliest}: {with_error(mean.likeliest, '.3f')}")
    if mean.followed is not None:
        yield Text(f"probability of the tokens that followed: {with_error(mean.followed, '.3f')}")
    if mean.measured is not None:
        measured = what_is_measured(mean.measure, mean.answer, mean.versus)
        line = f"{measured}: {with_error(mean.measured)}"
        yield from folded(Text(line), display.width)
    if mean.attribution is not None:
        yield Text()
        logit = mean.attribution
        what = difference(logit.token, logit.versus)
        if logit.measure == "answer":
            what = f"logit of {named(logit.token) if logit.token else 'the token of each text'}"
        beside = f"; {logit.bias.mean:+.3f} of it is the output's bias" if logit.bias.mean else ""
        title = f"{what} = {with_error(logit.logit)}, by part{beside}"
        yield from folded(Text(title, "bold"), display.width)
        yield from mean_parts(logit.shares, logit.roles, top, display.width)


def _asked(asked: PredictedAnswer, display: Display) -> Iterator[Text]:
    """Each token of a question, and their difference."""
    outcome, question = asked.outcome, asked.question
    columns = [Column("token")]
    columns += [Column(name, right=True) for name in ("P", "rank", "logit", "log p")]
    numbers = [outcome[:2], outcome[2:]]
    rows = [
        (named(token), probability(token.probability), f"{rank:,}", f"{logit:+.3f}", f"{log:.3f}")
        for token, rank, (logit, log) in zip(question.tokens, asked.ranks, numbers, strict=False)
    ]
    yield from listing(columns, rows, display.width)
    if question.versus is not None:
        value = f"{difference(question.answer, question.versus)} = {outcome.measured:+.3f}"
        sentence = f"{value}, the difference of their log-probabilities, too"
        yield from folded(Text(sentence), display.width)


def _candidates(next_tokens: NextTokens, display: Display) -> Iterator[Text]:
    names = [candidate.quoted for candidate in next_tokens.candidates]
    longest = min(widest(names), display.width // 3)
    numbers = [probability(candidate.probability) for candidate in next_tokens.candidates]
    digits = widest(numbers)
    bar = min(BAR, display.width - longest - digits - 4)
    for name, number, candidate in zip(names, numbers, next_tokens.candidates, strict=True):
        line = Text(no_wrap=True, overflow="crop")
        label = cut(name, longest, unicode=display.unicode)
        line.append("  " + pad(fenced(label), longest), "bold")
        line.append(f" {pad(number, digits)} ")
        share = candidate.probability
        line.append(bar_of(share, bar, display.unicode), bar_style(share, display))
        line.rstrip()
        yield line


def _each(every: Sequence[NextTokens], labels: Sequence[str], display: Display) -> Iterator[Text]:
    columns = [
        words("after", lambda each: fenced(labels[each.position])),
        words("followed", lambda each: fenced(each.followed.quoted) if each.followed else ""),
        words(
            "probability",
            lambda each: probability(each.followed.probability) if each.followed else "",
            right=True,
        ),
        words("rank", lambda each: f"{each.rank:,}" if each.rank else "", right=True),
        words("most likely", lambda each: fenced(each.candidates[0].quoted)),
        words("", lambda each: probability(each.candidates[0].probability), right=True),
    ]
    yield from table(every, columns, display.width)


def _lens(every: Sequence[NextTokens], display: Display) -> Iterator[Text]:
    for next_tokens in every:
        name = "whole model" if next_tokens.layer is None else f"L{next_tokens.layer}"
        line = Text(pad(name, len("whole model")) + "  ")
        first = next_tokens.candidates[:5]
        items = ((each.quoted, probability(each.probability)) for each in first)
        yield fitting(line, items, display.width // 3, display, gap="  ")


def _attribution(
    attribution: Attribution, labels: Sequence[str], top: int, display: Display
) -> Iterator[Text]:
    token, versus, bias = attribution.token, attribution.versus, attribution.bias
    other = f" - that of {fenced(versus.quoted)}" if versus else ""
    beside = f"; {bias:+.3f} of it is the output's bias" if bias else ""
    title = f"logit of {fenced(token.quoted)}{other} = {attribution.logit:+.3f}, by part{beside}"
    yield from folded(Text(title, "bold"), display.width)
    shares = attribution.shares if attribution.roles else attribution.shares.by("head")
    rows = strongest_parts(shares, top, labels)
    yield from named_bars(rows, display)
    if attribution.explained is not None:
        yield from folded(Text(said_of_features(attribution.explained), "dim"), display.width)


def _evidence(
    evidence: Sequence[LastLink], position: int, labels: Sequence[str], display: Display
) -> Iterator[Text]:
    layers = [[*links] for _, links in groupby(evidence, key=lambda link: link.head.layer)]
    strongest = sorted(layers, key=lambda links: links[0].weight, reverse=True)[:MOST_LAYERS]
    for links in sorted(strongest, key=lambda links: links[0].head):
        items = ((name_of(labels[x.key]), f"{x.weight:.2f} (H{x.head.head})") for x in links)
        yield fitting(Text(f"L{links[0].head.layer}  "), items, display.width // 3, display)
    if more := len(layers) - len(strongest):
        every = f"attnviz show --head all --query {position} has all"
        line = f"{amount(more, 'more layer')} with weaker links; {every}"
        yield from folded(Text(line, "dim"), display.width)
