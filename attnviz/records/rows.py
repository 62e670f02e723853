"""Records as JSON: what the JSON object and a saved capture have in common.

The way back, from JSON to records, is in `restore.py`.
"""

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isnan
from typing import Annotated, Any, Protocol, TypeAlias, TypedDict

import numpy as np

from attnviz.records.call import Asked
from attnviz.records.capture import Capture, MadeBy, ModelIdentity, TextLoss
from attnviz.records.heads import Head
from attnviz.records.parts import Node, Part, Removal, Shares, Why, Write
from attnviz.records.tokens import Token
from attnviz.records.trace import EmbeddingTrace, HeadTrace, Worked
from attnviz.records.transforms import transform_to_dict

LEAST_FLOAT32 = float(np.finfo(np.float32).smallest_subnormal)
MOST_FLOAT32 = float(np.finfo(np.float32).max)
CAPTURE_SCHEMA = "attnviz-capture"
CAPTURE_VERSION = 3
CAPTURE_META = "meta"
SCHEMA = "attnviz/3"
"""The version of everything that commands write as JSON; `attnviz schema` describes it."""


class Calculated(Protocol):
    """A calculation over a text."""

    @property
    def text(self) -> str:
        """The text that was run."""

    @property
    def model(self) -> ModelIdentity:
        """The model."""

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of the libraries, by name."""


def to_json(value: object) -> str:
    """A value as JSON on one line that is safe on a terminal.

    Letters stay as they are; whatever cannot be printed (control and format characters,
    lone surrogates, unusual spaces) is written as `\\uXXXX`. Numbers are as `shortest` has them.
    """
    written = json.dumps(shortest(value), ensure_ascii=False, allow_nan=False)
    if written.isprintable():
        return written
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in written)


def shortest(value: Any) -> Any:
    """A value for JSON, in which each number that is a float32 has no more digits than it takes.

    Python's floats are of 64 bits, and the decimals that tell a float32 from its 64-bit neighbours
    are no digits of it: 0.1 in float32 would be 0.10000000149011612. A number that float32 cannot
    hold, and a whole one, stays as it is.
    """
    if isinstance(value, float):
        if value.is_integer() or not LEAST_FLOAT32 <= abs(value) <= MOST_FLOAT32:
            return value
        single = np.float32(value)
        return float(str(single)) if float(single) == value else value
    if isinstance(value, Mapping):
        return {name: shortest(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [shortest(each) for each in value]
    return value


def model_to_dict(model: ModelIdentity) -> dict[str, Any]:
    """A model's identity, as written to JSON."""
    return {
        "name": model.name,
        "architecture": model.architecture,
        "revision": model.revision,
        "engine": model.engine,
        "dtype": model.dtype,
        "parameters": model.parameters,
        "heads_per_layer": list(model.heads_per_layer),
        "fingerprint": model.fingerprint,
    }


def made_to_dict(
    captures: Iterable[Capture], models: Sequence[ModelIdentity] = (), told: Asked | None = None
) -> dict[str, Any]:
    """How a result was made: every result carries this one record.

    Args:
        captures: the runs that it is of.
        models: the models of a result that has none.
        told: what was asked for; None: as its captures say.
    """
    runs = list(captures)
    every = list(dict.fromkeys([*(run.model for run in runs), *models]))
    told = told or (runs[0].asked if runs else Asked())
    versions = dict(runs[0].versions) if runs and runs[0].versions else versions_now()
    return {
        "models": [model_to_dict(model) for model in every],
        "runs": [
            {"text": r.text, "target": r.target, "bos": r.bos, "model": every.index(r.model)}
            for r in runs
        ],
        "versions": dict(sorted(versions.items())),
        "seed": told.seed,
        "options": dict(told.options),
    }


def versions_now() -> dict[str, str]:
    """The versions of this program and of the libraries under it that are installed."""
    import importlib.metadata  # takes a moment that a saved capture need not wait

    found = {"python": platform.python_version()}
    for name in ("attnviz", "numpy", "torch", "transformers"):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def token_to_dict(token: Token) -> dict[str, Any]:
    """A token, as written to JSON; `label` is how a person reads it."""
    return {
        "index": token.index,
        "id": token.id,
        "text": token.text,
        "exact": token.exact,
        "label": token.label,
        "start": token.start,
        "end": token.end,
        "special": token.special,
        "part": None if token.part is None else list(token.part),
    }


def loss_to_dict(loss: TextLoss) -> dict[str, Any]:
    """How well a text was predicted, as written to JSON."""
    return {"nats": loss.nats, "characters": loss.characters, "limit": loss.limit}


