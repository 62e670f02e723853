"""Saved captures and models' cards: declared once, written as JSON, read with every field checked.

The arrays of a capture stand beside it; `attnviz/inputs/captures.py` has the file.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from types import NoneType
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin

import numpy as np

from attnviz.errors import readable
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
from attnviz.records.heads import (
    LONGEST_NAME,
    Bringing,
    Figure,
    Head,
    ModelCard,
    NamedHead,
    ReadHead,
    ReadOut,
)
from attnviz.records.images import ImageView, Patch, Pixels, RawImage, SeenImage
from attnviz.records.rows import (
    ABSENT,
    HEARD,
    IMAGES,
    MODEL,
    NAMED_HEAD,
    TOKEN,
    TRANSFORMS,
    UNKNOWN,
    VERSIONS,
    Field,
    Fields,
    kinds_of,
    list_of,
)
from attnviz.records.tokens import (
    SEGMENTS,
    SPECIAL_LABEL,
    CallOptions,
    HeardSound,
    Segment,
    Span,
    Token,
    Waveform,
)
from attnviz.records.transforms import (
    KINDS,
    SENTENCES,
    UNBOUNDED,
    Implicit,
    Transform,
    transform_to_dict,
)

JsonObject: TypeAlias = Mapping[str, Any]
CAPTURE_SCHEMA = "attnviz-capture"
CAPTURE_VERSION = 3
MOST_HEADS = 1 << 16  # more than any model has; a forged file could ask for any number
LARGEST_WEIGHT = 2.0
"""Weights of merged words are sums, and those of models in half precision are rounded."""
MOST_TRANSFORMS = 64
LARGEST_COUNT = 1 << 53
"""The largest number of anything that is counted."""
LARGEST = 1e30
"""The largest score, loss or norm; sums of larger ones would leave float32."""

LAYER = Fields[LayerPattern]("LayerObject", "", (Field("layer", int), Field("heads", list[int])))
SEGMENT = Fields[Segment]("SegmentObject", "", (Field("name", str), Field("slices", list[Any])))
LOSS = Fields[TextLoss](
    "LossObject", "", (Field("nats", float), Field("characters", int), Field("limit", float))
)
BRINGING = Fields[Bringing](
    "BringingObject",
    "The next token, and the links that bring it, each with its addition to the token's logit.",
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
            "Null if they are the query tokens.",
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
        Field(
            "segments",
            list_of(SEGMENT),
            "The prompt's segments, in a capture of an answer.",
            lambda capture: capture.segments or ABSENT,
            optional=True,
        ),
        IMAGES,
        HEARD,
        Field("brings", BRINGING, "", lambda capture: capture.brings or ABSENT, optional=True),
    ),
)
OLDER: JsonObject = {"target": "", "sinks": False, "options": {}, "exact": ""}
"""The values of fields that older captures lack."""


CARD_SCHEMA = 1
MOST_ENTRIES = 1_000
"""The most heads, figures or texts that a card may name."""
FIGURE = Fields[Figure](
    "FigureObject",
    "",
    (
        Field("behaviour", str),
        Field("measure", str),
        Field("held_out", int | float, "", lambda figure: figure.value),
        Field("bar", int | float | None),
        Field("n", int),
        Field("texts", str, "", lambda figure: figure.texts or ABSENT, optional=True),
    ),
)
CARD_HEAD = Fields[NamedHead](
    "CardHead",
    "",
    (Field("behaviour", str), Field("head", str, "", lambda e: str(e.head)), Field("title", str)),
)


READ_HEAD = Fields[ReadHead](
    "ReadHead",
    "A read-out's accuracy around a head: on the stream before it, on its addition, on the sum.",
    (
        Field("head", str, "", lambda each: str(each.head)),
        Field("before", int | float),
        Field("added", int | float),
        Field("after", int | float),
    ),
)
READOUT = Fields[ReadOut](
    "ReadOut",
    "Linear maps that read classes out of a model's vectors, measured on held-out words.",
    (
        Field("name", str),
        Field("behaviour", str),
        Field("classes", list[str]),
        Field("n", int),
        Field("chance", int | float),
        Field("token", int | float, "The accuracy of a read-out from only the token."),
        Field("heads", list_of(READ_HEAD)),
    ),
)


def _or_absent(value: object) -> object:
    return ABSENT if value is None else value


MODEL_CARD = Fields[ModelCard](
    "CardObject",
    "",
    (
        Field("schema", int, "", lambda _: CARD_SCHEMA),
        Field("name", str),
        Field("description", str),
        Field("bos", bool),
        Field("heads", list_of(CARD_HEAD)),
        Field("figures", list_of(FIGURE)),
        Field("loss_limit", int | float | None, "", lambda c: _or_absent(c.loss_limit), True),
        Field("chance_cosine", int | float, "", lambda c: _or_absent(c.chance_cosine), True),
        Field("retrieval", list[str], "", lambda c: [*map(str, c.retrieval)] or ABSENT, True),
        Field("stop", list[str], "", lambda c: list(c.stop) or ABSENT, True),
        Field("readouts", list_of(READOUT), "", lambda c: c.readouts or ABSENT, True),
    ),
)


class NotACaptureError(ValueError):
    """The object belongs to another program."""


class NewerCaptureError(ValueError):
    """The object was written by a later version, in a layout not known here."""


def facts_from(written: object) -> JsonObject:
    """The facts of a capture, each of the type that its field has.

    Raises:
        NotACaptureError: it is not a capture.
        NewerCaptureError: it is of a later version.
    """
    facts = written if isinstance(written, dict) else {}
    schema = facts.get("schema")
    known = rf"{CAPTURE_SCHEMA}/([0-9]{{1,6}})"
    layout = re.fullmatch(known, schema) if isinstance(schema, str) else None
    if layout is None:
        raise NotACaptureError("it has no capture schema")
    if int(layout[1]) > CAPTURE_VERSION:
        raise NewerCaptureError(schema)
    if layout[1] == "1":  # it held a sentence for each transform
        sentences = _read(list[str], facts.get("transforms"), "transforms")
        _check(set(sentences) <= set(SENTENCES), "transforms")
        transforms = [transform_to_dict(SENTENCES[sentence]) for sentence in sentences]
        facts = {**facts, "transforms": transforms}
    return cast(JsonObject, _read(CAPTURE, facts, "capture"))


def capture_from(facts: JsonObject) -> Capture:
    """The capture that has these facts, without its arrays."""
    kind, text, target = (facts[name] for name in ("kind", "text", "target"))
    model, unknown = _model(facts["model"]), facts.get("unknown_words", [])
    queries = _tokens(facts["query_tokens"], target if kind in ("cross", "decoder") else text)
    keys = queries
    if facts["key_tokens"] is not None:
        keys = _tokens(facts["key_tokens"], target if kind == "decoder" else text)
    _check(len(facts["left_out"]) == 2 and all(map(_is_count, facts["left_out"])), "left_out")
    _check(sum(map(len, unknown)) <= len(text), "unknown_words")
    _check(len(facts["transforms"]) <= MOST_TRANSFORMS, "transforms")
    _check_lengths(facts["versions"])
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
        _check(bool(heads) and len(set(heads)) == len(heads), f"the heads of layer {layer}")
    numbers = [layer for layer, _ in layers]
    _check(bool(numbers) and len(set(numbers)) == len(numbers), "the list of layers")
    return layers


def with_arrays(
    capture: Capture, layers: Iterable[LayerPattern], extras: Mapping[str, FloatArray]
) -> Capture:
    """The capture with its arrays, after a check that their numbers are possible."""
    capture = replace(capture, layers=tuple(layers), extras=extras)
    low = -LARGEST if capture.signed else 0.0
    high = LARGEST if capture.signed or capture.transformed_by(UNBOUNDED) else LARGEST_WEIGHT
    for layer in capture.layers:
        array = layer.weights
        within = not array.size or bool(low <= array.min() and array.max() <= high)  # no NaN
        _check(within, f"a number of layer {layer.layer}")
    per_layer = capture.model.heads_per_layer
    for name, most in ((VALUE_NORMS, LARGEST), (END_READ, LARGEST_WEIGHT), (RESTS, 1.0)):
        if (held := extras.get(name)) is not None:
            expected = (len(per_layer), max(per_layer), len(capture.key_tokens))
            _check(held.shape == expected, f"the shape of {name}")
            # NaN: the layer has no such head
            _check(not ((held < 0) | (held > most)).any(), name)
    gates = extras.get(GATES)
    if gates is not None:
        sizes = (2, len(per_layer), max(per_layer), len(capture.query_tokens))
        _check(gates.shape == sizes, f"the shape of {GATES}")
        _check(not ((gates < 0) | (gates > LARGEST)).any() and not (gates[0] > 1).any(), GATES)
    return capture


def card_from(written: object) -> ModelCard:
    """A model's card, as `MODEL_CARD` writes it; its heads may be those of another model."""
    facts = _read(MODEL_CARD, written, "card")
    heads, figures = facts["heads"], facts["figures"]
    retrieval, stop = facts.get("retrieval", []), facts.get("stop", [])
    readouts = facts.get("readouts", [])
    for entries in (heads, figures, retrieval, stop, readouts):
        _check(len(entries) <= MOST_ENTRIES, "the length of a list")
    for entry in (facts, *heads, *figures):
        _check_lengths(entry)
    _check(all(0 < len(text) <= LONGEST_NAME for text in stop), "stop")
    return ModelCard(
        **{name: facts[name] for name in ("name", "description", "bos")},
        heads=tuple(
            NamedHead(entry["behaviour"], _head(entry["head"]), entry["title"]) for entry in heads
        ),
        figures=tuple(map(_figure, figures)),
        loss_limit=_number(facts.get("loss_limit"), "loss_limit"),
        retrieval=tuple(map(_head, retrieval)),
        stop=tuple(stop),
        chance_cosine=_share(facts.get("chance_cosine"), "chance_cosine"),
        readouts=tuple(map(_readout, readouts)),
    )


