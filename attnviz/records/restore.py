"""Records from JSON, every field of which is checked."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_args

from attnviz.errors import readable
from attnviz.records.capture import (
    VALUE_NORMS,
    Asked,
    Capture,
    FloatArray,
    Kind,
    LayerPattern,
    MadeBy,
    ModelIdentity,
    TextLoss,
)
from attnviz.records.heads import LONGEST_NAME, Head, NamedHead
from attnviz.records.tokens import SPECIAL_LABEL, Segment, Token
from attnviz.records.transforms import SENTENCES, NormBased, Transform, transform_from_dict

T = TypeVar("T")
CAPTURE_SCHEMA = "attnviz-capture"
CAPTURE_VERSION = 3
JsonObject = Mapping[str, Any]
MOST_HEADS = 1 << 16  # more than any model has; a forged file could ask for any number
LARGEST_WEIGHT = 2.0
"""Weights of merged words are sums, and those of models in half precision are rounded."""
MOST_TRANSFORMS = 64
LARGEST_COUNT = 1 << 53
"""The largest number of anything that is counted."""
LARGEST = 1e30
"""The largest score, loss or norm; sums of larger ones would leave float32."""


class NotACaptureError(ValueError):
    """The object is some other program's."""


class NewerCaptureError(ValueError):
    """The object was written by a later version, in a layout not known here."""


def check_schema(meta: object) -> JsonObject:
    """See that an object is a capture's, of a version that can be read.

    Raises:
        NotACaptureError: it is not.
        NewerCaptureError: it is of a later version.
    """
    schema = meta.get("schema") if isinstance(meta, dict) else None
    written = schema if isinstance(schema, str) else ""
    found = re.fullmatch(rf"{CAPTURE_SCHEMA}/([0-9]{{1,6}})", written)
    if found is None:
        raise NotACaptureError("it has no capture schema")
    if int(found[1]) > CAPTURE_VERSION:
        raise NewerCaptureError(written)
    return cast(JsonObject, meta)


def layers_from(meta: JsonObject) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The layers of a capture, each a number and its heads, in order."""
    per_layer = model_of_dict(_object(meta, "model")).heads_per_layer
    layers = []
    for entry in _objects(meta, "layers"):
        layer, heads = _get(entry, "layer", int), tuple(_list(entry, "heads", int))
        for head in heads:
            _check_head(Head(layer, head), per_layer)
        _check(bool(heads) and len(set(heads)) == len(heads), f"the heads of layer {layer}")
        layers.append((layer, heads))
    numbers = [layer for layer, _ in layers]
    _check(bool(numbers) and len(set(numbers)) == len(numbers), "the list of layers")
    return tuple(layers)


def tokens_from(meta: JsonObject) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The query tokens and the key tokens."""
    text, target = len(_get(meta, "text", str)), len(_target(meta))
    of_queries = target if meta.get("kind") in ("cross", "decoder") else text
    of_keys = target if meta.get("kind") == "decoder" else text
    queries = tuple(_token(token, of_queries) for token in _objects(meta, "query_tokens"))
    if meta.get("key_tokens") is None:
        keys = queries
    else:
        keys = tuple(_token(token, of_keys) for token in _objects(meta, "key_tokens"))
    _check(bool(queries) and bool(keys), "the list of tokens")
    for tokens in (queries, keys):
        _check(all(token.index == i for i, token in enumerate(tokens)), "a token's index")
    return queries, keys


def capture_from(
    meta: JsonObject, arrays: Mapping[int, FloatArray], extras: Mapping[str, FloatArray]
) -> Capture:
    """The capture that `capture_to_dict` was given.

    `arrays`: for each layer number, (heads, n_queries, n_keys).
    """
    queries, keys = tokens_from(meta)
    model = model_of_dict(_object(meta, "model"))
    layers, versions = layers_from(meta), _object(meta, "versions")
    captured = Capture(
        text=_get(meta, "text", str),
        query_tokens=queries,
        key_tokens=keys,
        layers=tuple(LayerPattern(layer, heads, arrays[layer]) for layer, heads in layers),
        model=model,
        bos=_get(meta, "bos", bool),
        left_out=_left_out(meta),
        kind=_one_of(meta, "kind", get_args(Kind)),
        target=_target(meta),
        causal=_get(meta, "causal", bool),
        sinks="sinks" in meta and _get(meta, "sinks", bool),  # older captures do not say
        versions={name: _name(versions, name) for name in versions},
        transforms=_transforms(meta),
        extras=extras,
        named_heads=tuple(
            _named(entry, model.heads_per_layer) for entry in _objects(meta, "named_heads")
        ),
        unknown_words=_unknown(meta),
        loss=_loss(meta),
        segments=_segments(meta),
        asked=_asked(meta),
    )
    _check_numbers(captured)
    return captured