def trace_to_dict(trace: HeadTrace) -> dict[str, Any]:
    """A head's trace without its arrays."""
    return {
        **run_to_dict("explain", trace),
        "subject": "head",
        "kind": trace.kind,
        **({"target": trace.target} if trace.target else {}),
        **_tokens_to_dict(trace),
        **unknown_to_dict(trace.unknown_words),
        "layer": trace.layer,
        "head": trace.head,
        "query": trace.query,
        "norm": trace.kinds.norm,
        "positions": trace.kinds.positions,
        "query_heads_per_key_value_head": trace.kinds.group,
        "scale": trace.scale,
        "nearest": [{"token": p.label, "cosine": p.score, "exact": p.exact} for p in trace.nearest],
        "next_tokens": [
            {"token": p.label, "probability": p.score, "exact": p.exact} for p in trace.next_tokens
        ],
    }


def embedding_trace_to_dict(trace: EmbeddingTrace) -> dict[str, Any]:
    """A comparison of token embeddings without its arrays."""
    return {
        **run_to_dict("explain", trace),
        "subject": "embeddings",
        "tokens": [token_to_dict(token) for token in trace.tokens],
        "query": trace.query,
        "causal": trace.causal,
    }


def run_to_dict(command: str, trace: Calculated) -> dict[str, Any]:
    """The model and the text of a calculation, without tokens."""
    return {
        "schema": SCHEMA,
        "command": command,
        "model": model_to_dict(trace.model),
        "versions": dict(sorted(trace.versions.items())),
        "text": trace.text,
    }


def _tokens_to_dict(trace: HeadTrace) -> dict[str, Any]:
    """One list where queries and keys are the same tokens, else two."""
    queries, keys = (
        [token_to_dict(token) for token in tokens]
        for tokens in (trace.query_tokens, trace.key_tokens)
    )
    if trace.kind in ("cross", "decoder"):
        return {"query_tokens": queries, "key_tokens": keys}
    return {"tokens": queries}


def worked_to_dict(worked: Worked) -> dict[str, Any]:
    """A worked example without its arrays."""
    return {
        "schema": SCHEMA,
        "command": "explain",
        "subject": "example",
        "labels": list(worked.given.labels),
        "heads": worked.given.heads,
        "similarity": worked.way.similarity,
        "causal": worked.way.causal,
        "rounded": worked.way.rounded,
    }


def layer_entry(layer: int) -> str:
    """The name under which a saved capture holds a layer's array, (heads, n_queries, n_keys)."""
    return f"layer_{layer}"


def extra_entry(position: int) -> str:
    """The name under which a saved capture holds the extra array at this position."""
    return f"extra_{position}"


def capture_to_dict(capture: Capture) -> dict[str, Any]:
    """Everything of a capture but its arrays, in the order in which it is written."""
    shared = capture.key_tokens == capture.query_tokens
    segments = [{"name": s.name, "slices": list(map(list, s.slices))} for s in capture.segments]
    return {
        "schema": f"{CAPTURE_SCHEMA}/{CAPTURE_VERSION}",
        "model": model_to_dict(capture.model),
        "versions": dict(sorted(capture.versions.items())),
        "text": capture.text,
        "bos": capture.bos,
        "left_out": list(capture.left_out),
        "kind": capture.kind,
        "target": capture.target,
        "causal": capture.causal,
        "sinks": capture.sinks,
        "transforms": [transform_to_dict(transform) for transform in capture.transforms],
        "query_tokens": [token_to_dict(token) for token in capture.query_tokens],
        "key_tokens": None if shared else [token_to_dict(token) for token in capture.key_tokens],
        "layers": [{"layer": layer.layer, "heads": list(layer.heads)} for layer in capture.layers],
        "extras": list(capture.extras),
        "seed": capture.asked.seed,
        "options": dict(capture.asked.options),
        "loss": None if capture.loss is None else loss_to_dict(capture.loss),
        "named_heads": [
            {
                "behaviour": named.behaviour,
                "layer": named.head.layer,
                "head": named.head.head,
                "title": named.title,
            }
            for named in capture.named_heads
        ],
        **unknown_to_dict(capture.unknown_words),
        **({"segments": segments} if segments else {}),
    }


def unknown_to_dict(words: Sequence[str]) -> dict[str, Any]:
    """The words that a model does not know; nothing where there are none."""
    return {"unknown_words": list(words)} if words else {}


# Why a head attends where it does, as JSON.


def why_to_dict(why: Why) -> dict[str, Any]:
    """A contrast with all of its parts, the strongest first."""
    row = why.row
    return {
        **run_to_dict("why", why),
        "tokens": [token_to_dict(token) for token in why.tokens],
        "layer": why.head.layer,
        "head": why.head.head,
        "query": why.query,
        "key": why.key,
        "versus": why.versus,
        "group": why.group,
        "raw": row.raw.tolist(),
        "scores": row.scores.tolist(),
        "weights": row.weights.tolist(),
        "sink_score": row.sink,
        "entropy": row.entropy,
        "contrast": why.contrast,
        "added": why.added,
        "error": why.error,
        "query_parts": _shares(why.query_shares),
        "key_parts": _shares(why.key_shares),
        "pairs": [
            {"query": _part(pair.query), "key": _part(pair.key), "value": pair.value}
            for pair in why.pairs
        ],
        **({"trees": {side: _nodes(nodes) for side, nodes in why.trees}} if why.trees else {}),
        **({"without": [_removal(each) for each in why.removals]} if why.removals else {}),
    }


