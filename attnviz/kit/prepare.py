"""From text to capture. Read this first: it sets the order of everything.

    load ─► encode ─► fit the context ─► run with hooks ─► capture (─► choose ─► exhibit: showing)

Nothing here prints; torch is imported only when a model is loaded.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from attnviz.errors import IdleOption, InputError, ModelError, UsageError, option, readable, series
from attnviz.inputs.given import MEDIA, check_no_medium, found, medium_of, read_given
from attnviz.inputs.text import check_encodable, check_not_blank
from attnviz.models.catalog import Source
from attnviz.models.placement import BUILTIN, Placement, check_room, model_bytes
from attnviz.records.capture import (
    END_READ,
    GATES,
    VALUE_NORMS,
    Capture,
    Checked,
    Consumer,
    FloatArray,
    KeepEverything,
    Kind,
    TextLoss,
    Wanted,
)
from attnviz.records.heads import Head, by_layer, every_head
from attnviz.records.parts import Explained
from attnviz.records.places import GivenBeside, Media, RawImage, ReadAs
from attnviz.records.predict import LogitRows, log_softmax
from attnviz.records.rows import versions_now
from attnviz.records.tokens import MASKS, SEGMENTS, TextOfIds, Token, current_call, numbered
from attnviz.records.transforms import Contributions, Implicit, Scores

if TYPE_CHECKING:
    from attnviz.models.frozen.run import FrozenRun
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.tokenizer import TextTokenizer
    from attnviz.records.trace import HeadTrace, Verified


# The options of a run: the conversion of a text to tokens, and the heads.

Truncation: TypeAlias = Literal["left", "right"]


@dataclass(frozen=True)
class TextOptions:
    """How a text becomes tokens.

    Attributes:
        bos: whether a beginning token is added; None means as the model was trained.
        special: whether `<|endoftext|>` in the text is read as the special token.
        truncate: the side from which a text that is too long is cut.
        target: the assumed output of an encoder-decoder.
        max_memory: the most bytes to use; None means a share of the free memory.
        text_pair: the second text of a pair.
        given: what the model reads beside the text, or in its place.
        matched: whether a text and what is given may be compared, by a model that reads each alone.
        start: the second of a recording at which the model begins.
    """

    bos: bool | None = None
    special: bool = False
    truncate: Truncation | None = None
    target: str | None = None
    max_memory: int | None = None
    text_pair: str | None = None
    given: tuple[GivenBeside, ...] = ()
    matched: bool = False
    start: float = 0.0

    @property
    def media(self) -> set[Media]:
        """What is given."""
        return {each.medium for each in self.given}

    @property
    def pictures(self) -> tuple[RawImage, ...]:
        """What is given to be seen."""
        return tuple(each for each in self.given if isinstance(each, RawImage))

    def whole(self, text: str) -> str:
        """The text whose slices the tokens are; for a pair both texts, one below the other."""
        return text if self.text_pair is None else f"{text}\n{self.text_pair}"


@dataclass(frozen=True)
class HeadOptions:
    """A choice of heads: `layers` and `heads` as a user names them, `everything`, or a default.

    `layers`: a list such as `1`, `0-3` or `all`; `heads`: the same, or full names such as `L1H2`,
    or sets (kit/sets.py).
    """

    layers: str | None = None
    heads: str | None = None
    everything: bool = False

    @property
    def named(self) -> bool:
        return self.layers is not None or self.heads is not None

    @property
    def of_sets(self) -> bool:
        """Whether there is a set among them that a measure names, such as `top5:induction`."""
        return ":" in (self.heads or "")


# The conversion of a text to the tokens that a model reads, cut if they are too many.

ALWAYS_ENCODED = 1 << 20
"""Texts of up to this many characters are encoded, so that a message can give their tokens."""


def encode(
    tokenizer: "TextTokenizer", text: str, options: TextOptions, *, beside: bool = False
) -> tuple[Token, ...]:
    """All tokens of a text, be they more than it takes; `beside`: as `check_no_medium` has it."""
    if not tokenizer.vocab_size:
        raise UsageError("this model reads only images", "use a model of text")
    if isinstance(text, TextOfIds):
        idle = {
            "bos": options.bos,
            "text_pair": options.text_pair,
            "special": options.special or None,
        }
        for name in (name for name, value in idle.items() if value is not None):
            raise IdleOption(f"{option(name)} has no effect on token ids")
        return text.tokens
    pair, whole = options.text_pair, options.whole(text)
    for each in (text, *(() if pair is None else (pair,))):
        check_no_medium(each, beside=beside)
        check_not_blank(each, "the text" if each is text else "the second text of the pair")
        check_encodable(each)
    if len(whole) > ALWAYS_ENCODED and len(whole) > tokenizer.context * tokenizer.longest:
        raise InputError(
            f"the text has {len(whole):,} characters, but the model takes at most "
            f"{tokenizer.context:,} tokens",
            "give a part of it",
        )
    if options.bos and tokenizer.bos_id is None and not tokenizer.adds_special:
        raise UsageError("this model has no beginning token", f"leave {option('bos')} out")
    bos = tokenizer.bos if options.bos is None else options.bos
    tokens = tokenizer.encode(text, pair, bos=bos, special=options.special)
    segments = {token.segment for token in tokens if not token.special or options.special}
    if not segments >= {*(SEGMENTS if pair else (None,))}:
        raise InputError("this model's tokenizer makes no token of the text", "give another text")
    return tokens


def as_read(tokenizer: "TextTokenizer", text: str, options: TextOptions) -> tuple[str, TextOptions]:
    """A text, and whether special tokens that it spells are read as such, as for every command.

    They are if that was asked for, or if it has the mask of a model that fills masks; another
    model's mask is replaced by its own.
    """
    if isinstance(text, TextOfIds):
        return text, options
    pair, special = options.text_pair, options.special
    for each in MASKS:
        if (each in text or each in (pair or "")) and (mask := tokenizer.fills):
            text, pair = text.replace(each, mask.name), pair and pair.replace(each, mask.name)
            special = True
    return text, replace(options, special=special, text_pair=pair)


def notes_on(
    tokenizer: "TextTokenizer", text: str, tokens: Sequence[Token], options: TextOptions
) -> tuple[str, ...]:
    """Notes on the special tokens that a text spells, and whether one separates it into a pair."""
    names = sorted(tokenizer.spelled(text), key=text.index)
    if not names:
        return ()
    spelled = f"special tokens of the text are read as {{}}: {', '.join(map(readable, names[:8]))}"
    if not options.special:
        return (f"{spelled.format('text')}; {option('special')} reads them as such",)
    marks = {token.id for token in tokenizer.ends(tokenizer.adds_special)[1]}
    parted = [token.id in marks for token in tokens if not token.special]
    one = tokenizer.types and options.text_pair is None and True in parted
    if not one or all(parted[parted.index(True) :]):
        return (spelled.format("such"),)
    pair = f"{option('text_pair')} gives the second text of a pair"
    return spelled.format("such"), f"the model reads all of it as one segment; {pair}"


def fit(
    tokens: tuple[Token, ...], context: int, side: Truncation | None
) -> tuple[tuple[Token, ...], tuple[int, int]]:
    """Cut tokens to the context, on the side asked for; special tokens at the ends stay.

    In a pair the longer text is cut, down to the other, and then both (the library's
    `longest_first`).

    Returns:
        the tokens, and the numbers left out before and after them.
    """
    more = len(tokens) - context
    if more <= 0:
        return tokens, (0, 0)
    if side is None:
        raise InputError(
            f"the text has {len(tokens)} tokens, but the model takes at most {context}",
            f"shorten it, or cut it with {option('truncate', 'left')} or "
            f"{option('truncate', 'right')}",
        )
    left_out = (more, 0) if side == "left" else (0, more)
    parts = [[t.index for t in tokens if t.segment == each] for each in SEGMENTS]
    if any(parts):
        sizes = [len(part) for part in parts]
        room, short = sum(sizes) - more, sizes.index(min(sizes))
        sizes[short] = min(sizes[short], room // 2)
        sizes[1 - short] = room - sizes[short]
        cut = zip(parts, sizes, strict=True)
        kept = {
            i for part, n in cut for i in (part[len(part) - n :] if side == "left" else part[:n])
        }
        return numbered(t for t in tokens if t.segment is None or t.index in kept), left_out
    first = tokens[:1] if tokens[0].special else ()
    last = tokens[-1:] if tokens[-1].special and len(tokens) > 1 else ()
    text = tokens[len(first) : len(tokens) - len(last)]
    return numbered(first + (text[more:] if side == "left" else text[:-more]) + last), left_out


def load_model(source: Source) -> "LoadedModel":
    """Load the model; the one place that imports torch."""
    from attnviz.models.catalog import load

    return load(source)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A text that fits its model: the tokens that it reads, and those that it is given to write."""

    model: "LoadedModel"
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    empty: Capture
    """The capture of the run, without any pattern."""
    budget: "Budget"
    options: TextOptions

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.source]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of queries and of keys."""
        return self.budget.shape

    def run(
        self,
        heads: Sequence[Head],
        consume: Consumer,
        queries: tuple[int, ...] | None = None,
        *,
        scores: bool = False,
        contributions: bool = False,
    ) -> None:
        """Run the model, and pass the wanted query rows of these heads to the consumer."""
        if contributions:
            self.model.check_contributions()
        wanted = Wanted(by_layer(heads), queries, scores, contributions)
        checked = Checked(consume, self.blank(scores=scores, contributions=contributions))
        self.model.run(self.ids, wanted, checked, [t.id for t in self.target])
        checked.finish(wanted)

    def record(
        self,
        heads: Sequence[Head],
        queries: tuple[int, ...] | None = None,
        *,
        scores: bool = False,
        contributions: bool = False,
    ) -> Capture:
        """Capture the whole patterns of these heads; rows of other queries are 0.

        `scores`: the scores in their place; `contributions`: each key's share of the heads'
        outputs.
        """
        rows = self.shape[0] if queries is None else len(queries)
        self.budget.check_patterns(heads, 4 * len(heads) * rows * self.shape[1])
        plain = queries is None and not scores and not contributions
        if plain and self.empty.timed and self.empty.kind == "cross" and self.target[-1].special:
            return self._read_to_end(heads)
        keep = KeepEverything(self.shape)  # only rows that are written take memory
        self.run(heads, keep, queries, scores=scores, contributions=contributions)
        blank = self.blank(scores=scores, contributions=contributions)
        return replace(blank, layers=keep.layers())

    def _read_to_end(self, heads: Sequence[Head]) -> Capture:
        """`record` of speech, with a row more beside the patterns: that which reads the end."""
        more = replace(self.empty, query_tokens=(*self.empty.query_tokens, self.target[-1]))
        read = replace(self, target=(*self.target, self.target[-1]), empty=more)
        keep = KeepEverything((self.shape[0] + 1, self.shape[1]))
        read.run(heads, keep)
        per_layer = self.empty.model.heads_per_layer
        end = np.full((len(per_layer), max(per_layer), self.shape[1]), np.nan, np.float32)
        for layer in keep.layers():
            end[layer.layer, list(layer.heads)] = layer.weights[:, -1]
        layers = tuple(replace(each, weights=each.weights[:, :-1]) for each in keep.layers())
        return replace(self.empty, layers=layers, extras={**self.empty.extras, END_READ: end})

    def trace(self, head: Head, query: int) -> "HeadTrace":
        """Trace all that one head computes, and the rest of the calculation at one query."""
        target = [token.id for token in self.target]
        return self.model.trace(self.empty, self.ids, head, query, target)

    def blank(self, *, scores: bool, contributions: bool = False) -> Capture:
        """The capture of the run, without any pattern; or of scores or contributions."""
        what = (Scores(),) if scores else (Contributions(),) if contributions else ()
        return replace(self.empty, transforms=(*self.empty.transforms, *what))

    def with_gates(self) -> "Prepared":
        """The same text, with the share that gates after the softmax let through in the extras.

        It takes a run if the model has gates.
        """
        gates = self.model.gates(self.ids)
        if gates is None:
            return self
        extras = {**self.empty.extras, GATES: gates}
        return replace(self, empty=replace(self.empty, extras=extras))

    def with_norms(self, captured: Capture) -> Capture:
        """A capture of this text, with the lengths of all keys' values in the extras."""
        held = captured.extras.get(VALUE_NORMS)  # of the run that a head was chosen by
        norms = self.model.value_norms(self.ids) if held is None else held
        return replace(captured, extras={**captured.extras, VALUE_NORMS: norms})

    def with_lengths(self, captured: Capture) -> Capture:
        """`with_norms`, or the capture itself if the model's values cannot be read."""
        if VALUE_NORMS in captured.extras or (lengths := self.value_lengths()) is None:
            return captured
        return replace(captured, extras={**captured.extras, VALUE_NORMS: lengths})

    def value_lengths(self) -> FloatArray | None:
        """The length ‖v·W_O‖ of each key, as in `VALUE_NORMS`; None if no values can be read."""
        if self.empty.one_sequence and self.model.can("value_norms"):
            with suppress(ModelError, UsageError):
                return self.model.value_norms(self.ids)
        return None