def _readout(entry: JsonObject) -> ReadOut:
    classes, heads = entry["classes"], entry["heads"]
    _check(1 < len(classes) == len(set(classes)) <= MOST_ENTRIES, "the classes of a read-out")
    _check(len(heads) <= MOST_ENTRIES and _is_count(entry["n"]), "a read-out")
    _check(all(len(each) <= LONGEST_NAME for each in classes), "the classes of a read-out")
    _check_lengths(entry)
    around = []
    for each in heads:
        shares = {name: _share(each[name], name) for name in ("before", "added", "after")}
        around.append(ReadHead(_head(each["head"]), **shares))
    return ReadOut(
        name=readable(entry["name"]),
        behaviour=entry["behaviour"],
        classes=tuple(map(readable, classes)),
        n=entry["n"],
        chance=_share(entry["chance"], "chance"),
        token=_share(entry["token"], "token"),
        heads=tuple(around),
    )


def _share(value: Any, name: str) -> Any:
    """A number from 0 to 1, or None."""
    number = _number(value, name)
    _check(number is None or 0 <= number <= 1, name)
    return number


def _head(name: str) -> Head:
    named = re.fullmatch(r"L([0-9]{1,4})H([0-9]{1,4})", name)
    if named is None:
        raise ValueError(f"{readable(name)!r} is not a head")
    return Head(int(named[1]), int(named[2]))