def _part(part: Part | None) -> dict[str, Any] | None:
    """None stands for all other parts."""
    return None if part is None else part._asdict()


def _shares(shares: Shares) -> list[dict[str, Any]]:
    order = shares.strongest(len(shares.parts))
    return [{**shares.parts[i]._asdict(), "value": float(shares.values[0, i])} for i in order]


def _nodes(nodes: tuple[Node, ...]) -> list[dict[str, Any]]:
    return [
        {
            "part": _part(node.part),
            "value": node.value,
            "query": node.query,
            "key": node.key,
            "parts": _nodes(node.children),
        }
        for node in nodes
    ]


def _removal(removal: Removal) -> dict[str, Any]:
    return {**vars(removal), "part": removal.part._asdict()}


def write_to_dict(write: Write) -> dict[str, Any]:
    """What a head writes, with every reader."""
    return {
        **run_to_dict("why", write),
        "tokens": [token_to_dict(token) for token in write.tokens],
        "layer": write.head.layer,
        "head": write.head.head,
        "query": write.query,
        "weights": write.weights.tolist(),
        "lengths": write.lengths.tolist(),
        "logits": [
            {
                "token": label,
                "id": moved.id,
                "effect": moved.effect,
                "by_source": list(moved.by_source),
            }
            for label, moved in write.moved
        ],
        "readers": [
            {**vars(reader), "layer": reader.head.layer, "head": reader.head.head}
            for reader in write.readers
        ],
    }


# Types of values and objects that several commands write.


Versions: TypeAlias = Annotated[dict[str, str], "The libraries that computed it, by name."]
Arrays: TypeAlias = Annotated[
    dict[str, Any], "Every array as nested lists, by name; null stands for −∞."
]
Unknown: TypeAlias = Annotated[list[str], "Words that the built-in translator was not trained on."]
LayerNumber: TypeAlias = Annotated[int, "The layer, counted from 0."]
HeadNumber: TypeAlias = Annotated[int, "The head's number in its layer, counted from 0."]
LineNumber: TypeAlias = Annotated[int, "The number of the input line; 1 for a single text."]
LineOrMean: TypeAlias = Annotated[
    int | None, "The number of the input line; 1 for a single text; null: the mean over all lines."
]
ModelName: TypeAlias = Annotated[str, "The name that the model was loaded by."]
Error: TypeAlias = Annotated[float | None, "Standard error; null where there is none."]
Exact: TypeAlias = Annotated[str, "The token's own text with its leading space; empty: none."]


class HeadName(TypedDict):
    """A head among others."""

    layer: LayerNumber
    head: HeadNumber


def head_name(head: Head) -> HeadName:
    """A head as rows name it."""
    return {"layer": head.layer, "head": head.head}


def measured(value: float | None) -> float | None:
    """A number, or None where nothing could be measured."""
    return None if value is None or isnan(value) else value


class ModelObject(TypedDict):
    """A model, and how it was run."""

    name: str
    architecture: str
    revision: str | None
    engine: Annotated[MadeBy, "What ran it; none where it was not run."]
    dtype: str
    parameters: Annotated[int, "0 where nobody counted them."]
    heads_per_layer: list[int]
    fingerprint: Annotated[
        str | None, "Of samples of the weights; behind a - of all of them, if they were verified."
    ]


class RunObject(TypedDict):
    """A run of a model over a text."""

    text: str
    target: Annotated[str, "What an encoder-decoder wrote, or was to write."]
    bos: Annotated[bool, "Whether a beginning token was put in front."]
    model: Annotated[int, "Which of the models, from 0."]


class MadeObject(TypedDict):
    """How a result was made."""

    models: list[ModelObject]
    runs: Annotated[list[RunObject], "Of each text."]
    versions: Versions
    seed: Annotated[int | None, "The seed, where the command takes one."]
    options: Annotated[dict[str, Any], "The options that the user gave, as given."]


class TokenObject(TypedDict):
    """A token of a text."""

    index: Annotated[int, "Its position."]
    id: int
    text: Annotated[str, "The exact slice of the text."]
    exact: Exact
    label: Annotated[str, "As a person reads it."]
    start: Annotated[int, "Its first character in the text."]
    end: Annotated[int, "The character behind its last."]
    special: Annotated[bool, "Whether it is a special token, which has no slice."]
    part: Annotated[list[int] | None, "[1, 3]: the first of three that share a character."]


class LossObject(TypedDict):
    """How well the built-in model predicts the text."""

    nats: float
    characters: int
    limit: float
    nats_per_character: float
    strange: Annotated[bool, "Whether the text is not of the model's world."]