def prepare(model: "LoadedModel", text: str, options: TextOptions) -> Prepared:
    """Prepare a text for a model, or the name of a file for one that does not read text."""
    model = side_of(model, text, options)
    if model.reads != "text" and not (model.matches and text and "image" in options.media):
        text, options = _without_text(model, text, options)
    if options.start and "speech" not in options.media:
        raise IdleOption(f"{option('start')} applies only to sounds")
    if options.given:
        return _prepared_with_given(model, text, options)
    model.check_alone()
    text, options = as_read(model.tokenizer, text, options)
    tokens, left_out = fit(
        encode(model.tokenizer, text, options, beside=model.reads_images),
        model.tokenizer.context,
        options.truncate,
    )
    model, text = model.of_pair(tokens), options.whole(text)
    written, target = target_of(model, tokens, options.target)
    prepared = _prepared(model, text, tokens, written, target, options)
    notes, loss = notes_on(model.tokenizer, text, tokens, options), loss_of(model, tokens)
    empty = replace(prepared.empty, left_out=left_out, loss=loss, notes=notes)
    return replace(prepared, empty=empty)


def side_of(model: "LoadedModel", text: str, options: TextOptions) -> "LoadedModel":
    """The model, or its side that reads only an image if one is given."""
    if model.sight is None:
        return model
    seen = "image" in options.media
    if seen and text and options.matched and not model.sight.matches:
        raise UsageError(
            f"additions of patches are defined only for CLIP, and {model.identity.name} pools its "
            "patches in another way",
            "give a text or an image, each by itself",
        )
    if seen and text and not options.matched:
        raise UsageError(
            f"{model.identity.name} reads a text or an image, each by itself", "give one of them"
        )
    return model.sight if seen or medium_of(text) == "image" else model


