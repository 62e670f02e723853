"""Captures of weights that another program computed, with every claim checked."""

import math
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index as as_int
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attnviz.errors import UsageError, option, readable
from attnviz.records.capture import Capture, FloatArray, LayerPattern, ModelIdentity
from attnviz.records.heads import Head
from attnviz.records.places import ImageView, Patch, RawImage, SeenImage, Span
from attnviz.records.tokens import Token, numbered, with_parts

ROUNDED = 0.02
"""The most by which the sum of a row may exceed 1 in half precision."""
NOTHING = 1e-6
"""The largest weight that a mask leaves."""


AXES = "lbhqk"
"""The letters of axes in this module's order: layers, batch, heads, queries and keys."""
LayerArrays: TypeAlias = Sequence[tuple[int, FloatArray]]
"""The number of each given layer, and its weights (heads, n_queries, n_keys)."""


def capture_of(
    layers: LayerArrays,
    tokens: Sequence[str] | None,
    key_tokens: Sequence[str] | None,
    queries: Iterable[int] | int | None,
    *,
    model: str,
    causal: bool | None,
    unread: bool,
    heads: Mapping[int, Sequence[int]] | None = None,
) -> Capture:
    """Make a capture of arrays; `attnviz.from_attention` describes them.

    `unread`: there is one more token than keys: it was written last, and never read. `heads`: the
    numbers of each layer's heads, in order, where these are some of a model's; None: from 0 on.

    Raises:
        UsageError: a shape that does not fit, or numbers that are not attention weights.
    """
    spelled, alone = _texts(tokens, "tokens"), key_tokens is None
    last = unread and len(spelled) == layers[0][1].shape[2 if alone else 1] + 1
    text, every = tokens_of(spelled[:-1] if last else spelled)
    source, keys = (text, every) if alone else tokens_of(_texts(key_tokens, "key_tokens"))
    rows = _rows(queries, len(every))
    part = slice(rows.start, rows.stop)
    own, whole = numbered(every[part]), len(rows) == len(every)
    layers = [(n, a[:, part] if a.shape[1] == len(every) else a) for n, a in layers]
    names = {n: tuple((heads or {}).get(n, range(len(array)))) for n, array in layers}
    sums = [row_sums(number, names[number], array, own, keys) for number, array in layers]
    masked = alone and _are_causal(layers, rows.start, must=bool(causal) or not whole, whole=whole)
    if alone:  # the keys of the last row
        keys = keys[: rows.stop]
        source, layers = text[: keys[-1].end], [(n, a[:, :, : rows.stop]) for n, a in layers]
    per_layer = _heads_per_layer(names, some=heads is not None)
    return Capture(
        text=source,
        target="" if alone else text,
        query_tokens=own,
        key_tokens=keys,
        layers=tuple(LayerPattern(n, names[n], array) for n, array in layers),
        model=ModelIdentity(str(model), "array", per_layer, 0, "array"),
        bos=every[0].special and every[0].name not in ("[PAD]", "<pad>"),
        kind=("self" if whole else "answer") if alone else "cross",
        causal=masked if causal is None else causal,
        sinks=bool(min(float(each.min()) for each in sums) < 1 - ROUNDED),
    )


def _heads_per_layer(names: Mapping[int, Sequence[int]], *, some: bool) -> tuple[int, ...]:
    """The number of heads of each layer; `some`: a layer without a name may still have heads."""
    most = {number: 1 + max(own) for number, own in names.items()}
    lacking = max(most.values()) if some else 0
    return tuple(most.get(number, lacking) for number in range(1 + max(most)))


def _are_causal(layers: LayerArrays, first: int, *, must: bool, whole: bool) -> bool:
    """Whether no query attends to a later token; the first row is of the token at `first`."""
    masked = all(np.triu(each, 1 + first).max(initial=0.0) <= NOTHING for _, each in layers)
    if must and not masked:
        raise UsageError(
            "these weights are not causal: a query attends to a later token",
            "leave causal out, or set weights above the diagonal to 0"
            if whole
            else f"give only the tokens of these rows, and all as {option('key_tokens')}",
        )
    return masked


def _texts(given: Any, name: str) -> list[str]:
    listed = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not listed or not all(isinstance(each, str) for each in listed):
        hint = "give the result of the tokenizer's convert_ids_to_tokens"
        raise UsageError(f"{name} is not a list of texts", hint)
    return listed


