"""Transforms of patterns: those that are asked for, and those that were applied.

The applied ones are a closed set of records with a serial form.

Programs compare and save these; `draw/titles.py` makes sentences of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from attnviz.errors import IdleOption, option

Unit: TypeAlias = Literal["chars", "words", "images", "frames", "patches"]
How: TypeAlias = Literal["mean", "max"]
Over: TypeAlias = Literal["heads", "layers", "all"]
HowOver: TypeAlias = Literal["mean", "max", "mean:heads", "mean:layers", "max:heads", "max:layers"]
"""How heads are joined, and over what; without it over all."""


@dataclass(frozen=True)
class SavedTransforms:
    """The transforms whose result a capture can hold.

    `scores` replaces weights by scores, `contribution` by each key's share of the head's output,
    `implicit` by the implicit attention that a model was loaded for.
    `weighted` multiplies each weight by the norm of its key's value. `words` or `chars` merge the
    pieces of a word or of a character; with None for `chars`, views for people may merge
    characters.
    """

    scores: bool = False
    contribution: bool = False
    implicit: bool = False
    weighted: bool = False
    words: bool = False
    chars: bool | None = None


@dataclass(frozen=True)
class Transforms(SavedTransforms):
    """All transforms of a pattern; those of `SavedTransforms` are applied first.

    `rollout` multiplies the layers, and shows the last one or those of `rollout_layers`.
    `drop_sink` takes the columns of the first token and of each head's rests away, `drop_keys`
    those of other tokens, as a user names them. `reduce` joins heads, `over` the heads of each
    layer, over layers, or over all (None). `units`: those whose pieces are merged first, as what
    shows them may ask for. `mean_patches`: all patches that attend become one token, and all keys
    stay.
    `relative` divides the weights on images by those of a neutral prompt.
    """

    rollout: bool = False
    rollout_layers: str | None = None
    drop_sink: bool = False
    drop_keys: Sequence[str] = ()
    reduce: How | None = None
    over: Over | None = None
    units: tuple[Unit, ...] = ()
    mean_patches: bool = False
    relative: str | None = None

    def __post_init__(self) -> None:
        if self.words and self.chars:
            raise IdleOption(
                f"{option('words')} includes the merges of {option('chars')}", "give one of them"
            )
        for name in ("rollout", "weighted"):  # they would multiply ratios
            if self.relative is not None and getattr(self, name):
                wrong = f"{option('relative')} needs plain weights"
                raise IdleOption(wrong, f"leave it or {option(name)} out")

    @property
    def merge(self) -> Unit | None:
        return "words" if self.words else "chars" if self.chars else None

    @property
    def merged(self) -> tuple[Unit, ...]:
        """The units whose pieces are merged, in the order in which that is done."""
        return (*self.units, *((self.merge,) if self.merge else ()))

    @property
    def any(self) -> bool:
        """Whether there is a transform, so that whole patterns are needed."""
        return any(vars(self).values())


PLAIN = Transforms()


@dataclass(frozen=True)
class Scores:
    """Scores replaced weights: q·k / √d_k, before mask and softmax."""


@dataclass(frozen=True)
class Contributions:
    """Contribution weights replaced weights; they have a sign, and rows sum to 1."""


@dataclass(frozen=True)
class Additions:
    """Each key's addition to the cosine of an image and a text replaced its weight."""

    cosine: float


@dataclass(frozen=True)
class Implicit:
    """Implicit attention of recurrent layers replaced weights; it has a sign."""


@dataclass(frozen=True)
class Difference:
    """The second of two patterns was subtracted from the first."""


@dataclass(frozen=True)
class NormBased:
    """Each weight was multiplied by the norm of its key's value; rows do not sum to 1."""


@dataclass(frozen=True)
class Relative:
    """Weights on images were divided by those of the last token of a neutral prompt.

    Zhang et al. 2025, "MLLMs Know Where to Look", arXiv 2502.17422, section 4.
    """

    prompt: str


@dataclass(frozen=True)
class Merged:
    """Tokens that are pieces of one character, word, image or time were merged.

    "patches": only those patches of an image that attend.
    """

    unit: Unit


@dataclass(frozen=True)
class RolledOut:
    """Layers were multiplied: attention rollout."""


@dataclass(frozen=True)
class KeysDropped:
    """Keys were left out, and the rest of each row was scaled to sum to 1, unless it was little.

    `share`: the share of the weight on them; `empty`: the queries that attended to nothing else.
    `own`: the number of heads that lost further keys, on which they rest; `by_columns`: rests were
    found only by their columns, as no values could be read.
    """

    keys: tuple[str, ...]
    share: float
    empty: tuple[str, ...] = ()
    own: int = 0
    by_columns: bool = False


@dataclass(frozen=True)
class SpecialDropped:
    """Special tokens and blanks were left out; `share` is the share of the weight on them."""

    share: float


@dataclass(frozen=True)
class Reduced:
    """Several heads became one map, by their mean or their maximum."""

    how: How
    over: Over


@dataclass(frozen=True)
class MeanOverTexts:
    """Patterns of several texts became their mean, position by position."""

    texts: int


@dataclass(frozen=True)
class ErrorsOverTexts:
    """Standard errors of such a mean replaced weights."""

    texts: int


Transform: TypeAlias = (
    Scores
    | Contributions
    | Additions
    | Implicit
    | Difference
    | NormBased
    | Relative
    | Merged
    | RolledOut
    | KeysDropped
    | SpecialDropped
    | Reduced
    | MeanOverTexts
    | ErrorsOverTexts
)

KINDS: Mapping[str, type[Transform]] = {
    "scores": Scores,
    "contributions": Contributions,
    "additions": Additions,
    "implicit": Implicit,
    "difference": Difference,
    "norm-based": NormBased,
    "relative": Relative,
    "merged": Merged,
    "rollout": RolledOut,
    "keys-dropped": KeysDropped,
    "special-dropped": SpecialDropped,
    "reduced": Reduced,
    "mean-over-texts": MeanOverTexts,
    "errors-over-texts": ErrorsOverTexts,
}
"""The name of each transform in files."""


SIGNED = Scores | Contributions | Additions | Implicit | Difference
"""The transforms that replace weights by values with a sign."""
UNBOUNDED = NormBased | Relative
"""The transforms after which numbers may be above 1, and rows need not sum to 1."""
VALUES: Mapping[type[Transform], str] = {
    Contributions: "contribution",
    Additions: "addition",
    Implicit: "implicit_weight",
    ErrorsOverTexts: "error",
    Scores: "score",
    Difference: "score",
    Relative: "ratio",
}
"""The name of each value after a transform."""


def value_name(transforms: Sequence[Transform]) -> str:
    """The name of each value after all of these transforms, for columns."""
    kinds = set(map(type, transforms))
    return next((VALUES[kind] for kind in VALUES if kind in kinds), "weight")


def transform_to_dict(transform: Transform) -> dict[str, Any]:
    """A transform as written to JSON: its `kind`, and its fields."""
    kind = next(name for name, known in KINDS.items() if type(transform) is known)
    return {"kind": kind, **asdict(transform)}


SENTENCES: Mapping[str, Transform] = {
    "scores before mask and softmax: queries times keys, scaled": Scores(),
    "norm-based: each weight times the length of what its key adds; rows do not sum to 1": (
        NormBased()
    ),
    "parts of characters merged": Merged("chars"),
    "pieces of words merged": Merged("words"),
}
"""The sentences that captures of layout 1 hold in place of records."""