def _figure(entry: JsonObject) -> Figure:
    _check(_is_count(entry["n"]), "n")
    return Figure(
        behaviour=entry["behaviour"],
        measure=entry["measure"],
        value=_number(entry["held_out"], "held_out"),
        bar=_number(entry["bar"], "bar"),
        n=entry["n"],
        texts=entry.get("texts", ""),
    )


def _number(value: Any, name: str) -> Any:
    _check(value is None or abs(value) <= LARGEST_COUNT, name)  # no NaN
    return None if value is None else float(value)


def model_of_dict(written: object) -> ModelIdentity:
    """A model's identity, as `MODEL` writes it."""
    return _model(_read(MODEL, written, "model"))


def _model(entry: JsonObject) -> ModelIdentity:
    per_layer = tuple(entry["heads_per_layer"])
    _check(all(n >= 0 for n in per_layer) and sum(per_layer) <= MOST_HEADS, "heads_per_layer")
    _check(_is_count(entry["parameters"]), "parameters")
    _check_lengths(entry)
    return ModelIdentity(**{**entry, "heads_per_layer": per_layer})


def _transform(entry: JsonObject) -> Transform:
    known = KINDS.get(_read(str, entry.get("kind"), "transforms"))
    if known is None or set(entry) != {"kind", *(field.name for field in fields(known))}:
        raise ValueError("transforms cannot be right")
    values = {f.name: _read(f.type, entry[f.name], "transforms") for f in fields(known)}
    _check(0 <= values.get("share", 0) <= 1, "transforms")
    _check(values.get("texts", 2) >= 2, "transforms")
    return known(**values)


