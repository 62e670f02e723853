"""Predictions as rows: candidates, or the parts of a logit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attnviz.draw.effects import EXACT_TOKENS, part_name, unit
from attnviz.draw.labels import distinct_labels
from attnviz.draw.titles import amount, facts
from attnviz.kit.result import Form
from attnviz.records.metrics import Estimate
from attnviz.records.parts import FEATURE, Part
from attnviz.records.predict import (
    Candidate,
    Measure,
    NextTokens,
    PredictedAnswer,
    Prediction,
    PredictionMean,
    mean_of,
)
from attnviz.records.rows import LINE_OR_MEAN, Field, Fields, JsonOutput, at, mean_error, measured
from attnviz.records.tokens import Token


@dataclass(frozen=True)
class NextToken:
    """A candidate for the token after a position; the fields of a mean are None but for its own."""

    line: int | None = None
    position: int | None = None
    after: Token | None = None
    tokens: NextTokens | None = None
    rank: int | None = None
    candidate: Candidate | None = None
    probability: float | None = None
    followed_probability: float | None = None
    error: float | None = None


CANDIDATE = Fields[NextToken](
    "CandidateRow",
    "A token that may come next after a position.",
    (
        LINE_OR_MEAN,
        Field(
            "position", int | None, "After which it may come; of a mask, its own; null: an image."
        ),
        Field(
            "after",
            str | None,
            "The token there; null where a mask is filled, or an image has a class.",
            at("after.label"),
        ),
        Field(
            "layer",
            int | None,
            "As if the model ended after this layer, or null for the whole model.",
            at("tokens.layer"),
        ),
        Field("rank", int | None, "Counted from 1, the likeliest."),
        Field("id", int | None, "", at("candidate.id")),
        Field("token", str | None, "", at("candidate.label")),
        Field("probability", float | None, "The candidate's; its mean over the lines."),
        Field(
            "followed",
            str | None,
            "The token that really follows; null at the end.",
            at("tokens.followed.label"),
        ),
        Field("followed_probability", float | None),
        Field("followed_rank", int | None, "", at("tokens.rank")),
        Field("after_exact", str | None, "", at("after.exact")),
        Field("exact", str | None, "", at("candidate.exact")),
        Field("followed_exact", str | None, "", at("tokens.followed.exact")),
        mean_error(),
    ),
)


def candidates(prediction: Prediction, top: int | None, line: int | None) -> Iterator[NextToken]:
    """The candidates of every position, of every layer, of the whole model."""
    for tokens in (*prediction.each, *prediction.lens[:-1], prediction.last):
        alone = prediction.capture.image_alone
        unnamed = prediction.fills or alone
        after = None if unnamed else prediction.capture.query_tokens[tokens.position]
        for rank, each in enumerate(tokens.candidates, start=1):
            yield NextToken(
                line=line,
                position=None if alone else tokens.position,
                after=after,
                tokens=tokens,
                rank=rank,
                candidate=each,
                probability=each.probability,
                followed_probability=tokens.followed.probability if tokens.followed else None,
            )


def mean_candidates(mean: PredictionMean, top: int | None, line: int | None) -> Iterator[NextToken]:
    """The means over the lines: of the likeliest token, and of those that followed."""
    likeliest, followed = mean.likeliest, mean.followed
    yield NextToken(rank=1, probability=likeliest.mean, error=likeliest.error)
    if followed is not None:
        yield NextToken(followed_probability=followed.mean, error=followed.error)


@dataclass(frozen=True)
class Answered:
    """The prediction for a question; `asked`: on a text, None for a mean over lines."""

    line: int | None
    measure: Measure
    answer: Candidate | None
    versus: Candidate | None
    measured: Estimate
    asked: PredictedAnswer | None = None

    def rank(self, number: int) -> int | None:
        return None if self.asked is None else (*self.asked.ranks, None)[number]

    def outcome(self, number: int) -> float | None:
        return None if self.asked is None else measured(self.asked.outcome[number])


ANSWER = Fields[Answered](
    "AnswerRow",
    "The prediction of an answer, by itself or rather than another token.",
    (
        LINE_OR_MEAN,
        Field(
            "answer",
            str | None,
            "null: a mean over lines with answers of their own.",
            at("answer.label"),
        ),
        Field("versus", str | None, "The token whose logit is subtracted.", at("versus.label")),
        unit(at("measure")),
        Field(
            "measured",
            float,
            "The difference of both logits; the log-probability of the answer where there is no "
            "versus.",
            at("measured.mean"),
        ),
        mean_error(at("measured.error")),
        Field(
            "answer_rank",
            int | None,
            "Counted from 1, the likeliest; null: a mean.",
            lambda row: row.rank(0),
        ),
        Field("answer_logit", float | None, "", lambda row: row.outcome(0)),
        Field("answer_log_probability", float | None, "In nats.", lambda row: row.outcome(1)),
        Field("versus_rank", int | None, "", lambda row: row.rank(1)),
        Field("versus_logit", float | None, "", lambda row: row.outcome(2)),
        Field("versus_log_probability", float | None, "In nats.", lambda row: row.outcome(3)),
        *EXACT_TOKENS,
    ),
)


def answer_of(prediction: Prediction, top: int | None, line: int | None) -> Iterator[Answered]:
    """The answer that was asked for."""
    asked = prediction.asked
    assert asked is not None
    question, measured = asked.question, Estimate(asked.outcome.measured)
    yield Answered(line, question.measure, question.answer, question.versus, measured, asked)


def mean_answer(mean: PredictionMean, top: int | None, line: int | None) -> Iterator[Answered]:
    """The mean of the answer that was asked for."""
    assert mean.measured is not None
    yield Answered(None, mean.measure, mean.answer, mean.versus, mean.measured)


@dataclass(frozen=True)
class LogitPart:
    """A part of the model, and its addition to a logit; `line` is None for a mean over lines.

    `labels`: of the tokens, or of the roles that `part.source` numbers. `role`: of its tokens.
    """

    line: int | None
    token: Candidate | None
    versus: Candidate | None
    logit: float
    part: Part
    labels: Sequence[str]
    value: Estimate
    role: str | None


LOGIT_PART = Fields[LogitPart](
    "LogitPartRow",
    "A part of the model, and its addition to a logit.",
    (
        LINE_OR_MEAN,
        Field(
            "token",
            str | None,
            "The answer, or the likeliest token; null: a mean over lines with their own.",
            at("token.label"),
        ),
        Field("versus", str | None, "The token whose logit is subtracted.", at("versus.label")),
        Field("logit", float, "The logit, or the difference."),
        Field("part", str, "The part, for a person.", lambda row: part_name(row.part, row.labels)),
        Field("kind", str, "", at("part.kind")),
        Field("layer", int | None, "", at("part.layer")),
        Field("head", int | None, "", at("part.head")),
        Field(
            "source",
            int | None,
            "The token that the part is from; null in a mean over lines.",
            lambda row: None if row.line is None else row.part.source,
        ),
        Field("value", float, "Its addition.", at("value.mean")),
        Field("role", str | None, "The role of the tokens that it is from, where wanted."),
        mean_error(at("value.error")),
        Field("feature", int | None, FEATURE, at("part.feature")),
    ),
)
JSON = JsonOutput((CANDIDATE, ANSWER, LOGIT_PART))


def logit_parts(prediction: Prediction, top: int | None, line: int | None) -> Iterator[LogitPart]:
    """The parts of the logit, the strongest first."""
    logit, labels = prediction.attribution, distinct_labels(prediction.capture.query_tokens)
    assert logit is not None
    shares = logit.shares
    for i in shares.strongest(len(shares.parts))[:top]:
        value = Estimate(float(shares.values[0, i]))
        part = shares.parts[i]
        role = None if part.source is None or not logit.roles else logit.roles[part.source]
        yield LogitPart(line, logit.token, logit.versus, logit.logit, part, labels, value, role)


def mean_logit_parts(
    mean: PredictionMean, top: int | None, line: int | None
) -> Iterator[LogitPart]:
    """The means of the parts over the lines, the strongest first."""
    logit = mean.attribution
    assert logit is not None
    whole, roles = logit.logit.mean, logit.roles
    for part, value in logit.shares.means[:top]:
        role = None if part.source is None else roles[part.source]
        yield LogitPart(None, logit.token, logit.versus, whole, part, roles, value, role)


MEAN = Form[PredictionMean](
    "predict",
    CANDIDATE,
    mean_candidates,
    lambda mean: f"{mean.model}, mean of {amount(mean.texts, mean.noun)}",
    terminal="attnviz.commands.predict.terminal:render_mean",
)
CANDIDATES = Form[Prediction](
    "predict",
    CANDIDATE,
    candidates,
    lambda prediction: facts(prediction.capture),
    terminal="attnviz.commands.predict.terminal:render",
    top=10,
    mean=mean_of,
    mean_form=MEAN,
)
ANSWERS = replace(
    CANDIDATES,
    fields=ANSWER,
    each=answer_of,
    mean_form=replace(MEAN, fields=ANSWER, each=mean_answer),
)
LOGIT_PARTS = replace(
    CANDIDATES,
    fields=LOGIT_PART,
    each=logit_parts,
    mean_form=replace(MEAN, fields=LOGIT_PART, each=mean_logit_parts, top=10),
)


def form_of(prediction: Prediction) -> Form[Prediction]:
    """The rows of a prediction: the likeliest one's logit in parts, the answer, or candidates."""
    if prediction.attribution is not None:
        return LOGIT_PARTS
    return CANDIDATES if prediction.asked is None else ANSWERS