def _rows(queries: Iterable[int] | int | None, tokens: int) -> range:
    """The positions of the tokens of rows: all, or some consecutive ones."""
    if queries is None:
        return range(tokens)
    try:
        given = [as_int(each) for each in (queries if isinstance(queries, Iterable) else [queries])]
    except TypeError:
        given = []
    rows = range(given[0] % tokens, given[-1] % tokens + 1) if given else range(0)
    if not given or [each + tokens * (each < 0) for each in given] != [*rows]:
        raise UsageError(
            "queries are not consecutive positions of tokens",
            f"give numbers from 0 to {tokens - 1}, or -1 for the last token",
        )
    return rows


def _is_list(given: Any, axes: int = 2) -> bool:
    """Whether a value is a sequence of arrays, and not one array as nested lists of numbers."""
    return isinstance(given, list | tuple) and all(
        each is None or len(getattr(each, "shape", ())) >= axes for each in given
    )


def of_steps(attention: Any) -> bool:
    """Whether weights hold the layers of each step in which a text was written."""
    steps = attention if isinstance(attention, list | tuple) else ()
    return bool(steps) and all(_is_list(step, axes=3) for step in steps)


def layers_of(attention: Any, axes: str | None, index: int | None) -> LayerArrays:
    """The layers of another program's weights, with the axes and the batch as named."""
    if of_steps(attention):
        steps = [dict(layers_of(step, axes, index)) for step in attention]
        return [(n, _joined([step.get(n) for step in steps])) for n in steps[0]]
    if attention is None or _is_list(attention):
        given = [(n, each) for n, each in enumerate(attention or ()) if each is not None]
        layers = [(n, each[0]) for n, each in given for each in [_arranged(each, axes, index)]]
    else:
        layers = [*enumerate(_arranged(attention, axes, index, whole=True))]
    if not layers:
        raise UsageError(
            "there are no weights",
            'load the model with attn_implementation="eager", and run it with output_attentions',
        )
    return layers


def _joined(steps: Sequence[FloatArray | None]) -> FloatArray:
    """Join the rows of consecutive steps, over all keys."""
    known = [each for each in steps if each is not None]
    ends = [each.shape[2] for each in known]
    follow = [each.shape[2] - each.shape[1] for each in known[1:]] == ends[:-1]
    same = len({len(each) for each in known}) == 1 and len(known) == len(steps)
    if not same or not (follow or len({*ends}) == 1):
        raise UsageError(
            "these steps are not consecutive", "give all steps of one text, from the first on"
        )
    rows = [np.pad(a, ((0, 0), (0, 0), (0, max(ends) - a.shape[2]))) for a in known]
    return np.concatenate(rows, axis=1)


def _arranged(
    weights: Any, axes: str | None, index: int | None, *, whole: bool = False
) -> FloatArray:
    """Arrange weights as (layers, heads, n_queries, n_keys); `whole`: all layers may be in it."""
    array = _array(weights)
    four = "lhqk" if whole and index is None else "bhqk"
    usual = {2: "qk", 3: "hqk", 4: four, 5: "lbhqk" if whole else ""}.get(array.ndim, "")
    own = usual if axes is None else str(axes)
    letters = {*own, *"qk"} & {*(AXES if whole else AXES[1:])}
    if len(own) != array.ndim or sorted(letters) != sorted(own) or not array.size:
        named = f" with the axes {readable(own)!r}" if axes is not None else ""
        raise UsageError(
            f"an array of shape {array.shape}{named} does not hold attention",
            "give (n_queries, n_keys), (heads, n_queries, n_keys) or one of these for each layer; "
            f"or name other {option('axes')} by a letter each of {AXES}, as in qhk",
        )
    array = array.transpose([own.index(letter) for letter in AXES if letter in own])
    array = array if "l" in own else array[None]
    if "b" in own or index is not None:
        size = array.shape[1] if "b" in own else 1
        if (index is None and size > 1) or (index is not None and not -size <= index < size):
            raise UsageError(
                f"a batch of {size:,} texts is not one text",
                f"choose one by {option('index')}, from 0 to {size - 1}",
            )
        array = array[:, index or 0] if "b" in own else array
    return array if "h" in own else array[:, None]


def _array(weights: Any) -> FloatArray:
    try:
        if hasattr(weights, "detach"):  # a tensor of torch, on any device, in any type
            weights = weights.detach().float().cpu().numpy()
        array = np.array(weights)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = array.astype(np.float32)
    except (TypeError, ValueError, RuntimeError):
        hint = "give weights, such as output.attentions"
        raise UsageError("attention is not an array of numbers", hint) from None
    array.setflags(write=False)
    return array


