"""Text to capture to exhibit. Read this first: it sets the order of everything.

    load ─► encode ─► fit the context ─► run with hooks ─► capture ─► choose ─► exhibit

Nothing here prints; torch is imported only when a model is loaded.
"""

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from attnviz.analyses.default_head import default_head
from attnviz.data.capture import Capture, FloatArray, Kind, LayerPattern, PatternBlock, Wanted
from attnviz.data.exhibit import Exhibit, HeadMap, Reduction
from attnviz.data.heads import Head, choose_heads, every_head
from attnviz.data.positions import find_positions, last_word, one_position
from attnviz.data.tokens import Token, numbered
from attnviz.data.trace import EmbeddingTrace, HeadTrace, OtherRow
from attnviz.data.worked import Initialisation, Matrices, Similarity, Way, Worked
from attnviz.errors import InputError, UsageError
from attnviz.inputs.decoding import check_encodable, check_not_blank
from attnviz.inputs.examples import CHARACTERS, HEADS, WIDTH, Example, three_inputs
from attnviz.models.catalog import Source
from attnviz.transforms.merge import Unit, merged
from attnviz.transforms.reduce import Over, reduce_maps

if TYPE_CHECKING:
    from attnviz.models.embeddings import EmbeddingModel
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.tokenizer import TextTokenizer

Side: TypeAlias = Literal["left", "right"]


@dataclass(frozen=True)
class TextOptions:
    """How a text becomes tokens.

    `bos` None means as the model was trained; `special` reads `<|endoftext|>` in the
    text as the special token; `truncate` cuts a text that is too long from that side;
    `target` is what an encoder-decoder is to have written.
    """

    bos: bool | None = None
    special: bool = False
    truncate: Side | None = None
    target: str | None = None


@dataclass(frozen=True)
class HeadOptions:
    """Which heads: `layers` and `heads` as on the command line, or `everything`, or a default."""

    layers: str | None = None
    heads: str | None = None
    everything: bool = False

    @property
    def chosen(self) -> bool:
        """Did the user name layers or heads?"""
        return self.layers is not None or self.heads is not None


@dataclass(frozen=True)
class ShowOptions:
    """What to show of a capture; `queries` and `keys` as on the command line.

    `merge` joins the pieces of characters or of words first. `one_query` asks for exactly
    one position; without a name, the last word's.
    """

    merge: Unit | None = None
    queries: Sequence[str] = ()
    keys: Sequence[str] = ()
    top: int | None = None
    least: float = 0.0
    reduce: Reduction | None = None
    over: Over = "all"
    one_query: bool = False


def load_model(source: Source) -> "LoadedModel":
    """Load the model; the one place where torch comes in.

    Raises:
        ModelError: it cannot be found, fetched or loaded.
    """
    from attnviz.models.catalog import load

    return load(source)


def encode(tokenizer: "TextTokenizer", text: str, options: TextOptions) -> tuple[Token, ...]:
    """All tokens of a text, be they more than the model takes.

    Raises:
        InputError: nothing but blanks, or no text that UTF-8 can write.
        UsageError: a beginning token was asked for, and the model has none.
    """
    check_not_blank(text, "the text")
    check_encodable(text)
    if options.bos and tokenizer.bos_id is None and not tokenizer.framed:
        raise UsageError("this model has no beginning token", "leave --bos out")
    bos = tokenizer.bos if options.bos is None else options.bos
    return tokenizer.encode(text, bos=bos, special=options.special)


@dataclass(frozen=True)
class Fitted:
    """Tokens that fit the context, and how many were left out before and after them."""

    tokens: tuple[Token, ...]
    left_out: tuple[int, int] = (0, 0)


def fit(tokens: tuple[Token, ...], context: int, side: Side | None) -> Fitted:
    """Cut to the context, on the side asked for; special tokens at the ends stay.

    Raises:
        InputError: the text is too long and no side was named.
    """
    if side not in (None, "left", "right"):
        raise UsageError(f"truncate is {side!r}", "give left or right")
    more = len(tokens) - context
    if more <= 0:
        return Fitted(tokens)
    if side is None:
        raise InputError(
            f"the text has {len(tokens)} tokens, but the model takes at most {context}",
            "shorten it, or cut it with --truncate left or --truncate right",
        )
    first = tokens[:1] if tokens[0].special else ()
    last = tokens[-1:] if tokens[-1].special and len(tokens) > 1 else ()
    text = tokens[len(first) : len(tokens) - len(last)]
    if side == "left":
        return Fitted(numbered(first + text[more:] + last), (more, 0))
    return Fitted(numbered(first + text[:-more] + last), (0, more))


