"""Saved captures: declared once, written as JSON, read with every field checked.

The arrays of a capture stand beside it; `attnviz/inputs/captures.py` has the file.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from types import NoneType
from typing import Any, cast

import numpy as np

from attnviz.errors import InputError, readable
from attnviz.records.capture import (
    END_READ,
    GATES,
    RESTS,
    VALUE_NORMS,
    Capture,
    FloatArray,
    Kind,
    LayerPattern,
    ModelIdentity,
    TextLoss,
)
from attnviz.records.heads import LONGEST_NAME, Bringing, Head, NamedHead
from attnviz.records.places import (
    HeardSound,
    ImageView,
    Patch,
    Pixels,
    RawImage,
    SeenImage,
    Span,
    Waveform,
)
from attnviz.records.rows import (
    HEARD,
    IMAGES,
    LARGEST,
    LARGEST_COUNT,
    MODEL,
    MOST_ENTRIES,
    NAMED_HEAD,
    TOKEN,
    TRANSFORMS,
    UNKNOWN,
    VERSIONS,
    Field,
    Fields,
    JsonObject,
    check,
    check_lengths,
    counted,
    if_any,
    is_count,
    list_of,
    model_of_dict,
    read_as,
)
from attnviz.records.tokens import SEGMENTS, SPECIAL_LABEL, CallOptions, Segment, Token
from attnviz.records.transforms import (
    KINDS,
    SENTENCES,
    UNBOUNDED,
    Implicit,
    Transform,
    transform_to_dict,
)

CAPTURE_SCHEMA = "attnviz-capture"
CAPTURE_VERSION = 3
LARGEST_WEIGHT = 2.0
"""Weights of merged words are sums, and those of models in half precision are rounded."""
MOST_TRANSFORMS = 64
MAKE_ONE = "make one with attnviz show and FILE.npz as its output"

LAYER = Fields[LayerPattern]("LayerObject", "", (Field("layer", int), Field("heads", list[int])))
SEGMENT = Fields[Segment]("SegmentObject", "", (Field("name", str), Field("slices", list[Any])))
LOSS = Fields[TextLoss](
    "LossObject", "", (Field("nats", float), Field("characters", int), Field("limit", float))
)
BRINGING = Fields[Bringing](
    "BringingObject",
    "What comes next, and the links that bring it; of each head what its link adds to the logit.",
    (
        Field("likeliest", list[Any], "", lambda b: [list(each) for each in b.likeliest]),
        Field("token", str),
        Field("start", int),
        Field("effects", list[Any], "", lambda b: [[*head, effect] for head, effect in b.effects]),
        Field("times", float),
    ),
)
CAPTURE = Fields[Capture](
    "CaptureObject",
    "A capture without its arrays.",
    (
        Field("schema", str, "", lambda _: f"{CAPTURE_SCHEMA}/{CAPTURE_VERSION}"),
        Field("model", MODEL),
        VERSIONS,
        Field("text", str),
        Field("bos", bool),
        Field("left_out", list[int]),
        Field("kind", Kind),
        Field("target", str),
        Field("causal", bool),
        Field("sinks", bool),
        TRANSFORMS,
        Field("query_tokens", list_of(TOKEN)),
        Field(
            "key_tokens",
            (list_of(TOKEN), NoneType),
            "Null: they are the query tokens.",
            lambda capture: (
                None if capture.key_tokens == capture.query_tokens else capture.key_tokens
            ),
        ),
        Field("layers", list_of(LAYER)),
        Field("extras", list[str], "", lambda capture: list(capture.extras)),
        Field("seed", int | None, "", lambda capture: capture.asked.seed),
        Field("options", dict[str, Any], "", lambda capture: dict(capture.asked.options)),
        Field("loss", (LOSS, NoneType)),
        Field("named_heads", list_of(NAMED_HEAD)),
        UNKNOWN,
        if_any(
            "segments", list_of(SEGMENT), "Those of a prompt, where the capture is of an answer."
        ),
        IMAGES,
        HEARD,
        if_any("brings", BRINGING),
    ),
)


def facts_from(written: object, shown: str) -> JsonObject:
    """The facts of a capture, each of the type that its field has; `shown`: the file's name.

    Raises:
        InputError: it is no capture, or one of a later version.
        ValueError: a fact cannot be right.
    """
    facts = written if isinstance(written, dict) else {}
    schema = facts.get("schema")
    known = rf"{CAPTURE_SCHEMA}/([0-9]{{1,6}})"
    layout = re.fullmatch(known, schema) if isinstance(schema, str) else None
    if layout is None:
        raise no_capture(shown)
    if int(layout[1]) > CAPTURE_VERSION:
        wrong = f"{shown} was saved by a later version of attnviz ({schema})"
        raise InputError(wrong, "upgrade attnviz")
    if layout[1] == "1":  # which held a sentence for each transform
        sentences = read_as(list[str], facts.get("transforms"), "transforms")
        check(set(sentences) <= set(SENTENCES), "transforms")
        transforms = [transform_to_dict(SENTENCES[sentence]) for sentence in sentences]
        facts = {**facts, "transforms": transforms}
    return cast(JsonObject, read_as(CAPTURE, facts, "capture"))


def no_capture(shown: str) -> InputError:
    """The error for a file of another program."""
    return InputError(f"{shown} is an .npz file, but not a saved capture", MAKE_ONE)


def capture_from(facts: JsonObject) -> Capture:
    """The capture that has these facts, without its arrays."""
    kind, text, target = (facts[name] for name in ("kind", "text", "target"))
    model, unknown = model_of_dict(facts["model"]), facts.get("unknown_words", [])
    queries = _tokens(facts["query_tokens"], target if kind in ("cross", "decoder") else text)
    keys = queries
    if facts["key_tokens"] is not None:
        keys = _tokens(facts["key_tokens"], target if kind == "decoder" else text)
    check(len(facts["left_out"]) == 2 and all(map(is_count, facts["left_out"])), "left_out")
    check(sum(map(len, unknown)) <= len(text), "unknown_words")
    check(len(facts["transforms"]) <= MOST_TRANSFORMS, "transforms")
    check_lengths(facts["versions"])
    same = ("text", "bos", "kind", "target", "causal", "sinks", "versions")
    transforms = tuple(map(_transform, facts["transforms"]))
    model = replace(model, implicit=any(isinstance(each, Implicit) for each in transforms))
    return Capture(
        **{name: facts[name] for name in same},
        query_tokens=queries,
        key_tokens=keys,
        layers=(),
        model=model,
        left_out=tuple(facts["left_out"]),
        transforms=transforms,
        named_heads=tuple(_named(entry, model) for entry in facts["named_heads"]),
        unknown_words=tuple(unknown),
        loss=_loss(facts["loss"]),
        segments=_segments(facts, len(text)),
        asked=CallOptions(facts["options"], facts["seed"]),
        brings=_brings(facts.get("brings"), model, max((t.end for t in keys), default=0)),
    )


def layers_from(facts: JsonObject, model: ModelIdentity) -> list[tuple[int, tuple[int, ...]]]:
    """The layers of a capture, each a number and its heads, in order."""
    layers = [(entry["layer"], tuple(entry["heads"])) for entry in facts["layers"]]
    for layer, heads in layers:
        for head in heads:
            _check_head(Head(layer, head), model)
        check(bool(heads) and len(set(heads)) == len(heads), f"the heads of layer {layer}")
    numbers = [layer for layer, _ in layers]
    check(bool(numbers) and len(set(numbers)) == len(numbers), "the list of layers")
    return layers


def with_arrays(
    capture: Capture, layers: Iterable[LayerPattern], extras: Mapping[str, FloatArray]
) -> Capture:
    """The capture with its arrays, whose numbers have to be possible."""
    capture = replace(capture, layers=tuple(layers), extras=extras)
    low = -LARGEST if capture.signed else 0.0
    high = LARGEST if capture.signed or capture.transformed_by(UNBOUNDED) else LARGEST_WEIGHT
    for layer in capture.layers:
        array = layer.weights
        within = not array.size or bool(low <= array.min() and array.max() <= high)  # no NaN
        check(within, f"a number of layer {layer.layer}")
    per_layer = capture.model.heads_per_layer
    for name, most in ((VALUE_NORMS, LARGEST), (END_READ, LARGEST_WEIGHT), (RESTS, 1.0)):
        if (held := extras.get(name)) is not None:
            expected = (len(per_layer), max(per_layer), len(capture.key_tokens))
            check(held.shape == expected, f"the shape of {name}")
            # NaN stands where a layer has no such head
            check(not ((held < 0) | (held > most)).any(), name)
    gates = extras.get(GATES)
    if gates is not None:
        sizes = (2, len(per_layer), max(per_layer), len(capture.query_tokens))
        check(gates.shape == sizes, f"the shape of {GATES}")
        check(not ((gates < 0) | (gates > LARGEST)).any() and not (gates[0] > 1).any(), GATES)
    return capture


def _transform(entry: JsonObject) -> Transform:
    known = KINDS.get(read_as(str, entry.get("kind"), "transforms"))
    if known is None or set(entry) != {"kind", *(field.name for field in fields(known))}:
        raise ValueError("transforms cannot be right")
    values = {f.name: read_as(f.type, entry[f.name], "transforms") for f in fields(known)}
    check(0 <= values.get("share", 0) <= 1, "transforms")
    check(values.get("texts", 2) >= 2, "transforms")
    return known(**values)


def _brings(entry: JsonObject | None, model: ModelIdentity, end: int) -> Bringing | None:
    if entry is None:
        return None
    try:
        likeliest = tuple((_short(token), _real(chance)) for token, chance in entry["likeliest"])
        effects = tuple((Head(n, head), _real(effect)) for n, head, effect in entry["effects"])
    except (TypeError, ValueError):
        check(False, "brings")
    for head, _ in effects:
        check(all(type(number) is int for number in head), "brings")
        _check_head(head, model)
    check(all(0 <= chance <= 1 for _, chance in likeliest), "brings")
    check(all(abs(n) <= LARGEST for n in (entry["times"], *(n for _, n in effects))), "brings")
    check(1 <= len(likeliest) <= 2 and 1 <= len(effects) <= MOST_ENTRIES, "brings")
    check(0 <= entry["start"] < end, "brings")
    effects = tuple(sorted(effects, key=lambda each: -each[1]))
    return Bringing(
        likeliest, _short(entry["token"]), entry["start"], effects, float(entry["times"])
    )


def _real(number: object) -> float:
    return float(read_as((int, float), number, "a number"))


def _short(text: object) -> str:
    check(isinstance(text, str) and len(text) <= LONGEST_NAME, "a token")
    return readable(str(text))


def _loss(entry: JsonObject | None) -> TextLoss | None:
    if entry is None:
        return None
    loss = TextLoss(**entry)
    within = abs(loss.nats) <= LARGEST and abs(loss.limit) <= LARGEST  # no NaN
    check(within and loss.characters >= 0, "loss")
    return loss


def _segments(facts: JsonObject, size: int) -> tuple[Segment, ...]:
    segments = []
    for entry in facts.get("segments", ()):
        check_lengths(entry)
        for slice_ in (slices := entry["slices"]):
            start, end = read_as(list[int], slice_, "segments") if len(slice_) == 2 else (0, 0)
            check(0 <= start < end <= size, "a segment's place in the text")
        check(bool(slices), "a segment's place in the text")
        segments.append(Segment(entry["name"], tuple((start, end) for start, end in slices)))
    check(bool(segments) or "segments" not in facts, "segments")
    return tuple(segments)


def _tokens(entries: Sequence[JsonObject], text: str) -> tuple[Token, ...]:
    """The tokens of a text, whose slices lie in it.

    Their images are counted from 1; in captures that were saved before that, from 0.
    """
    first = min((entry["image"] for entry in entries if "image" in entry), default=1)
    tokens = tuple(_token(entry, len(text), min(first, 1)) for entry in entries)
    check(bool(tokens), "the list of tokens")
    check(all(token.index == i for i, token in enumerate(tokens)), "a token's index")
    return tokens


def _token(entry: JsonObject, size: int, first: int) -> Token:
    text, start, end, part = (entry[name] for name in ("text", "start", "end", "part"))
    check(0 <= start <= end <= size, "a token's place in the text")
    check(len(text) <= end - start, "a token's text")
    check(-1 <= entry["id"] <= LARGEST_COUNT, "a token's id")
    check(part is None or (len(part) == 2 and 1 <= part[0] <= part[1]), "a token's part")
    image = entry["image"] - first if "image" in entry else None
    check(image is None or (0 <= image < MOST_IMAGES and first >= 0), "a token's image")
    segment = entry.get("segment")
    check(segment in (None, *SEGMENTS), "a token's segment")
    if entry["special"]:
        check_lengths({"label": entry["label"]})
    return Token(
        index=entry["index"],
        id=entry["id"],
        text=text,
        start=start,
        end=end,
        special=entry["special"],
        part=part and (part[0], part[1]),
        name=readable(entry["label"]) if entry["special"] else SPECIAL_LABEL,
        spaced=entry["exact"] == f" {text}",
        image=image,
        patch=_patch(image, entry.get("patch")),
        time=_time(entry),
        segment=segment,
    )


def _time(entry: JsonObject) -> Span | None:
    """The seconds of a sound that a token stands for."""
    if (time := entry.get("time")) is None:
        return None
    check(len(time) == 2, "a token's time")
    begin, end = (counted(each, "time") or 0.0 for each in time)
    check(0 <= begin < end, "a token's time")
    return begin, end


def _patch(image: int | None, patch: JsonObject | None) -> Patch | None:
    """The part of an image that a token stands for."""
    if patch is None:
        return None
    if image is None or len(patch["box"]) != 4:
        raise ValueError("a token's patch cannot be right")
    x0, y0, x1, y1 = (counted(edge, "box") or 0.0 for edge in patch["box"])
    check(x0 < x1 and y0 < y1 and is_count(patch["row"]) and is_count(patch["column"]), "box")
    return Patch(image, patch["view"], patch["row"], patch["column"], (x0, y0, x1, y1))


def images_from(facts: JsonObject, pixels: Sequence[Pixels]) -> tuple[SeenImage, ...]:
    """The images of a capture, whose pixels are given."""
    images = []
    for entry, array in zip(facts.get("images", ()), pixels, strict=True):
        check(array.shape == (entry["height"], entry["width"], 3), "the size of an image")
        check_lengths(entry)
        views = []
        for view in entry["views"]:
            check(len(view["window"]) == 4, "window")
            x0, y0, x1, y1 = (counted(edge, "window") or 0.0 for edge in view["window"])
            rows, columns = view["rows"], view["columns"]
            check(x0 < x1 and y0 < y1, "window")
            check(0 < rows <= MOST_PATCHES and 0 < columns <= MOST_PATCHES, "rows and columns")
            views.append(ImageView(view["name"], (x0, y0, x1, y1), rows, columns))
        raw = RawImage(readable(entry["name"]), array, tuple(entry["changes"]))
        images.append(SeenImage(raw, tuple(views)))
    return tuple(images)


def check_patches(capture: Capture) -> Capture:
    """See that the patches of tokens lie in the views of the images."""
    for token in (*capture.query_tokens, *capture.key_tokens):
        check(token.image is None or token.image < len(capture.images), "a token's image")
        if (patch := token.patch) is not None:
            views = capture.images[patch.image].views
            check(0 <= patch.view < len(views), "a token's view")
            view = views[patch.view]
            check(patch.row < view.rows and patch.column < view.columns, "a token's patch")
    return capture


def sound_from(facts: JsonObject, envelope: Waveform) -> HeardSound:
    """The sound of a capture, whose envelope is given."""
    entry = facts["sound"]
    check_lengths(entry)
    check(envelope.ndim == 2 and envelope.shape[1] == 2, "the envelope of a sound")
    check(bool(np.isfinite(envelope).all()), "the envelope of a sound")
    for name in ("seconds", "begin", "end", "frame", "window"):
        check(0 <= entry[name] <= LARGEST_COUNT, name)
    check(entry["begin"] < entry["end"] and entry["frame"] > 0, "the sound")
    check(is_count(entry["rate"]) and is_count(entry["heard_rate"]), "rate")
    own = {**entry, "name": readable(entry["name"]), "changes": tuple(entry["changes"])}
    return HeardSound(**own, envelope=envelope)


MOST_IMAGES, MOST_PATCHES = 1_000, 10_000
"""The most images of a capture, and the most rows or columns of a view."""


def _named(entry: JsonObject, model: ModelIdentity) -> NamedHead:
    head = Head(entry["layer"], entry["head"])
    _check_head(head, model)
    check_lengths(entry)
    return NamedHead(behaviour=entry["behaviour"], head=head, title=entry["title"])


def _check_head(head: Head, model: ModelIdentity) -> None:
    known = 0 <= head.layer < model.n_layer and 0 <= head.head < model.heads_per_layer[head.layer]
    check(known, f"the head {head}")
