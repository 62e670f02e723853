"""Runs with interventions, and the tokens that are measured after a text."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from attnviz.draw.titles import amount
from attnviz.errors import InputError, UsageError, option, series
from attnviz.kit.prepare import HeadOptions, Prepared, encode, prepare
from attnviz.models.placement import BATCH_TOKENS
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import choose_heads, choose_layers
from attnviz.records.interventions import (
    ChangedRun,
    Intervention,
    Interventions,
    Site,
    SiteKind,
    SourceRun,
)
from attnviz.records.parts import Part
from attnviz.records.paths import Paths, Receiver
from attnviz.records.places import GivenBeside
from attnviz.records.positions import find_matches
from attnviz.records.predict import Candidate, KeepNextTokens, LogitRows, NextTokens, Question
from attnviz.records.tokens import Token, set_within

if TYPE_CHECKING:
    from attnviz.inputs.vectors import Steering, StreamVector
    from attnviz.models.loaded import LoadedModel


def question_of(prepared: Prepared, answer: str | None, versus: str | None) -> Question | None:
    """The answer, and the token that it is compared with; None if none is asked for.

    `answer`, `versus`: words, with a space before them or without.
    """
    if answer is None:
        if versus is not None:
            raise UsageError(
                f"{option('versus')} is for an {option('answer')}", f"add {option('answer')}"
            )
        return None
    first = candidate_after(prepared, answer, "answer")
    if versus is None:
        return Question(first)
    other = candidate_after(prepared, versus, "versus")
    if other.id == first.id and not first.exact.strip(" Ġ▁"):  # the space is its own token
        first = replace(candidate_after(prepared, answer, "answer", after=" "), begins=answer)
        other = replace(candidate_after(prepared, versus, "versus", after=" "), begins=versus)
    if other.id == first.id:
        raise UsageError(
            f"{option('versus', repr(versus))} begins with the same token as "
            f"{option('answer', repr(answer))}: {first.label}",
            "name another one",
        )
    return Question(first, other)


# Scripts without spaces between words: Chinese, Japanese, Thai and others.
UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff01-\uff9f𠀀-𿿿]"
# Ends of texts without a space before the next word: opening marks, `2+2=`, `well-`.
OPEN = re.compile(
    rf"""(?:{UNSPACED}|[\s(\[{{“‘«„¿¡$€£¥_/\\]|(?:^|[\s(\[{{])["'`#@]|[^\s=+*<>~^&|–—-][=+*<>~^&|–—-]+)$"""
)
# Words without a space before them; stops only unless the text has spaces before them.
CLOSES, STOPS = re.compile(rf"\s|['’]\w|[])}}»”’%°/]|{UNSPACED}"), re.compile(r"[.,;:!?…]")
ANCHORS = "\n", "("  # texts with which a tokenizer joins no word


def space_due(text: str, word: str) -> bool:
    """Whether a text and the word that follows it need a space between them."""
    stop = STOPS.match(word) and not re.search(r"\s[.,;:!?]", text)
    return bool(text) and not (OPEN.search(text) or CLOSES.match(word) or stop)


def candidate_after(prepared: Prepared, word: str, parameter: str, *, after: str = "") -> Candidate:
    """The token of a word that follows the text; the first of several tokens.

    If the tokenizer joins the word with the text, the token is as after a text without joins.
    `parameter`: the one that holds the word, for messages. `after`: follows the text.
    """
    text, tokenizer = prepared.empty.text + after, prepared.model.tokenizer
    alone = replace(prepared.options, text_pair=None)  # its text is that of both
    encode(tokenizer, text + word, alone)  # its errors are the word's
    spaces = (" ", "") if space_due(text, word) else ("", " ")
    for space, before in product(spaces, (text, *ANCHORS)):
        start, ids = tokenizer.ids(before), tokenizer.ids(before + space + word)
        own = ids[len(start) :] if ids[: len(start)] == start else []
        if own and (space or before is text or tokenizer.exact(own[0])[:1] != " "):
            return replace(candidate(prepared, own[0]), begins="" if len(own) == 1 else word)
    raise UsageError(f"{option(parameter, repr(word))} is not a token here", "give a word")


def candidate(prepared: Prepared, id_: int) -> Candidate:
    """A token of the vocabulary as a candidate without a prediction."""
    tokenizer = prepared.model.tokenizer
    return Candidate(id_, tokenizer.label(id_), 0.0, tokenizer.exact(id_))


def told_apart(prepared: Prepared, one: int, other: int) -> Question:
    """The question of one token rather than another: the likeliest after a text and its source.

    Raises:
        InputError: they are the same.
    """
    if one == other:
        raise InputError(
            f"{prepared.model.tokenizer.label(one)!r} is the likeliest token after both texts",
            f"name an {option('answer')} and a {option('versus')}",
        )
    return Question(candidate(prepared, one), candidate(prepared, other))


def keep_next_tokens(prepared: Prepared, top: int, *, follow: bool = True) -> KeepNextTokens:
    """A consumer of logits; `follow`: it also keeps the token that follows each position."""
    tokenizer = prepared.model.tokenizer
    ids = prepared.ids if follow else ()
    return KeepNextTokens(ids, top, tokenizer.label, tokenizer.exact)


def next_tokens_after(prepared: Prepared, top: int, last: FloatArray) -> NextTokens:
    """The likeliest next tokens; `last`: the logits (V) after the text."""
    keep = keep_next_tokens(prepared, top)
    keep(LogitRows(None, np.array([len(prepared.ids) - 1]), last[None]))
    return keep.next_tokens[0]


# Parts of a model, and the vectors that are replaced.


def named_parts(model: "LoadedModel", heads: HeadOptions, mlps: str | None) -> list[Part]:
    """The heads and the MLPs that are named."""
    heads_per_layer, parts = model.identity.heads_per_layer, list[Part]()
    if heads.named:
        chosen = choose_heads(heads_per_layer, heads.layers, heads.heads)
        parts += [Part("head", head.layer, head.head) for head in chosen]
    if mlps is not None:
        layers = choose_layers(len(heads_per_layer), mlps, "mlps")
        parts += [Part("mlp", layer) for layer in layers]
    return parts


def site_of(part: Part) -> Site:
    """The vector by which a head or an MLP acts; or the stream at the input of a layer."""
    kind: SiteKind = "mlp" if part.head is None else "head"
    return Site("residual" if part.kind == "residual" else kind, part.layer or 0, part.head)


def of_stream(model: "LoadedModel", vector: "StreamVector") -> FloatArray:
    """The numbers of a vector (d) of the model's stream.

    Raises:
        InputError: it is of another width.
    """
    width, name = model.stream_width, model.identity.name
    if len(vector.values) != width:
        raise InputError(
            f"{vector.name} has {len(vector.values):,} numbers, and the stream of {name} {width:,}",
            "give a vector of this model",
        )
    return vector.values


def steered(model: "LoadedModel", steering: "Steering | None") -> "LoadedModel":
    """The model with vectors added to its stream, which its name then states; None: as it is."""
    if steering is None:
        return model
    added, said = dict[int, FloatArray](), list[str]()
    times = "" if steering.strength == 1 else f" × {steering.strength:g}"
    for where, vector in steering.vectors:
        layers = choose_layers(len(model.identity.heads_per_layer), where, "add")
        with np.errstate(over="ignore"):
            values = steering.strength * of_stream(model, vector)
        if not np.isfinite(values).all():
            raise InputError(
                f"{vector.name} × {steering.strength:g} is too large", "give a smaller strength"
            )
        added |= {layer: added.get(layer, 0) + values for layer in layers}
        said.append(f"{vector.name}{times} added at layer {layers[0]}")
    return model.steered(added, series(said))


SAME = 1e-4
"""Measured values that are nearer than this (in logits) do not differ."""
K = TypeVar("K")
Progress: TypeAlias = Callable[[int, int], None]
"""A function of the number of finished runs, and of all runs."""


class GaveWay(Exception):
    """Raised by what watches a run whose result is no longer wanted."""


_WATCHING: ContextVar[Progress | None] = ContextVar("watching", default=None)
_READING: ContextVar[Callable[[str], object]] = ContextVar("reading", default=str)


@contextmanager
def watched(progress: Progress, written: Callable[[str], object] = str) -> Iterator[None]:
    """Call this for all runs within a `with` block: a bar, or a function that may raise to stop.

    `written`: is given the text of each token that an answer gets; it may raise, too.
    """
    with set_within(_WATCHING, progress), set_within(_READING, written):
        yield


def tell_written(text: str) -> None:
    """Report a token of an answer."""
    _READING.get()(text)


def told_of(items: Sequence[K]) -> Iterator[K]:
    """Yield the items, each a run, and report the number of finished ones."""
    for done, item in enumerate(items, start=1):
        yield item
        if tell := _WATCHING.get():
            tell(done, len(items))


@contextmanager
def counted_as_one(total: int) -> Iterator[None]:
    """Report the runs of several texts together, not of each by itself."""
    tell, done = _WATCHING.get(), 0

    def count(_done: int, _of: int) -> None:
        nonlocal done
        done += 1
        if tell:
            tell(done, total)

    with watched(count):
        yield


def intervene(
    prepared: Prepared,
    interventions: Sequence[Intervention],
    keep: Callable[[ChangedRun], K],
    *,
    whole: bool = False,
    source: SourceRun | None = None,
    given: Mapping[Site, FloatArray] | None = None,
) -> list[K]:
    """Run interventions, and return the part that `keep` takes from each run.

    `whole`, `source` and `given` as in `Interventions`.
    """
    check_memory(prepared)
    kept, progress = dict[int, K](), _WATCHING.get()

    def consume(run: ChangedRun) -> None:
        kept[run.index] = keep(run)
        if progress and len(interventions) > 1:
            progress(len(kept), len(interventions))

    wanted = Interventions(interventions, whole, source, given=given or {})
    prepared.model.intervene(prepared.ids, wanted, consume)
    return [kept[i] for i in range(len(interventions))]


def patch_paths(
    prepared: Prepared, paths: Paths, keep: Callable[[FloatArray], K]
) -> dict[tuple[int, Receiver], K]:
    """Patch paths, and return the part that `keep` takes from the last logits (V) of each."""
    check_memory(prepared, kept=len(paths.receivers))
    kept, progress = dict[tuple[int, Receiver], K](), _WATCHING.get()
    runs = sum(to.follows(edit.site) for edit in paths.senders for to in paths.receivers)

    def consume(sender: int, receiver: Receiver, last: FloatArray) -> None:
        kept[sender, receiver] = keep(last)
        if progress:
            progress(len(kept), runs)

    prepared.model.paths(prepared.ids, paths, consume)
    return kept


def check_memory(prepared: Prepared, sites: Collection[Site] = (), *, kept: int = 0) -> None:
    """Check that batches of runs fit, with the vectors of sites, and of `kept` more, everywhere.

    The heads of a layer count as one.
    """
    kept += len({site[:2] for site in sites})
    n, _ = prepared.shape
    own = prepared.model.working_bytes(n, n)  # more than twelve vectors per position
    more = max(0, BATCH_TOKENS // n - 1) * own + kept * own // 12
    logits = 4 * max(n, BATCH_TOKENS) * prepared.model.tokenizer.vocab_size
    prepared.budget.check(more + logits, "shorten the text")


# Two texts, aligned: the position of a source for each of a text.


def aligned(text: Capture, source: Capture, words: Sequence[str]) -> tuple[int | None, ...]:
    """The position of the source for each position of the text; None without one.

    Texts of one length are aligned position by position. With `words`, such as `blue=red`, the
    tokens that both texts begin and end with are aligned, and these words with each other,
    occurrence by occurrence: token by token if they have equally many, else the last tokens.

    Raises:
        InputError: the texts have different lengths, and no words are given.
    """
    ours, theirs = text.query_tokens, source.query_tokens
    if not words:
        if len(ours) != len(theirs):
            raise InputError(
                f"the text has {amount(len(ours), 'token')}, and the source {len(theirs)}",
                "give two texts of one length, or align words of theirs with "
                + option("align", "WORD=WORD"),
            )
        return tuple(range(len(ours)))
    n = len(ours)
    behind = _alike(ours[::-1], theirs[::-1])
    places = {n - 1 - i: len(theirs) - 1 - i for i in range(behind)}
    places |= {i: i for i in range(min(_alike(ours, theirs), min(n, len(theirs)) - behind))}
    for pair in words:
        places |= _of_words(text, source, pair)
    return tuple(places.get(position) for position in range(n))


def source_of(
    ours: Prepared, source: str, words: Sequence[str], given: Sequence[GivenBeside] = ()
) -> tuple[Prepared, SourceRun, tuple[int | None, ...]]:
    """The source, its run for the text, and the position in it for each of the text's.

    `given`: what the source has beside it in the place of what the text has, of the same grids;
    none: the same.

    Raises:
        InputError: it is the text itself, or as for `aligned`; or the grids of images differ.
    """
    options = replace(ours.options, given=tuple(given) or ours.options.given)
    theirs = prepare(ours.model, source, options)
    pairs = [*zip(ours.options.pictures, options.pictures, strict=False)]
    alike = all(np.array_equal(a.pixels, b.pixels) for a, b in pairs)
    if ours.ids == theirs.ids and alike:
        raise InputError("the source is the text itself", "give another one")
    grids, others = (
        [[(view.rows, view.columns) for view in image.views] for image in each.empty.images]
        for each in (ours, theirs)
    )
    if grids != others:
        raise InputError(
            "the images of the text and of the source are read as different grids of tokens",
            "give images of one shape",
        )
    places = aligned(ours.empty, theirs.empty, words)
    return theirs, SourceRun(theirs.ids, [place or 0 for place in places]), places


def _alike(ours: Sequence[Token], theirs: Sequence[Token]) -> int:
    """The number of tokens that both begin with."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((i for i, (a, b) in pairs if a.id != b.id), min(len(ours), len(theirs)))


def _of_words(text: Capture, source: Capture, pair: str) -> dict[int, int]:
    ours, equals, theirs = pair.partition("=")
    if not (equals and ours and theirs):
        raise UsageError(
            f"{option('align', repr(pair))} is not a pair of words", "give them as in blue=red"
        )
    mine = find_matches(text.query_tokens, ours, "align")
    other = find_matches(source.query_tokens, theirs, "align", "source")
    if len(mine) != len(other):
        raise UsageError(
            f"{ours!r} occurs {amount(len(mine), 'time')} in the text, and {theirs!r} "
            f"{amount(len(other), 'time')} in the source",
            f"name one of each, as in {option('align', f'{ours}#1={theirs}#1')}",
        )
    places = dict[int, int]()
    for a, b in zip(mine, other, strict=True):
        places |= dict(zip(a, b, strict=True)) if len(a) == len(b) else {a[-1]: b[-1]}
    return places