@dataclass
class KeepEverything:
    """A consumer that keeps every block whole, by layer."""

    shape: tuple[int, int]
    kept: dict[int, tuple[tuple[int, ...], FloatArray]] = field(default_factory=dict)

    def __call__(self, block: PatternBlock) -> None:
        if block.layer not in self.kept:
            zeros = np.zeros((len(block.heads), *self.shape), np.float32)
            self.kept[block.layer] = block.heads, zeros
        columns = block.weights.shape[2]
        self.kept[block.layer][1][:, block.queries, :columns] = block.weights

    def layers(self) -> tuple[LayerPattern, ...]:
        """What was kept, by layer."""
        return tuple(LayerPattern(layer, *kept) for layer, kept in sorted(self.kept.items()))


def heads_to_record(model: "LoadedModel", options: HeadOptions) -> tuple[Head, ...]:
    """The heads that a run must record: those named, else those a default is picked from.

    Raises:
        UsageError: a head that the model does not have.
    """
    if options.chosen:
        return choose_heads(model.identity.heads_per_layer, options.layers, options.heads)
    named = tuple(sorted({named.head for named in model.card.heads}))
    if named and not options.everything:
        return named
    return every_head(model.identity.heads_per_layer)


def capture(
    model: "LoadedModel", text: str, heads: Sequence[Head], options: TextOptions
) -> Capture:
    """Run a text and record the patterns of these heads.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: a beginning token was asked for, and the model has none.
    """
    fitted = fit(encode(model.tokenizer, text, options), model.tokenizer.context, options.truncate)
    source = fitted.tokens
    written, target = _target(model, source, options.target)
    wanted: dict[int, tuple[int, ...]] = {}
    for layer, head in sorted(heads):
        wanted[layer] = (*wanted.get(layer, ()), head)
    sequences = _rows_and_columns(model.kind, source, target)
    keep = KeepEverything((len(sequences[0]), len(sequences[1])))
    model.run([t.id for t in source], Wanted(wanted), keep, [t.id for t in target])
    return Capture(
        text=text,
        query_tokens=sequences[0],
        key_tokens=sequences[1],
        layers=keep.layers(),
        model=model.identity,
        bos=source[0].special,
        causal=model.causal,
        kind=model.kind,
        target=written,
        left_out=fitted.left_out,
        versions={"attnviz": importlib.metadata.version("attnviz"), **model.versions()},
        named_heads=model.card.heads,
    )


def _target(
    model: "LoadedModel", source: Sequence[Token], given: str | None
) -> tuple[str, tuple[Token, ...]]:
    """The text that an encoder-decoder writes, or is given, with its tokens; else nothing."""
    if model.kind in ("self", "encoder"):
        if given is not None:
            raise UsageError(
                "--target is the text that an encoder-decoder writes",
                "use --model translator, with --kind cross or decoder",
            )
        return "", ()
    if given is None:
        written = model.write([token.id for token in source])
        if not written[1]:
            raise InputError("the model wrote nothing for this text", "give a --target")
        return written
    check_not_blank(given, "the target")
    check_encodable(given)
    tokens = model.read_target(given)
    if len(tokens) >= model.tokenizer.context:
        raise InputError(
            f"the target has {len(tokens)} tokens, but the model writes at most "
            f"{model.tokenizer.context - 1}",
            "shorten it",
        )
    return given, tokens