def _without_text(model: "LoadedModel", text: str, options: TextOptions) -> tuple[str, TextOptions]:
    """What a model is given that reads no text: the file that a text names, or an option gives."""
    assert model.reads != "text"
    name, own = model.identity.name, MEDIA[model.reads]
    for each in ("bos", "special", "text_pair"):
        if getattr(options, each) or (each == "bos" and options.bos is not None):
            raise IdleOption(f"{option(each)} needs a text, which {name} does not read")
    is_given = options.media == {model.reads}
    if is_given and not text:
        return "", options
    named = found(Path(text)).suffix.lower() in own.suffixes
    if named and is_given:
        raise UsageError(
            f"{name} reads one {own.one} at a time, not also {text!r}",
            f"leave {option(own.option)} out",
        )
    if named and not options.given:
        start = (options.start,) if model.reads == "speech" else ()
        return "", replace(options, given=(read_given(model.reads, Path(text), *start),))
    others = [*(options.media - {model.reads}), medium_of(text)]
    other = MEDIA[others[0]].other if others[0] else "text"
    hint = "give only a file"
    if is_given and other == "text":
        writes = model.kind in ("cross", "decoder") and options.target is None
        hint = f"give the transcript as {option('target')}" if writes else "leave the text out"
    raise UsageError(f"{name} reads only {own.alone}, and no {other}", hint)


