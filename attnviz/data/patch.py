"""Patching: what of a text's prediction its parts carry, told by another text's vectors."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.records.capture import Capture
from attnviz.records.interventions import Outcome, Question, Site, SiteKind
from attnviz.records.metrics import Estimate
from attnviz.records.tokens import Token


@dataclass(frozen=True)
class PatchEffect:
    """What the vectors of one site, taken from the source, change.

    `position`: the one position at which they are taken; None: at all that are patched. `change`:
    of what is measured. `share`: the same as a share of the distance between both texts, 0 is the
    text and 1 the source. `own`: by how much the predictions of both tokens changed.
    """

    site: Site
    position: int | None
    change: Estimate
    share: Estimate
    own: Outcome


@dataclass(frozen=True)
class PatchReport:
    """A text, run with vectors of another.

    `capture`, `source`: both runs, without patterns; `kind`: of the sites. `question`: what is
    measured, and `before` and `ends` what the model predicts of it after the text and after the
    source. `places` (n): for each position of the text that of the source whose vectors it takes;
    None where it keeps its own. `positions`: those that are patched; `named`, if by their names.
    `lines`: how many pairs of texts it is the mean of, where it is one; then every error is that of
    a mean over them, and captures, places and positions are those of the first. `own_answers`: the
    pairs have questions of their own. `varied`: the positions at which the pairs have several
    tokens.
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

    def tokens_at(self, position: int) -> tuple[Token, Token]:
        """The token at a patched position, and that of the source whose vectors it takes."""
        place = self.places[position]
        assert place is not None
        return self.capture.query_tokens[position], self.source.query_tokens[place]

    @property
    def strongest(self) -> Sequence[PatchEffect]:
        """The effects, the largest first."""
        return sorted(self.effects, key=lambda effect: -abs(effect.change.mean))