def _asked(meta: JsonObject) -> Asked:
    seed = meta.get("seed")
    _check(seed is None or isinstance(seed, int), "seed")
    return Asked(_object(meta, "options") if "options" in meta else {}, seed)


def _check_numbers(captured: Capture) -> None:
    unbounded = captured.signed or captured.transformed_by(NormBased)
    low = -LARGEST if captured.signed else 0.0
    high = LARGEST if unbounded else LARGEST_WEIGHT
    for layer in captured.layers:
        array = layer.weights
        within = not array.size or bool(low <= array.min() and array.max() <= high)  # no NaN
        _check(within, f"a number of layer {layer.layer}")
    norms = captured.extras.get(VALUE_NORMS)
    if norms is not None:
        per_layer = captured.model.heads_per_layer
        expected = (len(per_layer), max(per_layer), len(captured.key_tokens))
        _check(norms.shape == expected, f"the shape of {VALUE_NORMS}")
        # NaN stands where a layer has no such head
        _check(not ((norms < 0) | (norms > LARGEST)).any(), VALUE_NORMS)


def _unknown(meta: JsonObject) -> tuple[str, ...]:
    """The words that the model does not know, which are some of the text's."""
    words = _list(meta, UNKNOWN, str) if UNKNOWN in meta else []
    _check(sum(map(len, words)) <= len(_get(meta, "text", str)), UNKNOWN)
    return tuple(words)


def _segments(meta: JsonObject) -> tuple[Segment, ...]:
    """The segments of a prompt; written only where the capture is of an answer."""
    if "segments" not in meta:
        return ()
    segments = [
        _segment(entry, len(_get(meta, "text", str))) for entry in _objects(meta, "segments")
    ]
    _check(bool(segments), "segments")
    return tuple(segments)


def _segment(entry: JsonObject, size: int) -> Segment:
    slices = []
    pairs: list[list[int]] = _list(entry, "slices", list)
    for pair in pairs:
        start, end = pair if len(pair) == 2 and all(_is(each, int) for each in pair) else (0, 0)
        _check(0 <= start < end <= size, "a segment's place in the text")
        slices.append((start, end))
    _check(bool(slices), "a segment's place in the text")
    return Segment(_name(entry, "name"), tuple(slices))


UNKNOWN = "unknown_words"
"""JsonOutput only where there are such words."""


def extras_from(meta: JsonObject) -> tuple[str, ...]:
    """The names of the extra arrays, in the order in which they are stored."""
    names = tuple(_list(meta, "extras", str))
    _check(len(set(names)) == len(names), "the list of extras")
    return names


def _left_out(meta: JsonObject) -> tuple[int, int]:
    numbers = _list(meta, "left_out", int)
    _check(len(numbers) == 2 and all(map(_is_count, numbers)), "left_out")
    return numbers[0], numbers[1]


def _loss(meta: JsonObject) -> TextLoss | None:
    """How well the text was predicted; older captures do not say."""
    if meta.get("loss") is None:
        return None
    entry = _object(meta, "loss")
    loss = TextLoss(
        _get(entry, "nats", float), _get(entry, "characters", int), _get(entry, "limit", float)
    )
    within = abs(loss.nats) <= LARGEST and abs(loss.limit) <= LARGEST  # no NaN
    _check(within and loss.characters >= 0, "loss")
    return loss


def _transforms(meta: JsonObject) -> tuple[Transform, ...]:
    """The transforms; captures of layout 1 hold a sentence for each."""
    if meta["schema"] == f"{CAPTURE_SCHEMA}/1":
        sentences = _list(meta, "transforms", str)
        _check(set(sentences) <= set(SENTENCES), "transforms")
        return tuple(SENTENCES[sentence] for sentence in sentences)
    entries = _objects(meta, "transforms")
    _check(len(entries) <= MOST_TRANSFORMS, "transforms")
    return tuple(transform_from_dict(entry) for entry in entries)