def check_uncut(options: TextOptions) -> None:
    """Refuse to cut images, sounds, or a text with images."""
    if options.truncate is not None:
        raise IdleOption(f"{option('truncate')} cannot cut an image or a sound")


def _prepared_with_given(model: "LoadedModel", text: str, options: TextOptions) -> Prepared:
    """Prepare images or a sound, with a text or in its place; none of it is ever cut."""
    check_uncut(options)
    listens = "speech" in options.media
    if options.text_pair is not None and not listens:
        raise UsageError(f"{option('text_pair')} cannot be used with images", "leave the image out")
    if options.target is not None and not listens:
        raise UsageError(
            f"{option('target')} is the output of an encoder-decoder, and {model.identity.name} "
            "is not one"
        )
    if model.reads == "text" and not listens:
        model.check_sees()
        check_not_blank(text, "the text")
    check_encodable(text)
    read = model.read(text, options.given, ReadAs(options.bos, options.special))
    attends = read.text if read.model.kind == "cross" else ""
    writes = target_of(read.model, read.tokens, options.target) if listens else (attends, ())
    written, target = writes
    prepared = _prepared(read.model, read.text, read.tokens, written, target, options, read.keys)
    transforms = (*prepared.empty.transforms, *read.transforms)
    empty = replace(prepared.empty, images=read.images, sound=read.sound, transforms=transforms)
    return replace(prepared, empty=empty)


