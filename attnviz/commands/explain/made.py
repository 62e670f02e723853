"""A text's whole run as a lesson page holds it, where only Python can run the model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.draw.labels import distinct_labels
from attnviz.draw.titles import amount
from attnviz.errors import InputError
from attnviz.kit.prepare import Prepared
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.predict import log_softmax
from attnviz.records.tokens import Token
from attnviz.records.trace import Kinds

if TYPE_CHECKING:
    from attnviz.models.tokenizer import TextTokenizer

LIKELY = 100
"""The number of likeliest next tokens that a page can name."""
OF_LAYER = (
    *("x", "normed", "source", "q", "k", "v", "scores", "pattern", "z"),
    *("written", "attention", "mlp", "after", "bias"),
)
HIGHEST = float(np.finfo(np.float16).max)


def made_run(
    prepared: Prepared, text: str, most: int
) -> tuple[Mapping[str, object], Mapping[str, FloatArray]]:
    """The facts and the arrays of a run, by their dotted names; `most`: bytes on the page.

    Raises:
        InputError: it has more even as float16, or layers of different kinds.
    """
    model, empty = prepared.model, prepared.empty
    heads = model.identity.heads_per_layer
    if len({*heads}) > 1:
        wrong = f"a page shows layers of one kind, but those of {model.identity.name} differ"
        raise InputError(wrong, "use the text output")
    target, scales = [token.id for token in prepared.target], list[float]()
    arrays: dict[str, FloatArray] = {}
    shared: Mapping[str, FloatArray] = {}
    for layer in range(len(heads)):
        whole = model.whole_layer(prepared.ids, layer, target)
        found = whole.arrays
        scales.append(whole.scale)
        own = {f"runs.0.layers.{layer}.{n}": found[n] for n in OF_LAYER if n in found}
        if layer == 0:
            numbers = sum(array.size for array in own.values()) * len(heads)
            size = numbers * 2 * 4 // 3  # two bytes each, in base64
            if size > most:
                wrong = f"the page would have {size >> 20} MB, over the limit of {most >> 20} MB"
                raise InputError(wrong, "give a shorter text, or use a smaller model")
            predicts = model.kind != "encoder" and (model.causal or model.kind == "cross")
            of_run = ("embedding", "position", *(["logits"] if predicts else []))
            shared = {name: found[name] for name in of_run if name in found}
        arrays |= own
    arrays |= {f"runs.0.{name}": array for name, array in shared.items()}
    run = {"text": text, "target": empty.target, "scales": scales, **sides_of(empty, text)}
    written = written_of(model.tokenizer, shared.get("logits"))
    return {"made": "runs", "runs": [run], "written": written}, arrays


def sides_of(capture: Capture, text: str) -> Mapping[str, object]:
    """The queries and the keys of a run, as a page holds them; `text` is what was read."""
    queries, keys = capture.query_tokens, capture.key_tokens
    written = capture.target if capture.kind == "decoder" else text
    found = {"queries": _side(queries, capture.target or text)}
    return found if keys is queries else {**found, "keys": _side(keys, written)}


def _side(tokens: Sequence[Token], text: str) -> list[Mapping[str, object]]:
    def units(at: int) -> int:
        return len(text[:at].encode("utf-16-le")) // 2

    return [
        {
            "id": token.id,
            "label": label,
            "text": token.text,
            "start": units(token.start),
            "end": units(token.end),
            "special": token.special,
        }
        for token, label in zip(tokens, distinct_labels(tokens), strict=True)
    ]


def written_of(
    tokenizer: "TextTokenizer", logits: FloatArray | None, count: int = LIKELY
) -> Mapping[int, Any]:
    """The label and the text of the likeliest next tokens, by id."""
    likely = [] if logits is None else np.argsort(-logits, kind="stable")[:count].tolist()
    return {id_: {"label": tokenizer.label(id_), "text": tokenizer.exact(id_)} for id_ in likely}


def error_of_half(arrays: Mapping[str, FloatArray]) -> Mapping[str, float]:
    """The largest differences of a made run's weights and probabilities from float16's.

    Raises:
        InputError: a number is too large for float16.
    """
    if any(np.abs(array[np.isfinite(array)]).max(initial=0) > HIGHEST for array in arrays.values()):
        wrong = "the page would be too large, and its numbers too large to be written with 16 bits"
        raise InputError(wrong, "give a shorter text")
    found = {"weight": 0.0}
    for name, array in arrays.items():
        half = array.astype(np.float16).astype(np.float32)
        if name.endswith(".pattern"):
            found["weight"] = max(found["weight"], float(np.abs(half - array).max()))
        if name.endswith(".logits"):
            exact, rounded = (np.exp(log_softmax(each[None])) for each in (array, half))
            found["probability"] = float(np.abs(exact - rounded).max())
    return found


def departures(kinds: Kinds) -> list[str]:
    """The differences of a model's layers from those on the page, a sentence each."""
    sentences = []
    if kinds.changed:
        how = f"Queries and keys are {kinds.changed} behind their projections"
        sentences.append(f"{how}; the page shows them as they are compared.")
    if kinds.group > 1:
        sentences.append(f"{amount(kinds.group, 'head')} share their keys and values.")
    if kinds.residual == "normed":
        sentences.append(
            "A norm stands between the sum of the heads and the residual stream, so what a head "
            "adds is shown before that norm."
        )
    if kinds.residual == "mixed":
        sentences.append(
            "A norm stands over the sum of the residual stream and attention, so what a head adds "
            "is shown before that norm, and the MLP's share is all the rest of the layer."
        )
    return sentences
