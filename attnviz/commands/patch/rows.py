"""How far vectors of another text move a prediction towards that text's: records, and rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attnviz.draw.effects import (
    EXACT_TOKENS,
    MEASURED_TOKENS,
    NEXT_TOKEN,
    OWN_CHANGES,
    P_HOLM,
    PART,
)
from attnviz.draw.labels import distinct_labels
from attnviz.draw.titles import facts
from attnviz.errors import InputError, option
from attnviz.kit.result import Form, refuse_picture
from attnviz.records.capture import Capture
from attnviz.records.metrics import Estimate
from attnviz.records.parts import Part
from attnviz.records.predict import (
    Candidate,
    Edit,
    Measure,
    NextTokens,
    Outcome,
    Question,
    Site,
    SiteKind,
    mean_outcome,
)
from attnviz.records.rows import (
    ERROR,
    LAYER,
    LINE_OR_MEAN,
    Field,
    Fields,
    JsonOutput,
    list_of,
    model_name,
)
from attnviz.records.significance import holm
from attnviz.records.tokens import Token


@dataclass(frozen=True)
class PatchEffect:
    """The effect of the vectors of a site, or of several at once, taken from the source.

    `position`: the one position at which they are taken; None: at all that are patched. `change`:
    of what is measured. `share`: the change as a share of the distance between both texts; 0 is the
    text and 1 the source. `own`: the changes of the predictions of both tokens. `p_holm`: of a mean
    over pairs, the p-value of the change against 0, corrected for all sites that were tested.
    """

    sites: tuple[Site, ...]
    position: int | None
    change: Estimate
    share: Estimate
    own: Outcome
    p_holm: float | None = None

    @property
    def site(self) -> Site:
        """The first site, or the only one."""
        return self.sites[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The heads and MLPs that the sites of a patch together are of."""
        return tuple(
            Part("mlp" if site.head is None else "head", site.layer, site.head)
            for site in self.sites
        )


@dataclass(frozen=True)
class PatchReport:
    """A text, run with vectors of another.

    `capture`, `source`: both runs, without patterns; `kind`: of the sites. `question`: what is
    measured; `before` and `ends`: the predictions of its tokens after the text and after the
    source. `places` (n): for each position of the text the position of the source whose vectors it
    takes; None where it keeps its own. `positions`: those that are patched; `named`: whether by
    their names. `lines`: the number of pairs of texts of a mean; every error is then that of a mean
    over them, and captures, places and positions are those of the first. `own_answers`: the pairs
    have questions of their own. `varied`: the positions at which the pairs have several tokens.
    """

    capture: Capture
    source: Capture
    kind: SiteKind
    question: Question
    before: Outcome
    ends: Outcome
    places: tuple[int | None, ...]
    positions: tuple[int, ...]
    effects: Sequence[PatchEffect]
    named: bool = False
    lines: int | None = None
    own_answers: bool = False
    varied: frozenset[int] = frozenset()

    @property
    def measure(self) -> Measure:
        return self.question.measure

    @property
    def answer(self) -> Candidate | None:
        """The answer; None where pairs have answers of their own."""
        return None if self.own_answers else self.question.answer

    @property
    def versus(self) -> Candidate | None:
        return None if self.own_answers else self.question.versus

    def tokens_at(self, position: int) -> tuple[Token, Token]:
        """The token at a patched position, and the source's token whose vectors it takes."""
        place = self.places[position]
        assert place is not None
        return self.capture.query_tokens[position], self.source.query_tokens[place]

    @property
    def runs(self) -> tuple[Capture, Capture]:
        """The text and its source."""
        return self.capture, self.source

    @property
    def strongest(self) -> Sequence[PatchEffect]:
        """The effects, the largest first."""
        return sorted(self.effects, key=lambda effect: -abs(effect.change.mean))


@dataclass(frozen=True)
class PatchedTogether:
    """The next tokens of a text, and with vectors of several sites taken from the source at once.

    `report` has their one effect.
    """

    report: PatchReport
    before: NextTokens
    after: NextTokens

    @property
    def measure(self) -> Measure:
        return self.report.measure

    @property
    def runs(self) -> tuple[Capture, Capture]:
        """The text and its source."""
        return self.report.runs


