"""`attnviz.capture`: the attention of one text, recorded once, shown in every way, verified."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from attnviz.commands.show.command import ShowOptions, shown_of
from attnviz.commands.show.run import Shown, pieces_of
from attnviz.draw.titles import amount, transform_title
from attnviz.errors import UsageError, option
from attnviz.inputs import arrays
from attnviz.inputs.captures import load_capture
from attnviz.inputs.images import picture_of
from attnviz.kit import options as g
from attnviz.kit.bringing import with_links
from attnviz.kit.choose import plan_heads
from attnviz.kit.option import feature
from attnviz.kit.options import HeadNames
from attnviz.kit.prepare import TextOptions, prepare, side_of
from attnviz.kit.prepare import verify as run_verify
from attnviz.kit.result import notes_of
from attnviz.kit.values import AnyModel, FilePath, loaded, paired, path_of, texts_of, which_heads
from attnviz.kit.write import choose_format, encoded, write_bytes
from attnviz.records.apply import whole_exhibit
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.exhibit import links_of
from attnviz.records.heads import Head, listed
from attnviz.records.means import mean_of
from attnviz.records.places import time_label
from attnviz.records.rows import ColumnArray, Row, made_to_dict
from attnviz.records.tokens import Token
from attnviz.records.trace import Verified

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Link:
    """One query, one key, and how much the one attends to the other in one head.

    >>> link = attnviz.capture("a fluffy blue creature", heads="L3H2").links(top=1)[-1]
    >>> f"{link.query.label} → {link.key.label} {link.weight:.2f}"
    'creature → fluffy 0.52'
    """

    layer: int
    head: int
    query: Token
    key: Token
    weight: float


@dataclass(frozen=True, eq=False, repr=False)
class AttentionCapture:
    """The attention of one text: a thin handle over the capture record (`record`).

    A notebook shows it as a page.

    >>> attnviz.capture("a fluffy blue creature", heads="L3H2")
    <AttentionCapture builtin, 5 tokens, L3H2>
    """

    record: Capture
    _errors: Capture | None = None

    @property
    def errors(self) -> "AttentionCapture | None":
        """The standard errors of a mean over texts, in the place of weights; None of one text."""
        return None if self._errors is None else AttentionCapture(self._errors)

    @property
    def text(self) -> str:
        """The text that was run."""
        return self.record.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens that attend; their `index` is their row in every pattern."""
        return self.record.query_tokens

    @property
    def key_tokens(self) -> tuple[Token, ...]:
        """The tokens that are attended to; their `index` is their column in every pattern."""
        return self.record.key_tokens

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that were recorded, in order."""
        return self.record.heads

    def __repr__(self) -> str:
        held, size = listed(self.heads), amount(len(self.tokens), "token")
        means = [transform_title(t) for t in self.record.transforms if hasattr(t, "texts")]
        return f"<AttentionCapture {', '.join([self.record.model.name, size, *means, held])}>"

    def _repr_html_(self) -> str:
        """The page for a notebook, in a frame that can reach nothing outside."""
        from attnviz.commands.show.page import framed

        return framed(self.record)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the text: that it was cut, or is unlike those of the training."""
        return notes_of([self.record])

    @property
    def made(self) -> Row:
        """The facts of how it was made: model, text, versions and options, as JSON carries them."""
        return made_to_dict([self.record])

    def pattern(self, layer: int, head: int) -> FloatArray:
        """The weights of one head, float32 (n_queries, n_keys), read-only.

        Rows sum to 1; to less where a part goes to a sink that is not a token (`record.sinks`).

        Raises:
            UsageError: the head was not recorded.
        """
        try:
            return self.record.weights(Head(layer, head))
        except KeyError:
            raise UsageError(
                f"the capture does not hold {Head(layer, head)}",
                "capture the text again with this head, or with heads=None for all",
            ) from None

    def links(
        self, top: int | None = None, *, least: float = 0.0, heads: HeadNames | None = None
    ) -> list[Link]:
        """The links by head and query, strongest first; never one that the mask forbids.

        Args:
            top: the most keys for each query of each head; None means all.
            least: the smallest weight.
            heads: only these of the recorded heads (`"L1H2"`, `"1.2,1.3"`); None means all.

        Raises:
            UsageError: a head that was not recorded, or a `top` under 1.
        """
        shown = self.show(heads=heads or self.heads, top=top, least=least, chars=False)
        exhibit = shown.record
        queries, keys = exhibit.capture.query_tokens, exhibit.capture.key_tokens
        return [
            Link(head.layer, head.head, queries[query], keys[key], weight)
            for head, head_map in zip(exhibit.capture.heads, exhibit.maps, strict=True)
            for query, key, weight in links_of(exhibit, head_map).rows()
        ]

    def show(self, view: str | None = None, **options: Unpack[ShowOptions]) -> Shown:
        """Put heads of the capture on show; see `attnviz.show`."""
        return shown_of(self.record, view, options)

    def to_columns(self, **options: Unpack[ShowOptions]) -> dict[str, ColumnArray]:
        """The links by column; see `Shown.to_columns`.

        Without `heads` those of all heads; no parts are merged unless `chars` or `words` says so.
        """
        if not (options.get("heads") or options.get("layers")):
            options = {**options, "heads": self.heads}
        if "chars" not in options:
            options = {**options, "chars": False}
        return self.show(**options).to_columns()

    def figure(self, view: str = "heatmap", **options: Unpack[ShowOptions]) -> "Figure":
        """A picture; see `attnviz.show`.

        Args:
            view: "heatmap" for one head, or "grid" for every head in miniature.
            options: those of `ShowOptions`.
        """
        return self.show(view, **options).figure()

    def page(self) -> str:
        """The interactive page of all heads, one HTML document that needs no network.

        Raises:
            InputError: it would be too large for a browser.
        """
        return "".join(map(str, pieces_of(whole_exhibit(self.record), "html")))

    def save(self, path: FilePath) -> None:
        """Save everything as an `.npz`, which `attnviz.load` and `attnviz show` read.

        Raises:
            UsageError: the name does not end in `.npz`.
            OutputError: the file cannot be written.
        """
        if choose_format(Path(path), None, False).name != "npz":
            raise UsageError(f"{str(path)!r} does not end in .npz", "name it capture.npz")
        write_bytes(Path(path), encoded(pieces_of(whole_exhibit(self.record), "npz")))