def row_sums(
    layer: int,
    heads: Sequence[int],
    array: FloatArray,
    queries: Sequence[object],
    keys: Sequence[object],
) -> FloatArray:
    """The sum of each row of a layer's heads (h, n_q), which are rows of attention.

    Raises:
        UsageError: they are not, or of other numbers of queries and keys.
    """
    expected = len(queries), len(keys)
    if array.shape[1:] != expected:
        raise UsageError(
            f"layer {layer} has {array.shape[1]} queries and {array.shape[2]} keys, and the tokens "
            f"are {expected[0]} and {expected[1]}",
            "name the tokens of these rows as queries, or an order other than hqk as axes"
            if array.shape[1] < expected[0] and array.shape[2] == expected[1]
            else "give the tokens that the model read, special ones included",
        )
    sums: FloatArray = array.sum(axis=2)
    wrong = ~(np.isfinite(sums) & (array.min(axis=2) >= 0) & (sums <= 1 + ROUNDED))
    if wrong.any():
        head, row = np.argwhere(wrong)[0].tolist()
        raise UsageError(
            f"row {row} of {Head(layer, heads[head])} is not a row of attention: its sum is "
            f"{sums[head, row]:.4g}, its smallest number {array[head, row].min():.4g}",
            "give the weights after softmax",
        )
    return sums


# The image or the sound that some of the tokens stand for.

BRACKETED = re.compile(r"\[[^\[\]]+\]")
"""A model's own token in an image, as a user names it."""


def with_image(capture: Capture, raw: RawImage, grid: tuple[int, int] | None, mark: str) -> Capture:
    """The capture, in which the tokens spelled `mark` are an image's patches, row by row."""
    own = [token.index for token in capture.key_tokens if token.text.strip() == mark.strip()]
    if not own:
        raise UsageError(
            f"no token is {mark}, so none stands for the image",
            f"name these tokens as {option('image_token')}",
        )
    side = math.isqrt(len(own))
    rows, columns = grid or (side, side)
    if rows * columns != len(own):
        raise UsageError(
            f"{len(own):,} tokens {mark} are not a grid of {rows} × {columns}",
            f"give the {option('grid')} as (rows, columns)",
        )
    places = {index: divmod(n, columns) for n, index in enumerate(own)}

    others = [t for t in capture.key_tokens if t.index not in places and not t.special]
    alone = all(BRACKETED.fullmatch(token.text) for token in others)  # [register 1] of an encoder

    def placed(token: Token) -> Token:
        if token.index not in places or token.text.strip() != mark.strip():
            bare = replace(token, text="", end=token.start, special=True, name=token.text)
            return bare if alone and token in others else token
        row, column = places[token.index]
        box = column / columns, row / rows, (column + 1) / columns, (row + 1) / rows
        bare = Token(token.index, token.id, "", token.start, token.start, special=True)
        name = f"@r{row}c{column}"
        return replace(bare, name=name, image=0, patch=Patch(0, 0, row, column, box))

    width, height = raw.size
    view = ImageView("overview", (0.0, 0.0, float(width), float(height)), rows, columns)
    keys = tuple(map(placed, capture.key_tokens))
    same = capture.kind != "cross"
    return replace(
        capture,
        query_tokens=numbered(keys[capture.first_query :] if same else capture.query_tokens),
        key_tokens=keys,
        images=(SeenImage(raw, (view,)),),
    )


MOST_SECONDS = 1_000_000
"""The largest time that can be named."""


def spans_of(times: float | Sequence[Span], n_keys: int) -> list[Span]:
    """The seconds of each key: as given, or of frames of a given length."""
    try:
        spans = np.asarray(times)
    except ValueError:  # of several lengths
        spans = np.empty(0)
    numbers = spans.dtype.kind in "iuf"
    if numbers and spans.ndim == 0 and 0 < spans < MOST_SECONDS:
        edges = float(spans) * np.arange(n_keys + 1)
        spans = np.stack([edges[:-1], edges[1:]], axis=1)
    if not numbers or spans.ndim != 2 or spans.shape[1] != 2 or not _are_times(spans):
        raise UsageError(
            f"{option('times')} are not seconds of consecutive frames",
            "give (begin, end) of each key, or the length of one",
        )
    return [(float(begin), float(end)) for begin, end in spans]


def _are_times(spans: NDArray[Any]) -> bool:
    """Whether spans (n, 2) are not empty, and each begins after the one before."""
    begins, ends = spans.T
    inside = (begins >= 0) & (begins < ends) & (ends <= MOST_SECONDS)
    return bool(len(spans) and inside.all() and (begins[1:] > begins[:-1]).all())


def with_times(capture: Capture, spans: Sequence[Span]) -> Capture:
    """The capture, whose keys stand for these seconds of a sound."""
    keys = (
        Token(t.index, -1, "", 0, 0, special=True, name=t.label, time=span)
        for t, span in zip(capture.key_tokens, spans, strict=True)
    )
    return replace(capture, text="", key_tokens=tuple(keys))


