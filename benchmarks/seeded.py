"""A capture that is not easy to compress: of 12 × 12 heads over so many tokens, from a seed."""

from pathlib import Path

import numpy as np

from attnviz.inputs.captures import npz_chunks
from attnviz.kit.write import write_bytes
from attnviz.records.capture import Capture, LayerPattern, ModelIdentity
from attnviz.records.tokens import Token

LAYERS, HEADS, SPREAD, SINK = 12, 12, 3.0, 0.6


def write_seeded(path: Path, tokens: int) -> None:
    """Save causal softmax of normal scores, mixed with a share of the weight on token 0."""
    draw = np.random.default_rng(0)
    hidden = np.triu(np.ones((tokens, tokens), bool), 1)
    layers = []
    for layer in range(LAYERS):
        scores = draw.normal(0, SPREAD, (HEADS, tokens, tokens)).astype(np.float32)
        scores[:, hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights *= (1 - SINK) / weights.sum(-1, keepdims=True)
        weights[:, :, 0] += SINK
        layers.append(LayerPattern(layer, tuple(range(HEADS)), weights))
    words = [f"w{n}" for n in range(tokens)]
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    named = tuple(
        Token(n, n, word, int(end) - len(word), int(end))
        for n, (word, end) in enumerate(zip(words, ends, strict=True))
    )
    identity = ModelIdentity("seeded", "gpt2", (HEADS,) * LAYERS, 0, "native")
    capture = Capture(" ".join(words), named, named, tuple(layers), identity, bos=False)
    write_bytes(path, npz_chunks(capture))