@feature()
def capture(
    text: str | Sequence[str] = "",
    model: AnyModel = "builtin",
    *,
    heads: g.HeadsNamed = None,
    layers: g.LayersNamed = None,
    scores: bool = False,
    weighted: bool = False,
    contribution: bool = False,
    image: g.Images = (),
    audio: g.Sound = None,
    start: g.StartSecond = 0.0,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPairs = None,
    target: g.TargetText = None,
) -> AttentionCapture:
    """Run a text through a model and record which tokens attend to which.

    >>> attnviz.capture("a fluffy blue creature").pattern(3, 2).shape
    (5, 5)

    Args:
        text: the text, or a file for a model that reads only images; or several with as many
            tokens each, whose mean pattern is recorded, and its standard `errors`.
        model: a name as for `load_model`, or a loaded model.
        scores: record scores, before mask and softmax, in place of weights.
        weighted: also record the norms of values, so that `show(weighted=True)` works later.
        contribution: record contribution weights in place of weights.
    """
    texts, model = texts_of(text), loaded(model, implicit=True)
    inner, which = model._loaded, which_heads(model, layers, heads, everything=True)
    options = model._text_options(bos, special, truncate, target, image, audio, start)
    options = replace(options, matched=True)
    each = zip(texts, paired(options, text_pair, texts), strict=True)
    inner = side_of(inner, texts[0], options)
    plan = plan_heads(inner.identity, inner.card.heads, which)

    def recorded(one: str, how: TextOptions) -> Capture:
        prepared = prepare(inner, one, how).with_gates()
        run = prepared.record(plan.recorded, scores=scores, contributions=contribution)
        run = with_links(prepared, run) if isinstance(text, str) else run
        return prepared.with_norms(run) if weighted else run

    if isinstance(text, str):
        return AttentionCapture(recorded(*next(each)))
    if weighted:
        raise UsageError(
            "norms of values have no place in a mean over texts", f"leave {option('weighted')} out"
        )
    mean, errors = mean_of([recorded(one, how) for one, how in each])
    return AttentionCapture(mean, errors)


def load(path: FilePath) -> AttentionCapture:
    """Load a saved capture; no torch is loaded.

    >>> attnviz.capture("a fluffy blue creature").save("creature.npz")
    >>> attnviz.load("creature.npz")
    <AttentionCapture builtin, 5 tokens, L0H0 to L4H3 (20 heads)>

    Args:
        path: an `.npz` that `AttentionCapture.save` or `attnviz show -o` wrote; or the rows of an
            engine in a `.jsonl` (docs/formats.md).

    Raises:
        InputError: there is no such file, or it is no capture.
    """
    return AttentionCapture(load_capture(Path(path_of("path", path))))


