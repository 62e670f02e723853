"""What a scan found, as rows: declarations; the tables of the scan and `writers/` make them."""

from typing import Annotated, Literal, TypedDict

from attnviz.data.atlas import Histogram, Side
from attnviz.records.rows import Error, HeadNumber, LayerNumber, MadeObject

Mean = Annotated[float | None, "The mean over documents; null where none could be measured."]
Documents = Annotated[int, "In how many documents it was measured."]


class AtlasRow(TypedDict):
    """The scores of a head over a corpus."""

    layer: LayerNumber
    head: HeadNumber
    entropy: Mean
    entropy_error: Error
    entropy_documents: Documents
    normalised: Mean
    normalised_error: Error
    normalised_documents: Documents
    distance: Mean
    distance_error: Error
    distance_documents: Documents
    previous: Mean
    previous_error: Error
    previous_documents: Documents
    first: Mean
    first_error: Error
    first_documents: Documents
    self: Mean
    self_error: Error
    self_documents: Documents
    duplicate: Mean
    duplicate_error: Error
    duplicate_documents: Documents
    induction: Mean
    induction_error: Error
    induction_documents: Documents
    distance_variance: Mean
    distance_variance_error: Error
    distance_variance_documents: Documents
    documents: int
    windows: int
    tokens: int


class HeadPartRow(TypedDict):
    """A score, a bin, a token or an example of one head; what has no meaning there is null."""

    layer: LayerNumber
    head: HeadNumber
    part: Literal["score", "histogram", "token", "example"]
    name: Annotated[str, "Of the score, the histogram, the side; the kind of example."]
    query: str | None
    key: str | None
    path: str | None
    start: Annotated[float | None, "Of a bin; of an example's document."]
    end: float | None
    value: float | None
    error: float | None
    n: Annotated[int | None, "How many documents or windows; of an example its window."]


class ScatterRow(TypedDict):
    """Two scores of a head, each under its own name and with its error (`NAME_error`)."""

    layer: LayerNumber
    head: HeadNumber
    distance_from_median: Annotated[float, "In robust standard deviations."]
    outlier: bool


class DevelopmentRow(TypedDict):
    """A score of a head at a checkpoint."""

    layer: LayerNumber
    head: HeadNumber
    score: str
    checkpoint: str
    step: int | None
    mean: float | None
    error: float | None


class Scanned(TypedDict):
    """How much was scanned."""

    documents: int
    windows: int
    tokens: int


class ScoreObject(TypedDict):
    """A score over documents."""

    mean: float | None
    error: float | None
    documents: int


class BinObject(TypedDict):
    """A bin of a histogram; it ends before `end`, and is open where that is null."""

    start: float
    end: float | None
    value: float


class MassObject(TypedDict):
    """A token or a pair, and its mass."""

    query: str | None
    key: str | None
    mass: float


class ExampleObject(TypedDict):
    """A window with the strongest links of a head."""

    kind: Literal["top", "bin"]
    bin: int
    largest: float
    apart: float
    path: str
    start: int
    window: int
    tokens: list[str]
    queries: list[int]
    keys: list[int]
    weights: list[float]


class HeadAtlasObject(TypedDict):
    """`attnviz atlas FOLDER --head HEAD -f json`."""

    schema: str
    command: Literal["atlas"]
    made: MadeObject
    layer: LayerNumber
    head: HeadNumber
    scanned: Scanned
    sampled_windows: int
    scores: dict[str, ScoreObject]
    histograms: dict[Histogram, list[BinObject]]
    tokens: dict[Side, list[MassObject]]
    examples: list[ExampleObject]