def _brings(entry: JsonObject | None, model: ModelIdentity, end: int) -> Bringing | None:
    if entry is None:
        return None
    try:
        likeliest = tuple((_short(token), _real(chance)) for token, chance in entry["likeliest"])
        effects = tuple((Head(n, head), _real(effect)) for n, head, effect in entry["effects"])
    except (TypeError, ValueError):
        _check(False, "brings")
    for head, _ in effects:
        _check(all(type(number) is int for number in head), "brings")
        _check_head(head, model)
    _check(all(0 <= chance <= 1 for _, chance in likeliest), "brings")
    _check(all(abs(n) <= LARGEST for n in (entry["times"], *(n for _, n in effects))), "brings")
    _check(1 <= len(likeliest) <= 2 and 1 <= len(effects) <= MOST_ENTRIES, "brings")
    _check(0 <= entry["start"] < end, "brings")
    effects = tuple(sorted(effects, key=lambda each: -each[1]))
    return Bringing(
        likeliest, _short(entry["token"]), entry["start"], effects, float(entry["times"])
    )


def _real(number: object) -> float:
    _check(isinstance(number, int | float) and not isinstance(number, bool), "a number")
    return float(cast(float, number))


def _short(text: object) -> str:
    _check(isinstance(text, str) and len(text) <= LONGEST_NAME, "a token")
    return readable(str(text))


def _loss(entry: JsonObject | None) -> TextLoss | None:
    if entry is None:
        return None
    loss = TextLoss(**entry)
    within = abs(loss.nats) <= LARGEST and abs(loss.limit) <= LARGEST  # no NaN
    _check(within and loss.characters >= 0, "loss")
    return loss


def _segments(facts: JsonObject, size: int) -> tuple[Segment, ...]:
    segments = []
    for entry in facts.get("segments", ()):
        _check_lengths(entry)
        for slice_ in (slices := entry["slices"]):
            start, end = _read(list[int], slice_, "segments") if len(slice_) == 2 else (0, 0)
            _check(0 <= start < end <= size, "a segment's place in the text")
        _check(bool(slices), "a segment's place in the text")
        segments.append(Segment(entry["name"], tuple((start, end) for start, end in slices)))
    _check(bool(segments) or "segments" not in facts, "segments")
    return tuple(segments)


def _tokens(entries: Sequence[JsonObject], text: str) -> tuple[Token, ...]:
    """Read the tokens of a text, whose slices are within it.

    Their images are counted from 1; in captures that were saved before that, from 0.
    """
    first = min((entry["image"] for entry in entries if "image" in entry), default=1)
    tokens = tuple(_token(entry, len(text), min(first, 1)) for entry in entries)
    _check(bool(tokens), "the list of tokens")
    _check(all(token.index == i for i, token in enumerate(tokens)), "a token's index")
    return tokens


def _token(entry: JsonObject, size: int, first: int) -> Token:
    text, start, end, part = (entry[name] for name in ("text", "start", "end", "part"))
    _check(0 <= start <= end <= size, "a token's place in the text")
    _check(len(text) <= end - start, "a token's text")
    _check(-1 <= entry["id"] <= LARGEST_COUNT, "a token's id")
    _check(part is None or (len(part) == 2 and 1 <= part[0] <= part[1]), "a token's part")
    image = entry["image"] - first if "image" in entry else None
    _check(image is None or (0 <= image < MOST_IMAGES and first >= 0), "a token's image")
    segment = entry.get("segment")
    _check(segment in (None, *SEGMENTS), "a token's segment")
    if entry["special"]:
        _check_lengths({"label": entry["label"]})
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
    _check(len(time) == 2, "a token's time")
    begin, end = (_number(each, "time") or 0.0 for each in time)
    _check(0 <= begin < end, "a token's time")
    return begin, end


def _patch(image: int | None, patch: JsonObject | None) -> Patch | None:
    """The part of an image that a token stands for."""
    if patch is None:
        return None
    if image is None or len(patch["box"]) != 4:
        raise ValueError("a token's patch cannot be right")
    x0, y0, x1, y1 = (_number(edge, "box") or 0.0 for edge in patch["box"])
    _check(x0 < x1 and y0 < y1 and _is_count(patch["row"]) and _is_count(patch["column"]), "box")
    return Patch(image, patch["view"], patch["row"], patch["column"], (x0, y0, x1, y1))