def _rows_and_columns(
    kind: Kind, source: tuple[Token, ...], target: tuple[Token, ...]
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """Query tokens and key tokens: a decoder's row is named by the token that it produces."""
    if kind == "cross":
        return target, source
    if kind == "decoder":
        begin = Token(0, -1, "", 0, 0, special=True)
        return target, numbered((begin, *target[:-1]))
    return source, source


@dataclass(frozen=True)
class Subject:
    """What to explain: `head` and `query` as on the command line (None: what `show` would pick,
    and the last word), and another similarity to compare with the model's own."""

    head: str | None = None
    query: str | None = None
    similarity: Similarity | None = None


@dataclass(frozen=True)
class Traced:
    """A head's calculation, why just this head where nobody chose it, what the text lost to
    fit, and the row by another similarity."""

    trace: HeadTrace
    about: str
    left_out: tuple[int, int] = (0, 0)
    other: OtherRow | None = None


def explain(model: "LoadedModel", text: str, subject: Subject, options: TextOptions) -> Traced:
    """Run a text and record all that one head computes for one query.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: more than one head or position, or one that is not there.
    """
    from attnviz.models.similarity import other_row

    chosen = HeadOptions(heads=subject.head)
    captured = capture(model, text, heads_to_record(model, chosen), options)
    picked = pick_heads(captured, chosen)
    if len(picked.capture.heads) != 1:
        raise UsageError(
            f"--head {subject.head} names {len(picked.capture.heads)} heads",
            "one is explained: --head L1H2",
        )
    tokens = captured.query_tokens
    position = last_word(tokens)
    if subject.query is not None:
        position = one_position(tokens, subject.query, "--query")
    trace = model.trace(text, tokens, picked.capture.heads[0], position)
    other = other_row(trace, subject.similarity) if subject.similarity else None
    about = f"{picked.title} ({picked.why})" if picked.why else picked.title
    return Traced(trace, about, captured.left_out, other)


def explain_embeddings(
    model: "EmbeddingModel", text: str, query: str | None, options: TextOptions
) -> tuple[EmbeddingTrace, tuple[int, int]]:
    """Compare the token embeddings of a text with each other; and what the text lost to fit.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: a query that is not in the text.
    """
    fitted = fit(encode(model.tokenizer, text, options), model.tokenizer.context, options.truncate)
    position = last_word(fitted.tokens)
    if query is not None:
        position = one_position(fitted.tokens, query, "--query")
    return model.compare(text, fitted.tokens, position), fitted.left_out


@dataclass(frozen=True)
class Drawing:
    """How the random numbers of an example are drawn."""

    init: Initialisation = "normal"
    seed: int = 0


def work_example(name: Example, way: Way, drawing: Drawing) -> Worked:
    """One of the worked examples; no model is loaded."""
    from attnviz.models.worked import random_matrices, work_out

    if name == "three-inputs":
        return work_out(three_inputs(), way)
    given = random_matrices(CHARACTERS, WIDTH, HEADS, drawing.init, drawing.seed)
    return work_out(given, way)


def work_matrices(given: Matrices, way: Way) -> Worked:
    """A user's own matrices, worked out.

    Raises:
        InputError: they are so large that a product or a softmax is not finite.
    """
    from attnviz.models.worked import work_out

    worked = work_out(given, way)
    if not all(np.isfinite(array).all() for array in (worked.pattern, worked.output)):
        raise InputError("the numbers of these matrices are too large", "scale them down")
    return worked


@dataclass(frozen=True)
class Picked:
    """The part of a capture to be shown, and which heads these are.

    `title` names them; `why` says why just these, where nobody chose them.
    """

    capture: Capture
    title: str
    why: str = ""

    @property
    def about(self) -> str:
        """The sentence above every view."""
        return f"{self.title} ({self.why}; others: --head all)" if self.why else self.title


def pick_heads(captured: Capture, options: HeadOptions) -> Picked:
    """Pick the heads to show, from a fresh or a saved capture.

    Raises:
        UsageError: a head that the model does not have, or that the capture lacks.
    """
    if options.chosen:
        heads = choose_heads(captured.model.heads_per_layer, options.layers, options.heads)
        missing = [str(head) for head in heads if head not in captured.heads]
        if missing:
            raise UsageError(
                f"the capture does not hold {', '.join(missing[:8])}",
                f"it holds {listed(captured.heads)}; capture the text again with --head all",
            )
        return Picked(captured.only(heads), listed(heads))
    if options.everything:
        return Picked(captured, listed(captured.heads))
    if sum(captured.model.heads_per_layer) == 1:
        return Picked(captured, captured.named_heads[0].title if captured.named_heads else "L0H0")
    choice = default_head(captured)
    return Picked(captured.only((choice.head,)), f"{choice.head}: {choice.title}", choice.why)


def listed(heads: Sequence[Head]) -> str:
    """`L0H1, L2H3`, or `L0H0 to L3H3 (16 heads)` where there are many."""
    names = [str(head) for head in heads]
    return (
        ", ".join(names) if len(names) <= 8 else f"{names[0]} to {names[-1]} ({len(names)} heads)"
    )


def exhibit(picked: Picked, options: ShowOptions) -> Exhibit:
    """Put heads on show: reduced if asked for, filtered by query, key and weight.

    Raises:
        UsageError: a query or key that is not in the text, or an ambiguous one where
            one position is needed.
    """
    captured = merged(picked.capture, options.merge) if options.merge else picked.capture
    maps = tuple(HeadMap(captured.weights(h), h.layer, h.head) for h in captured.heads)
    if options.reduce is not None:
        maps = reduce_maps(maps, options.reduce, options.over)
        done = f"{options.reduce} over {_OVER[options.over]}"
        captured = replace(captured, transforms=(*captured.transforms, done))
    return Exhibit(
        capture=captured,
        maps=maps,
        queries=_queries(captured.query_tokens, options),
        keys=_positions(captured.key_tokens, options.keys, "--key"),
        top=options.top,
        least=options.least,
        about=picked.about,
    )


_OVER: dict[Over, str] = {"heads": "heads", "layers": "layers", "all": "all of these"}


def _queries(tokens: Sequence[Token], options: ShowOptions) -> tuple[int, ...]:
    if not options.one_query:
        return _positions(tokens, options.queries, "--query")
    if not options.queries:
        return (last_word(tokens),)
    if len(options.queries) > 1:
        raise UsageError("this view shows one query", "give --query once")
    return (one_position(tokens, options.queries[0], "--query"),)


def _positions(tokens: Sequence[Token], names: Sequence[str], option: str) -> tuple[int, ...]:
    return find_positions(tokens, names, option) if names else tuple(range(len(tokens)))