def model_of_dict(entry: JsonObject) -> ModelIdentity:
    """A model's identity, as `model_to_dict` writes it."""
    per_layer = tuple(_list(entry, "heads_per_layer", int))
    _check(all(n >= 0 for n in per_layer), "heads_per_layer")
    _check(sum(per_layer) <= MOST_HEADS, "heads_per_layer")
    _check(_is_count(_get(entry, "parameters", int)), "parameters")
    revision, fingerprint = entry.get("revision"), entry.get("fingerprint")
    return ModelIdentity(
        name=_name(entry, "name"),
        architecture=_name(entry, "architecture"),
        heads_per_layer=per_layer,
        parameters=_get(entry, "parameters", int),
        engine=_one_of(entry, "engine", get_args(MadeBy)),
        dtype=_name(entry, "dtype"),
        revision=None if revision is None else _name(entry, "revision"),
        fingerprint=None if fingerprint is None else _name(entry, "fingerprint"),
    )


def _target(meta: JsonObject) -> str:
    return _get(meta, "target", str) if "target" in meta else ""


def _token(entry: JsonObject, size: int) -> Token:
    start, end = _get(entry, "start", int), _get(entry, "end", int)
    _check(0 <= start <= end <= size, "a token's place in the text")
    _check(len(_get(entry, "text", str)) <= end - start, "a token's text")
    _check(-1 <= _get(entry, "id", int) <= LARGEST_COUNT, "a token's id")
    part = None
    if entry.get("part") is not None:
        numbers = tuple(_list(entry, "part", int))
        _check(len(numbers) == 2 and 1 <= numbers[0] <= numbers[1], "a token's part")
        part = (numbers[0], numbers[1])
    return Token(
        index=_get(entry, "index", int),
        id=_get(entry, "id", int),
        text=_get(entry, "text", str),
        start=start,
        end=end,
        special=_get(entry, "special", bool),
        part=part,
        name=readable(_name(entry, "label")) if entry["special"] else SPECIAL_LABEL,
        spaced="exact" in entry and _get(entry, "exact", str) != _get(entry, "text", str),
    )


def _named(entry: JsonObject, per_layer: tuple[int, ...]) -> NamedHead:
    head = Head(_get(entry, "layer", int), _get(entry, "head", int))
    _check_head(head, per_layer)
    return NamedHead(behaviour=_name(entry, "behaviour"), head=head, title=_name(entry, "title"))


def _check_head(head: Head, per_layer: tuple[int, ...]) -> None:
    known = 0 <= head.layer < len(per_layer) and 0 <= head.head < per_layer[head.layer]
    _check(known, f"the head {head}")


def _name(entry: JsonObject, name: str) -> str:
    """A text that is shown in a line with others, and so has an end."""
    value = _get(entry, name, str)
    _check(len(value) <= LONGEST_NAME, name)
    return value


def _get(entry: JsonObject, name: str, kind: Callable[..., T]) -> T:
    value = entry.get(name)
    _check(_is(value, kind), name)
    return cast(T, value)


def _list(entry: JsonObject, name: str, kind: Callable[..., T]) -> list[T]:
    values = entry.get(name)
    if not isinstance(values, list) or not all(_is(value, kind) for value in values):
        raise ValueError(f"{name} cannot be right")
    return values


def _object(entry: JsonObject, name: str) -> JsonObject:
    value = entry.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"{name} cannot be right")
    return value


def _objects(entry: JsonObject, name: str) -> list[JsonObject]:
    values = entry.get(name)
    if not isinstance(values, list):
        raise ValueError(f"{name} cannot be right")
    return [_object({name: value}, name) for value in values]


def _one_of(entry: JsonObject, name: str, known: tuple[str, ...]) -> Any:
    value = _get(entry, name, str)
    _check(value in known, name)
    return value


def _is(value: object, kind: Callable[..., Any]) -> bool:
    if type(value) is str and not value.isascii():
        value.encode("utf-8")  # half a character is a UnicodeEncodeError, which is a ValueError
    # not isinstance: True is no number here
    return type(value) is kind and not (kind is int and abs(cast(int, value)) > LARGEST)


def _is_count(number: int) -> bool:
    return 0 <= number <= LARGEST_COUNT


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} cannot be right")
