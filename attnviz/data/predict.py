"""Next tokens: the logits that a model hands over, and the predictions read from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from attnviz.data.blocks import FloatArray, IntArray
from attnviz.data.capture import Capture
from attnviz.data.head import Head
from attnviz.data.heads import Estimate
from attnviz.data.outcome import Asked, Candidate, Question
from attnviz.data.why import Shares


@dataclass(frozen=True, eq=False)
class LogitRows:
    """Logits (rows, V) for the token after each of the `positions` (rows).

    `layer`: the logits as if the model stopped after this layer; None is the whole model. The
    array may be used only during the call.
    """

    layer: int | None
    positions: IntArray
    logits: FloatArray


LogitConsumer: TypeAlias = Callable[[LogitRows], None]


@dataclass(frozen=True)
class NextTokens:
    """The candidates for the token after one position, the likeliest first.

    `layer`: the prediction as if the model stopped there; None is the whole model. `followed` is
    the token that really follows, and `rank` its rank, counted from 1; both are None at the end
    of the text.
    """

    position: int
    layer: int | None
    candidates: Sequence[Candidate]
    followed: Candidate | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Evidence:
    """A link of the last position: its head, key position and weight."""

    head: Head
    key: int
    weight: float


@dataclass(frozen=True, eq=False)
class Attribution:
    """A logit, or the difference of two, as a sum over the parts of the model.

    `shares`: the one sum; `bias` of the output layer is not part of it. `versus`: the other token.
    """

    token: Candidate
    versus: Candidate | None
    shares: Shares
    bias: float

    @property
    def logit(self) -> float:
        """The logit, or the difference."""
        return float(self.shares.total[0]) + self.bias


@dataclass(frozen=True)
class Prediction:
    """The next tokens after the last position of a text, and what led the model to them.

    `each`: the next tokens after every position, where wanted; `lens`: those after each layer,
    where wanted; `evidence`: the strongest links of the last position, layer by layer;
    `attribution`: the likeliest token's logit by part, where wanted. `asked`: what is predicted of
    an answer, where wanted. `fills`: the tokens stand at
    their positions, which hold masks: `last` is of the last mask, `each` of those before it.
    """

    capture: Capture
    last: NextTokens
    each: Sequence[NextTokens] = ()
    lens: Sequence[NextTokens] = ()
    evidence: Sequence[Evidence] = ()
    attribution: Attribution | None = None
    asked: Asked | None = None
    fills: bool = False


@dataclass(frozen=True)
class PredictionMean:
    """How sure a model is, over several texts; errors are those of means over texts.

    `model`: its name. `texts`: how many. `likeliest`: the probability of the likeliest next token
    after a text, or (`fills`) in place of its masks; `followed`: the probability of the tokens that
    really followed within it, where wanted. `measured`: the mean of what is measured of a
    `question`, where one was asked.
    """

    model: str
    texts: int
    likeliest: Estimate
    followed: Estimate | None = None
    question: Question | None = None
    measured: Estimate | None = None
    fills: bool = False