def effect_of(edits: Sequence[Edit], before: Outcome, ends: Outcome, after: Outcome) -> PatchEffect:
    """The effect on one text; `ends`: what the source predicts."""
    positions = edits[0].positions or ()
    one = len(positions) == len(edits) == 1 and edits[0].site.head is None
    change = after.measured - before.measured
    share = change / (ends.measured - before.measured)
    own = after.less(before)
    sites = tuple(edit.site for edit in edits)
    position = positions[0] if one else None
    return PatchEffect(sites, position, Estimate(change), Estimate(share), own)


def mean_of(reports: Sequence[PatchReport]) -> PatchReport:
    """The mean over several pairs of texts, with standard errors.

    Raises:
        InputError: the pairs are patched at different positions, or have opposite directions.
    """
    check_positions(reports)
    gaps = [report.ends.measured - report.before.measured for report in reports]
    if min(gaps) < 0 < max(gaps):
        raise InputError(
            "the measured value is higher on some sources and lower on others, so these pairs have "
            "no mean",
            f"give each line its own {option('answer')} and {option('versus')}",
        )
    every = list(zip(*(report.effects for report in reports), strict=True))
    changes = [[effect.change.mean for effect in same] for same in every]
    corrected = holm([Estimate.of(values) for values in changes])
    effects = [
        PatchEffect(
            same[0].sites,
            same[0].position,
            Estimate.of(values),
            Estimate.ratio(values, gaps),
            mean_outcome([effect.own for effect in same]),
            p,
        )
        for same, values, p in zip(every, changes, corrected, strict=True)
    ]
    return replace(
        reports[0],
        before=mean_outcome([report.before for report in reports]),
        ends=mean_outcome([report.ends for report in reports]),
        effects=effects,
        lines=len(reports),
        own_answers=len({report.question.ids for report in reports}) > 1,
        varied=_varied(reports),
    )


def mean_together(every: Sequence[PatchedTogether]) -> PatchedTogether:
    """The mean effect of the same sites; texts have no next tokens in common."""
    nothing = NextTokens(0, None, ())
    return PatchedTogether(mean_of([both.report for both in every]), nothing, nothing)


def check_positions(reports: Sequence[PatchReport]) -> None:
    """Check that the positions of the pairs correspond.

    Named positions correspond by their order, others by their numbers.

    Raises:
        InputError: they do not correspond.
    """
    if reports[0].kind == "head":
        return
    positions = {len(r.positions) if r.named else r.positions for r in reports}
    if len(positions) > 1:
        raise InputError(
            "the pairs are patched at different positions, so they have no mean",
            f"give texts of one length, name positions with {option('queries')}, or patch heads",
        )


def _varied(reports: Sequence[PatchReport]) -> frozenset[int]:
    """The positions of the first pair at which others have other tokens."""
    if reports[0].kind == "head":
        return frozenset()
    return frozenset(
        position
        for i, position in enumerate(reports[0].positions)
        if len({tuple(t.id for t in r.tokens_at(r.positions[i])) for r in reports}) > 1
    )


# As rows.


@dataclass(frozen=True)
class PatchRow:
    """An effect of a report, and a candidate for the next token.

    None stands for tokens of which pairs have several.
    """

    line: int | None
    report: PatchReport
    effect: PatchEffect
    source_position: int | None = None
    token: str | None = None
    source_token: str | None = None
    when: str | None = None
    rank: int | None = None
    candidate: Candidate | None = None


def patched_parts(report: PatchReport, top: int | None, line: int | None) -> Iterator[PatchRow]:
    """The strongest effects; `line` is None for means over lines."""
    ours, theirs = (distinct_labels(each.query_tokens) for each in (report.capture, report.source))
    for effect in report.strongest[:top]:
        at, token, source_token = effect.position, None, None
        place = None if at is None else report.places[at]
        if at is not None and place is not None and at not in report.varied:
            token, source_token = ours[at], theirs[place]
        yield PatchRow(line, report, effect, place, token, source_token)