def from_attention(
    attention: Any,
    tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    *,
    queries: Sequence[int] | int | None = None,
    axes: str | None = None,
    index: int | None = None,
    model: str = "array",
    causal: bool | None = None,
    image: "g.ImageFile | None" = None,
    grid: tuple[int, int] | None = None,
    image_token: str = "<image>",
    times: float | Sequence[tuple[float, float]] | None = None,
) -> AttentionCapture:
    """A capture of weights that another program computed.

    >>> import numpy
    >>> uniform = numpy.tril(numpy.ones((3, 3))) / numpy.array([[1], [2], [3]])
    >>> attnviz.from_attention(uniform, ["the", "Ġcat", "Ġsat"]).links(top=1)[-1].key.label
    'the'

    Args:
        attention: weights (n_queries, n_keys) of one head, (heads, n_queries, n_keys) of one
            layer, (layers, heads, n_queries, n_keys) of a model, or a sequence with the array of
            each layer, None for a layer without attention; a batch of one may stand before the
            heads, as in `output.attentions` of transformers. Or a sequence of the steps in which
            `generate` wrote, each with its layers. Arrays or tensors of any type. Or the rows of an
            engine as objects, a step each, which bring their tokens (docs/formats.md).
        tokens: the query tokens, as a tokenizer's `convert_ids_to_tokens` gives them, or texts.
        key_tokens: the tokens that are attended to, where they are others (cross-attention).
        queries: the positions of the tokens whose rows these are, or are to be kept, where that is
            not all; they follow each other.
        axes: those of each array in another order, a letter for each of layers, batch, heads,
            queries and keys: `"qhk"`, `"bqhk"`, `"hlqk"`.
        index: which one of a batch of several texts.
        model: the name for titles.
        causal: whether a query attends to itself and earlier tokens; None: where no weight says
            otherwise.
        image: a file, an array (height, width, 3) of bytes, or an image of pillow, which the tokens
            that read `image_token` stand for, row by row.
        grid: how many (rows, columns) of tokens there are of the whole image; None: a square.
        times: the keys are frames of a sound: how long one is, or seconds (begin, end) of each.

    Raises:
        UsageError: a shape that does not fit, or numbers that are not attention weights.
    """
    if isinstance(attention, list | tuple) and isinstance(next(iter(attention), None), dict):
        others = tokens, key_tokens, queries, axes, index, image, grid, times
        return _of_steps(attention, causal, others)
    layers = arrays.layers_of(attention, axes, index)
    if times is not None and key_tokens is not None:
        raise UsageError("frames of a sound are not tokens", f"leave {option('key_tokens')} out")
    if times is not None:
        spans = arrays.spans_of(times, layers[0][1].shape[2])
        key_tokens = [time_label(begin, end - begin) for begin, end in spans]
    unread = arrays.of_steps(attention)
    record = arrays.capture_of(
        layers, tokens, key_tokens, queries, model=model, causal=causal, unread=unread
    )
    if times is not None:
        record = arrays.with_times(record, spans)
    if image is not None:
        record = arrays.with_image(record, picture_of(image), grid, image_token)
    elif grid is not None:
        raise UsageError(f"{option('grid')} is of an image", f"give it as {option('image')}")
    return AttentionCapture(record)


def _of_steps(
    rows: Sequence[object], causal: bool | None, others: Sequence[object]
) -> AttentionCapture:
    if any(each is not None for each in others):
        hint = "leave the other arguments out"
        raise UsageError("the rows of an engine bring their tokens", hint)
    from attnviz.inputs.steps import capture_of_steps

    return AttentionCapture(capture_of_steps(rows, causal=causal))


@feature()
def verify(
    text: str,
    model: AnyModel = "builtin",
    *,
    image: g.Images = (),
    audio: g.Sound = None,
    start: g.StartSecond = 0.0,
    bos: g.Bos = None,
    special: g.Special = False,
    truncate: g.Truncate = None,
    text_pair: g.TextPair = None,
    target: g.TargetText = None,
) -> Verified:
    """Compare a model's output with and without capture, and its weights with eager attention.

    Every row of every layer is checked: its weights times the values are what the model's attention
    function returned.

    >>> attnviz.verify("a fluffy blue creature").exact
    True

    Args:
        text: the text.
        model: a name as for `load_model`, or a loaded model.

    Returns:
        The largest differences, over all and by layer, whether they are `exact`, as far as float32
        can be, and the `fingerprint` of all bytes of the weights.

    Raises:
        UsageError: transformers does not have this model.
        ModelError: the weights of the model's attention function are not known; or the matrices
            of all layers, or the model in float64, do not fit into memory.
        AttnvizError: the text, the model or an option cannot be used.
    """
    model = loaded(model)
    options = model._text_options(bos, special, truncate, target, image, audio, start, text_pair)
    from attnviz.models.weights import with_all_bytes  # torch

    return run_verify(with_all_bytes(model._loaded), model._source, text, options)