def prepare_tokens(
    model: "LoadedModel", tokens: tuple[Token, ...], options: TextOptions
) -> Prepared:
    """Prepare tokens that no text spells for a model with one sequence."""
    return _prepared(model, "", tokens, "", (), options)


def _prepared(
    model: "LoadedModel",
    text: str,
    source: tuple[Token, ...],
    written: str,
    target: tuple[Token, ...],
    options: TextOptions,
    keys: tuple[Token, ...] = (),
) -> Prepared:
    """`keys`: those of what is given, where the source has cross-attention to them."""
    queries, keys = (source, keys) if keys else rows_and_columns(model.kind, source, target)
    empty = empty_capture(model, text, source, queries, keys, written)
    budget = Budget(model, (len(queries), len(keys)), options.max_memory)
    return Prepared(model, source, target, empty, budget, options)


def empty_capture(
    model: "LoadedModel",
    text: str,
    source: Sequence[Token],
    queries: tuple[Token, ...],
    keys: tuple[Token, ...],
    written: str = "",
) -> Capture:
    """The capture of a run over the source, without any pattern."""
    inner = [token for token in source if not token.special]
    read = text[inner[0].start : inner[-1].end] if inner else ""
    return Capture(
        text=text,
        query_tokens=queries,
        key_tokens=keys,
        layers=(),
        model=model.identity,
        bos=model.reads == "text" and (source[0].special or source[0].id == model.tokenizer.bos_id),
        causal=model.causal,
        sinks=model.sinks,
        kind=model.kind,
        target=written,
        versions={**versions_now(), **model.versions()},
        asked=current_call(),
        transforms=(Implicit(),) if model.identity.implicit else (),
        named_heads=model.card.heads,
        unknown_words=model.unknown_words(read, written),
    )


def verify(
    model: "LoadedModel", source: Source | None, text: str, options: TextOptions
) -> "Verified":
    """Verify the exactness of a text's capture.

    `source`: the source of the model, or None if it was in memory.
    """
    from attnviz.models.verifying import verify as verified

    prepared = prepare(model, text, options)
    model = prepared.model  # perhaps a view that reads what is given
    whole = prepared.budget.patterns(every_head(model.identity.heads_per_layer))

    # theirs, ours, and their inputs; in float64 all of it once more
    def check(more: int) -> None:
        instead = f"shorten the text, or leave {option('verify')} out"
        prepared.budget.check(3 * whole + more, instead)

    check(0)
    ids = [token.id for token in prepared.source]
    target = [token.id for token in prepared.target]
    return verified(model, source, ids, target, prepared.shape, check)


def frozen(prepared: Prepared) -> "FrozenRun":
    """Run a text, and hold the run fixed."""
    model, (n, _) = prepared.model, prepared.shape
    model.require("freeze")
    from attnviz.models.frozen.layer import ROWS_AT_ONCE

    # each layer's vectors, half of those of a layer at work, and its rows at a time
    each = model.working_bytes(1, n) // 2 + 4 * ROWS_AT_ONCE
    whole = prepared.budget.patterns(every_head(model.identity.heads_per_layer))
    kept = min(4 * whole, model.identity.n_layer * each)
    prepared.budget.check(kept, "shorten the text")
    return model.freeze(prepared.ids)


def frozen_with(
    prepared: Prepared, features: str | None, reader: Head | None = None
) -> tuple["FrozenRun", Explained | None]:
    """The same with the features of the dictionary in a folder, if one is named.

    Raises:
        UsageError: `reader` does not read what the dictionary is of.
    """
    run = frozen(prepared)
    if features is None:
        return run, None
    from attnviz.models.frozen.features import read_dictionary, with_features

    width, layers = run.constant.size(1), len(run.layers)
    dictionary = read_dictionary(Path(features), width, layers)
    prepared.budget.check(12 * run.n * dictionary.tensors["W_enc"].size(1), "shorten the text")
    run, explained = with_features(run, dictionary)
    if reader is not None and explained.layer + explained.mlp > reader.layer:
        raise UsageError(
            f"{reader} does not read {explained.what}, which {option('features')} is of",
            "name a later head, or another dictionary",
        )
    return run, explained


def loss_of(model: "LoadedModel", tokens: Sequence[Token]) -> TextLoss | None:
    """The built-in model's loss on a text, if its card has a limit for it."""
    limit = model.card.loss_limit
    if limit is None or model.identity.name != BUILTIN:
        return None
    return text_loss(model, tokens, limit)