RUN: tuple[Field[PatchRow], ...] = (
    LINE_OR_MEAN,
    model_name(lambda row: row.report.capture.model.name),
)
MEASURED: tuple[Field[PatchRow], ...] = (
    *MEASURED_TOKENS.within(lambda row: row.report),
    Field(
        "texts",
        int,
        "Of how many pairs of texts it is the mean.",
        lambda row: row.report.lines or 1,
    ),
    Field(
        "before",
        float,
        "What is measured after the text: the difference of both logits, or the "
        "log-probability of the answer in nats where there is no versus.",
        lambda row: row.report.before.measured,
    ),
    Field("source", float, "The same after the source.", lambda row: row.report.ends.measured),
    Field(
        "after",
        float,
        "The same after the text with these vectors.",
        lambda row: row.report.before.measured + row.effect.change.mean,
    ),
    Field("change", float, "after - before.", lambda row: row.effect.change.mean),
    Field("error", float | None, ERROR, lambda row: row.effect.change.error),
    Field("p_holm", float | None, P_HOLM, lambda row: row.effect.p_holm),
    Field(
        "share",
        float,
        "change / (source - before): 0 is the text, 1 the source.",
        lambda row: row.effect.share.mean,
    ),
    Field("share_error", float | None, ERROR, lambda row: row.effect.share.error),
    *OWN_CHANGES.within(lambda row: row.effect.own),
    *EXACT_TOKENS.within(lambda row: row.report),
)
PATCHED = Fields[PatchRow](
    "PatchRow",
    "The effect of the vectors of one part, taken from the source.",
    (
        *RUN,
        Field(
            "kind",
            SiteKind,
            "head: its output; attention, mlp: what the layer's adds; residual: the stream that "
            "arrives at the layer.",
            lambda row: row.effect.site.kind,
        ),
        Field("layer", int, LAYER, lambda row: row.effect.site.layer),
        Field(
            "head",
            int | None,
            "The head's number in its layer; null but for a head.",
            lambda row: row.effect.site.head,
        ),
        Field(
            "position",
            int | None,
            "Where it is taken from the source; null: wherever it can be. In a mean, that of the "
            "first pair.",
            lambda row: row.effect.position,
        ),
        Field("token", str | None, "The token there; null: several pairs have several."),
        Field("source_position", int | None, "The position of the source that it is taken from."),
        Field("source_token", str | None, "The token there."),
        *MEASURED,
    ),
)
TOGETHER = Fields[PatchRow](
    "PatchedTogetherRow",
    "A token that may come next, before or with the vectors of all parts from the source.",
    (
        *RUN,
        Field("parts", list_of(PART), "", lambda row: row.effect.parts),
        *MEASURED,
        *NEXT_TOKEN.within(lambda row: row),
    ),
)
JSON = JsonOutput((PATCHED, TOGETHER))


def together_rows(both: PatchedTogether, top: int | None, line: int | None) -> Iterator[PatchRow]:
    """Each candidate before and after; of the mean over lines, which has none, the effect alone."""
    (effect,) = both.report.effects
    if line is None:
        yield PatchRow(line, both.report, effect)
        return
    for when, next_tokens in (("before", both.before), ("after", both.after)):
        for rank, candidate in enumerate(next_tokens.candidates, start=1):
            yield PatchRow(line, both.report, effect, when=when, rank=rank, candidate=candidate)


SHOWN = 10
"""Parts that the terminal names."""
FORM = Form[PatchReport](
    "patch",
    PATCHED,
    patched_parts,
    lambda report: facts(report.capture),
    terminal="attnviz.commands.patch.shown:render",
    picture="attnviz.commands.patch.shown:draw",
    page="attnviz.commands.patch.shown:page",
    top=SHOWN,
    mean=mean_of,
)
BOTH = Form[PatchedTogether](
    "patch",
    TOGETHER,
    together_rows,
    lambda both: facts(both.report.capture),
    terminal="attnviz.commands.patch.shown:render_together",
    picture=refuse_picture,
    mean=mean_together,
)