# Tokens from a tokenizer's spellings: `Ġcat`, `▁cat`, `##s`, `[CLS]`.

SPECIAL = re.compile(r"<([|｜])[^<>]{1,100}\1>|</?s>|<(?:pad|bos|eos)>|\[(?:CLS|SEP|PAD)\]")
"""The special tokens of GPT-2, Llama, DeepSeek, T5, BERT and similar models, without a text."""
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
WORDPIECE, SENTENCEPIECE, SPACE, BREAK = "##", "▁", "Ġ", "Ċ"
INNER = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that no character begins with."""


def tokens_of(spelled: Sequence[str]) -> tuple[str, tuple[Token, ...]]:
    """The text that tokens spell, and the tokens as its slices; equal spellings have equal ids.

    `spelled`: as from `convert_ids_to_tokens`; or texts, which are words if none holds a space.
    """
    spelled = [name.encode(errors="replace").decode() for name in spelled]  # no lone surrogates
    special = [bool(SPECIAL.fullmatch(name)) for name in spelled]
    pieces = _pieces(["" if gone else name for name, gone in zip(spelled, special, strict=True)])
    text, character_of = _decoded(b"".join(pieces))
    ids = {name: id_ for id_, name in enumerate(dict.fromkeys(spelled))}
    tokens, begin = list[Token](), 0
    for name, gone, piece in zip(spelled, special, pieces, strict=True):
        last = max(begin, begin + len(piece) - 1)
        start, end = character_of[begin], character_of[last] + bool(piece)
        named = readable(name) if gone else Token.name
        tokens.append(Token(0, ids[name], text[start:end], start, end, special=gone, name=named))
        begin += len(piece)
    return text, numbered(with_parts(tokens, text))


def _pieces(spelled: Sequence[str]) -> list[bytes]:
    """The bytes that each token adds to the text."""
    if any(name.startswith(SENTENCEPIECE) or BYTE.fullmatch(name) for name in spelled):
        bytes_of = [(BYTE.fullmatch(name), name.replace(SENTENCEPIECE, " ")) for name in spelled]
        return [bytes([int(byte[1], 16)]) if byte else name.encode() for byte, name in bytes_of]
    byte_of = _bytes_of_letters()
    if _is_byte_level([name for name in spelled if name and byte_of.keys() >= set(name)]):
        return [
            bytes(byte_of[one] for one in name) if byte_of.keys() >= set(name) else name.encode()
            for name in spelled
        ]
    if any(" " in name for name in spelled):
        return [name.encode() for name in spelled]
    pieces, begun = list[bytes](), False
    for name in spelled:
        inner = name.startswith(WORDPIECE) and name != WORDPIECE
        bare = name.removeprefix(WORDPIECE) if inner else name
        pieces.append((" " if begun and bare and not inner else "").encode() + bare.encode())
        begun = begun or bool(name)
    return pieces


def _is_byte_level(names: Sequence[str]) -> bool:
    """Whether tokens are spelled in the letters of bytes, and are not words that look alike.

    One has the letter of a space, or is a line break; or their letters, as bytes, are UTF-8 from
    beginning to end with a character beyond ASCII that no capitals spell, as they do in `PÓŁNOC`.
    """
    if any(SPACE in name or set(name) == {BREAK} for name in names):
        return True
    byte_of = _bytes_of_letters()
    letter_of = {byte: letter for letter, byte in byte_of.items()}
    data = bytes(byte_of[letter] for name in names for letter in name)
    try:  # the list may begin and end within a character
        text = getincrementaldecoder("utf-8")().decode(data.lstrip(INNER))
    except UnicodeDecodeError:
        return False
    spelled = ("".join(letter_of[byte] for byte in each.encode()) for each in set(text))
    return any(not (one.isalpha() and one.isupper()) for one in spelled if len(one) > 1)


def _bytes_of_letters() -> dict[str, int]:
    """The byte of each letter of a byte-level vocabulary (GPT-2, Radford 2019).

    Printable bytes are their own letters, the others have letters from 256 on.
    """
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    known = {chr(byte): byte for byte in printed}
    return known | {chr(256 + number): byte for number, byte in enumerate(others)}


def _decoded(data: bytes) -> tuple[str, list[int]]:
    """Decode bytes to a text, and the character of each byte (n_bytes + 1); � for invalid bytes."""
    characters = data.decode("utf-8", "surrogateescape")
    character_of = [
        number
        for number, character in enumerate(characters)
        for _ in character.encode("utf-8", "surrogateescape")
    ]
    text = re.sub("[\udc80-\udcff]", "\ufffd", characters)
    return text, [*character_of, len(text)]