def text_loss(model: "LoadedModel", tokens: Sequence[Token], limit: float) -> TextLoss:
    """The loss over the characters of the tokens that are predicted: all but the first."""
    ids, predicted = np.array([token.id for token in tokens]), tokens[1:]
    nats = 0.0

    def add(rows: LogitRows) -> None:
        nonlocal nats
        inside = rows.positions < len(predicted)
        followed = ids[rows.positions[inside] + 1]
        logs = log_softmax(rows.logits[inside])  # (rows, V)
        nats -= float(logs[np.arange(len(followed)), followed].sum())

    if not predicted:
        return TextLoss(nats, 0, limit)
    model.predict(ids.tolist(), range(len(predicted)), add, lens=False)
    return TextLoss(nats, predicted[-1].end - predicted[0].start, limit)


# An encoder-decoder's second text: its output, and the rows and columns of that.


def target_of(
    model: "LoadedModel", source: Sequence[Token], text: str | None
) -> tuple[str, tuple[Token, ...]]:
    """The text that an encoder-decoder writes, or is given, with its tokens; else empty."""
    if model.kind in ("self", "encoder"):
        if text is not None:
            raise UsageError(
                f"{option('target')} is the output of an encoder-decoder, for "
                f"{option('kind', 'cross')} or decoder"
            )
        return "", ()
    if text is None:
        written = model.write([token.id for token in source])
        if not written[1]:
            raise InputError(
                f"the model wrote nothing for this {'text' if model.reads == 'text' else 'sound'}",
                f"give a {option('target')}, or use {option('kind', 'encoder')}",
            )
        return written
    check_not_blank(text, "the target")
    check_encodable(text)
    tokens = model.read_target(text)
    if len(tokens) >= model.tokenizer.context:
        raise InputError(
            f"the target has {len(tokens)} tokens, but the model writes at most "
            f"{model.tokenizer.context - 1}",
            "shorten it",
        )
    return text, tokens


def rows_and_columns(
    kind: Kind, source: tuple[Token, ...], target: tuple[Token, ...]
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """Query tokens and key tokens: a decoder's row is named by the token that it produces."""
    if kind == "cross":
        return target, source
    if kind == "decoder":
        begin = Token(0, -1, "", 0, 0, special=True)
        return target, numbered((begin, *target[:-1]))
    return source, source


# The memory of a run: its need, the free memory, and alternatives that fit.

SMALL = 64 << 20
"""Bytes of patterns that are always kept in full."""
LINK_BYTES, PICTURE_BYTES = 40, 2 << 20
"""Bytes of a link, and of the blocks of a picture of one head, at most."""


@dataclass(frozen=True)
class Budget:
    """The memory for one run of a model over `shape` (queries, keys).

    `max_memory` is the user's limit in bytes, the model included; None means a share of the
    free memory.
    """

    model: "LoadedModel"
    shape: tuple[int, int]
    max_memory: int | None = None

    def patterns(self, heads: Sequence[Head]) -> int:
        """Bytes of the whole patterns of these heads."""
        return 4 * len(heads) * self.shape[0] * self.shape[1]

    def holds_whole(self, heads: Sequence[Head]) -> bool:
        """Whether the whole patterns of these heads are small, and fit."""
        size = self.patterns(heads)
        return size <= SMALL and self._working + size <= self._room

    def check_patterns(self, heads: Sequence[Head], kept: int) -> None:
        """Check, before a run over these heads, that it fits with the bytes that it keeps."""
        n_queries, _ = self.shape
        smaller = (
            (option("heads", heads[0]), self.patterns(heads[:1])),
            (
                f"{option('format', 'jsonl')} {option('top', 5)}",
                len(heads) * n_queries * 5 * LINK_BYTES,
            ),
            (option("output", "FILE.png"), len(heads) * PICTURE_BYTES),
        )
        fitting = [what for what, size in smaller if self._working + size <= self._room]
        self.check(kept, f"try {series(fitting, 'or')}" if fitting else "shorten the text")

    def check(self, kept: int, instead: str) -> None:
        """Check, before a run, that there is room for these bytes and its working memory."""
        check_room(self._working + kept, self._room, "this", instead)

    @property
    def _working(self) -> int:
        """Working bytes of a run; with the model, if the user set a limit."""
        run = self.model.working_bytes(*self.shape)
        return run if self.max_memory is None else run + model_bytes(self.model.identity)

    @property
    def _room(self) -> int:
        return Placement(max_memory=self.max_memory).budget