def images_from(facts: JsonObject, pixels: Sequence[Pixels]) -> tuple[SeenImage, ...]:
    """The images of a capture, whose pixels are given."""
    images = []
    for entry, array in zip(facts.get("images", ()), pixels, strict=True):
        _check(array.shape == (entry["height"], entry["width"], 3), "the size of an image")
        _check_lengths(entry)
        views = []
        for view in entry["views"]:
            _check(len(view["window"]) == 4, "window")
            x0, y0, x1, y1 = (_number(edge, "window") or 0.0 for edge in view["window"])
            rows, columns = view["rows"], view["columns"]
            _check(x0 < x1 and y0 < y1, "window")
            _check(0 < rows <= MOST_PATCHES and 0 < columns <= MOST_PATCHES, "rows and columns")
            views.append(ImageView(view["name"], (x0, y0, x1, y1), rows, columns))
        raw = RawImage(readable(entry["name"]), array, tuple(entry["changes"]))
        images.append(SeenImage(raw, tuple(views)))
    return tuple(images)


def check_patches(capture: Capture) -> Capture:
    """Check that the patches of tokens are in the views of the images."""
    for token in (*capture.query_tokens, *capture.key_tokens):
        _check(token.image is None or token.image < len(capture.images), "a token's image")
        if (patch := token.patch) is not None:
            views = capture.images[patch.image].views
            _check(0 <= patch.view < len(views), "a token's view")
            view = views[patch.view]
            _check(patch.row < view.rows and patch.column < view.columns, "a token's patch")
    return capture


def sound_from(facts: JsonObject, envelope: Waveform) -> HeardSound:
    """The sound of a capture, whose envelope is given."""
    entry = facts["sound"]
    _check_lengths(entry)
    _check(envelope.ndim == 2 and envelope.shape[1] == 2, "the envelope of a sound")
    _check(bool(np.isfinite(envelope).all()), "the envelope of a sound")
    for name in ("seconds", "begin", "end", "frame", "window"):
        _check(0 <= entry[name] <= LARGEST_COUNT, name)
    _check(entry["begin"] < entry["end"] and entry["frame"] > 0, "the sound")
    _check(_is_count(entry["rate"]) and _is_count(entry["heard_rate"]), "rate")
    own = {**entry, "name": readable(entry["name"]), "changes": tuple(entry["changes"])}
    return HeardSound(**own, envelope=envelope)


MOST_IMAGES, MOST_PATCHES = 1_000, 10_000
"""The most images of a capture, and the most rows or columns of a view."""


def _named(entry: JsonObject, model: ModelIdentity) -> NamedHead:
    head = Head(entry["layer"], entry["head"])
    _check_head(head, model)
    _check_lengths(entry)
    return NamedHead(behaviour=entry["behaviour"], head=head, title=entry["title"])


def _check_head(head: Head, model: ModelIdentity) -> None:
    known = 0 <= head.layer < model.n_layer and 0 <= head.head < model.heads_per_layer[head.layer]
    _check(known, f"the head {head}")


def _check_lengths(entry: JsonObject) -> None:
    """Check that texts that share a line with others are short enough."""
    for name, value in entry.items():
        _check(not isinstance(value, str) or len(value) <= LONGEST_NAME, name)


def row_from(kind: Fields[Any], written: object) -> JsonObject:
    """Read a row with these fields, each of its type, without any others.

    Raises:
        ValueError: it is not such a row.
    """
    return cast(JsonObject, _read(kind, written, "the row"))


def _read(kind: Any, value: Any, name: str) -> Any:
    """Read a value of a field's type from JSON; undeclared fields of objects are left out."""
    kinds = kinds_of(kind)
    if value is None and NoneType in kinds:
        return None
    kind, origin, arguments = kinds[0], get_origin(kinds[0]), get_args(kinds[0])
    if isinstance(kind, Fields):
        _check(isinstance(value, dict), name)
        known = (field for field in kind.all if field.name in value or not field.optional)
        return {f.name: _read(f.type, value.get(f.name, OLDER.get(f.name)), f.name) for f in known}
    if origin in (list, tuple):
        _check(isinstance(value, list), name)
        return origin(_read(arguments[0], each, name) for each in value)
    if origin is dict:
        _check(isinstance(value, dict), name)
        return {key: _read(arguments[1], each, key) for key, each in value.items()}
    among = kind is Any or any(_is(value, each) for each in kinds)
    _check(value in arguments if origin is Literal else among, name)
    return value


def _is(value: object, kind: type) -> bool:
    if type(value) is str and not value.isascii():
        value.encode("utf-8")  # half a character is a UnicodeEncodeError, which is a ValueError
    # not isinstance: True is not a number here
    return type(value) is kind and not (kind is int and abs(cast(int, value)) > LARGEST)


def _is_count(number: int) -> bool:
    return 0 <= number <= LARGEST_COUNT


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"{what} cannot be right")
