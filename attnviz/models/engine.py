"""The parts of every engine: handing over rows, drawing tokens, changing vectors, recording heads.

Here is the edge of `models/`: blocks of a layer's query rows arrive as tensors and leave as numpy.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.models.attention import Hook, dot_products, kept, masked
from attnviz.models.tokenizer import TextTokenizer
from attnviz.records.capture import Capture, Consumer, FloatArray, PatternBlock, Wanted
from attnviz.records.heads import Head
from attnviz.records.interventions import (
    CutLink,
    Edit,
    Intervention,
    Interventions,
    Site,
    SourceRun,
)
from attnviz.records.tokens import GoOn, Ids, Sampling
from attnviz.records.trace import HeadTrace, Kinds, LayerNumbers, Predicted, Projection

ENTRIES = 1 << 20
"""Weights of all heads to compute at a time, in at least LEAST_ROWS rows: 4 MiB, which stay in a
processor's cache."""
LEAST_ROWS, MOST_ROWS = 32, 128
LOGIT_ROWS = 128
"""Positions whose logits are handed over at a time."""


@dataclass(frozen=True)
class Handover:
    """Takes the computed rows of a run, and hands over the wanted ones."""

    wanted: Wanted
    consume: Consumer

    def take(self, layer: int, queries: Tensor, weights: Tensor) -> None:
        """Hand over computed rows of a wanted layer, at these positions (rows).

        `weights`: those of all heads (h, rows, n) on the first n keys; none of these queries
        attends to a later key.
        """
        heads = self.wanted.heads[layer]
        kept = weights if len(heads) == len(weights) else weights[list(heads)]
        self.consume(PatternBlock(layer, heads, queries.numpy(), kept.float().cpu().numpy()))

    def take_rows(self, layer: int, first: int, pattern: Tensor) -> None:
        """Hand over the wanted rows of a pattern (h, rows, n) that begins at the query `first`."""
        wanted, after = self.wanted.queries, first + pattern.size(1)
        if wanted is None:
            queries = torch.arange(first, after)
        else:
            here = slice(bisect_left(wanted, first), bisect_left(wanted, after))
            queries = torch.tensor(wanted[here], dtype=torch.long)
            pattern = pattern[:, queries - first]
        if len(queries):
            self.take(layer, queries, pattern)

    def hook(self, layer: int) -> Hook:
        """A hook that hands over the patterns (1, h, rows, n) of a hook point, in their order."""
        after = 0  # the query behind the rows that are handed over already

        def hand_over(pattern: Tensor) -> None:
            nonlocal after
            self.take_rows(layer, after, pattern[0])
            after += pattern.size(2)

        return hand_over


def rows_at_a_time(n_keys: int, n_heads: int) -> int:
    """The number of query rows to compute at a time."""
    return max(LEAST_ROWS, min(MOST_ROWS, ENTRIES // max(1, n_heads * n_keys)))


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on a device; nothing waits until it has come to a graphics processor."""
    if device.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def numbers(tensor: Tensor) -> FloatArray:
    """A tensor as float32 numpy."""
    return np.asarray(tensor.detach().float().cpu().numpy(), dtype=np.float32)


# Tokens that a model from scratch writes; chosen as in transformers: temperature, then top-p.


@torch.inference_mode()
def write_tokens(
    model: nn.Module,
    points: Mapping[str, int],
    next_logits: Callable[[Sequence[int]], Tensor],
    sampling: Sampling,
    ends: Collection[int],
    take: Callable[[int, Tensor, Tensor], None],
    go_on: GoOn,
) -> None:
    """Write tokens as `LoadedModel.generate` does.

    `points`: the hook points of the wanted patterns (1, h, n_q, n_k), each with its layer.
    `next_logits`: runs the model on what it has not read yet, and gives the logits (V) behind the
    new tokens so far. `take`: as that of a `Handover`.
    """

    def last_row(pattern: Tensor) -> Tensor:  # (h, 1, n_k), without the whole block
        return pattern[0, :, -1:].clone()

    new: list[int] = []
    with torch.random.fork_rng(), kept(model, points, last_row) as rows:
        torch.manual_seed(sampling.seed)
        while len(new) < sampling.most:
            id_ = _chosen(next_logits(new), sampling)
            if id_ in ends:
                return
            for point, layer in points.items():
                take(layer, torch.tensor([len(new)]), rows[point])
            new.append(id_)
            if not go_on(id_):
                return


def _chosen(logits: Tensor, sampling: Sampling) -> int:
    """The next token by its logits (V); drawn from the global generator of torch, if at all."""
    if sampling.greedy:
        return int(logits.argmax())
    scaled = logits.float() / sampling.temperature
    return int(torch.multinomial(torch.softmax(_nucleus(scaled, sampling.top_p), dim=-1), 1))


def _nucleus(logits: Tensor, top_p: float) -> Tensor:
    """The logits (V), −∞ outside the nucleus (Holtzman et al. 2020, arXiv 1904.09751)."""
    if top_p == 1:
        return logits
    rising, order = logits.sort()
    outside = torch.softmax(rising, dim=-1).cumsum(dim=-1) <= 1 - top_p
    outside[-1] = False  # the likeliest stays
    return logits.masked_fill(torch.zeros_like(outside).scatter(0, order, outside), -torch.inf)


def at_places(logits: Tensor, ids: Sequence[Ids]) -> FloatArray:
    """The log-probabilities (B, m, k), in nats, of ids (m, k) by logits (B, m, V)."""
    logits, at = logits.float(), torch.tensor(ids, device=logits.device)
    chosen = logits.gather(-1, at.expand(len(logits), -1, -1))
    return numbers(chosen - logits.logsumexp(dim=-1, keepdim=True))


def log_probability(logits: Tensor, ids: Tensor) -> Tensor:
    """The log-probability, in nats, of one token a row: (…, rows, V) and (rows) give (…, rows)."""
    logits, ids = logits.float(), ids.expand(logits.shape[:-1])
    return torch.sub(logits.gather(-1, ids[..., None])[..., 0], logits.logsumexp(dim=-1))


# Interventions: a model run with some of its vectors replaced, or some links removed. Many run in a
# batch; everything that they do not name is computed as the model does. Letters in the shape
# comments: B interventions in the batch, n tokens, h heads, d_v width of a head's values, d width
# of the stream, V vocabulary.


@dataclass(frozen=True)
class ChangedBatch:
    """The interventions of a batch, each with its place in it.

    `tokens`: n. `taken`: the replacements of vectors, by ("mean", "source" or "given", site):
    (n, width), already in the order of this text's positions, or (1, width) for all of them.
    """

    interventions: Sequence[Intervention]
    tokens: int
    taken: Mapping[tuple[str, Site], Tensor]

    def edits(self, kind: str, layer: int) -> list[tuple[int, Edit]]:
        """The edits of one kind of site in a layer, each with the place of its run."""
        return [
            (run, change)
            for run, changes in enumerate(self.interventions)
            for change in changes
            if isinstance(change, Edit) and (change.site.kind, change.layer) == (kind, layer)
        ]

    def cuts(self) -> dict[int, dict[tuple[int, int], list[CutLink]]]:
        """The links that are removed, by layer and by (place of the run, query)."""
        layers: dict[int, dict[tuple[int, int], list[CutLink]]] = {}
        for run, changes in enumerate(self.interventions):
            for cut in changes:
                if isinstance(cut, CutLink):
                    layers.setdefault(cut.layer, {}).setdefault((run, cut.query), []).append(cut)
        return layers

    def changed(self, values: Tensor, edits: Iterable[tuple[int, Edit]]) -> Tensor:
        """The vectors of sites (B, n, d), or of a layer's heads (B, h, n, d_v), after edits."""
        changed = values.clone()
        for run, edit in edits:
            at = run if edit.site.head is None else (run, edit.site.head)
            after = changed[at]  # (n, width), a view
            places = slice(None) if edit.positions is None else list(edit.positions)
            if edit.by == "zero":
                after[places] = 0.0
                continue
            by = "given" if edit.by in ("added", "projected") else edit.by
            instead = self.taken[by, edit.site].to(after.device)
            own, of_place = after[places], instead if len(instead) == 1 else instead[places]
            if edit.by == "added":  # in the higher of both precisions
                of_place = own + of_place
            elif edit.by == "projected":
                scaled = of_place / of_place.abs().max()  # its squares neither vanish nor overflow
                unit = nn.functional.normalize(scaled, dim=-1)
                of_place = own - (own * unit).sum(dim=-1, keepdim=True) * unit
            after[places] = of_place.to(after)
        return changed


def taken_vectors(
    vectors_of: Callable[[SourceRun, set[Site], bool], Mapping[Site, Tensor]],
    ids: Ids,
    interventions: Interventions,
) -> dict[tuple[str, Site], Tensor]:
    """The vectors that edits put in: of the source, means of the text `ids` itself, or given ones.

    `vectors_of` runs a text once, unchanged, and gives the vectors of sites at its places
    (places, width), or their mean over all positions (1, width). A mean is that of the unchanged
    run, also where an earlier edit of the same intervention changes what arrives there.
    """
    edits = [e for changes in interventions.each for e in changes if isinstance(e, Edit)]
    taken = {("given", site): torch.from_numpy(of) for site, of in interventions.given.items()}
    for by, run in {"mean": SourceRun(ids, (0,)), "source": interventions.source}.items():
        sites = {edit.site for edit in edits if edit.by == by}
        if run is not None and sites:
            of_sites = vectors_of(run, sites, by == "mean")
            taken |= {(by, site): vectors for site, vectors in of_sites.items()}
    return taken


def batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """The items in order, `size` at a time."""
    for first in range(0, len(items), size):
        yield items[first : first + size]


# The record of one head in a run, completed to a trace by the code of `attention.py`.

LABELLED = 5
"""Likeliest tokens, and those nearest to a head's output, that a trace names."""


@dataclass(frozen=True)
class RecordedHead:
    """One head as a run recorded it, in tensors.

    `weights`: w_q, w_k and w_v (d, d_k) of the head, each with its bias (d_k) or None. w_o
    (h, d_k, d) and z (h, n_q, d_k) are those of all heads; b_o (d). mask (n_q, n_k): True where the
    query may attend to the key. unembedding (V, d), where its width is that of the stream.
    `arrays`: every other array, under its name and with its shape in `HeadTrace`. `rows`: those of
    them that are only of the query, of all queries (n_q, d).
    """

    head: Head
    query: int
    kinds: Kinds
    scale: float
    weights: Mapping[str, tuple[Tensor, Tensor | None]]
    w_o: Tensor
    b_o: Tensor | None
    z: Tensor
    mask: Tensor
    unembedding: Tensor
    arrays: Mapping[str, Tensor]
    rows: Mapping[str, Tensor]


def present(**arrays: Tensor | None) -> dict[str, Tensor]:
    """The arrays that a model has, by name."""
    return {name: array for name, array in arrays.items() if array is not None}


@torch.inference_mode()
def head_trace(recorded: RecordedHead, blank: Capture, tokenizer: TextTokenizer) -> HeadTrace:
    """Complete a record to a trace: compute the scores and the heads' outputs, all as numpy.

    `blank`: the run without its patterns: model, text, and the tokens of rows and columns.
    """
    r, arrays, (layer, head) = recorded, dict(recorded.arrays), recorded.head
    arrays["products"] = dot_products(arrays["q"], arrays["k"])  # (n_q, n_k)
    arrays["scaled"] = scores = arrays["products"] * r.scale
    scores = scores + arrays["bias"] if "bias" in arrays else scores
    arrays["scores"] = masked(scores, r.mask)
    arrays["z"] = r.z[head]
    outputs = r.kinds.factor * (r.z[:, r.query, None] @ r.w_o).squeeze(1)  # (h, d)
    arrays["head_outputs"] = outputs
    logits = arrays.get("logits")
    matrices = {**r.weights, "w_o": (r.w_o[head], r.b_o)}
    fields: dict[str, Any] = {name: numbers(array) for name, array in arrays.items()}
    for name, (weight, bias) in matrices.items():
        fields[name] = Projection(numbers(weight), None if bias is None else numbers(bias))
    return HeadTrace(
        capture=blank,
        layer=layer,
        head=head,
        query=r.query,
        kinds=r.kinds,
        scale=r.scale,
        next_tokens=() if logits is None else _labelled(logits.float().softmax(dim=-1), tokenizer),
        nearest=_nearest(outputs[head], r.unembedding, tokenizer),
        **fields,
    )


@torch.inference_mode()
def layer_numbers(heads: Sequence[RecordedHead]) -> LayerNumbers:
    """A whole layer, by the records of its heads."""
    each: list[dict[str, Tensor]] = []
    for r in heads:
        a, w_o = r.arrays, r.w_o[r.head.head]
        scores = dot_products(a["q"], a["k"]) * r.scale + a.get("bias", 0.0)
        written = r.kinds.factor * (a["v"].to(w_o.dtype) @ w_o)
        own = {"z": r.z[r.head.head], "scores": masked(scores, r.mask), "written": written}
        each.append({**a, **own})
    first, b_o = heads[0], heads[0].b_o
    shared = {name: array for name, array in first.arrays.items() if name in SHARED}
    stacked = {name: torch.stack([e[name] for e in each]) for name in (*OF_HEAD, "written")}
    bias = {} if b_o is None else {"bias": first.kinds.factor * b_o}
    rows = {name: first.rows[of_trace] for name, of_trace in ADDED.items()}
    every = {**shared, **rows, **stacked, **bias}
    biased = tuple(name[-1] for name, (_, b) in first.weights.items() if b is not None)
    arrays = {name: numbers(array) for name, array in every.items()}
    return LayerNumbers(first.scale, first.kinds, biased, arrays)


OF_HEAD = ("q", "k", "v", "z", "scores", "pattern")
ADDED = {"attention": "attention_added", "mlp": "mlp_out", "after": "x_after"}
SHARED = ("embedding", "position", "x", "normed", "source", "logits")


def _nearest(
    direction: Tensor, vocabulary: Tensor, tokenizer: TextTokenizer
) -> tuple[Predicted, ...]:
    """Tokens by the cosine between their output vector and a direction, highest first.

    The mean of all output vectors is taken off first: what they share moves every logit alike, and
    thereby no probability; in most models it would bring all tokens near one another (Mu and
    Viswanath 2018, "All-but-the-Top").

    No tokens where the widths of vocabulary (V, d') and direction (d) differ, as in models
    whose embedding is narrower than their layers (ALBERT), and where the direction is 0.
    """
    if vocabulary.size(-1) != direction.size(-1) or not direction.any():
        return ()
    unit = torch.nn.functional.normalize(direction.float(), dim=0)
    cosines = [part @ unit for part in _own_directions(vocabulary)]
    return _labelled(torch.cat(cosines), tokenizer)


DIRECTIONS, OFTEN = 256, 0.95
"""The random directions that chance is measured with, and how many of them stay below it."""
VOCABULARY_ROWS = 8192
"""Output vectors to compare at a time."""


@torch.inference_mode()
def chance_cosine(vocabulary: Tensor) -> float:
    """The cosine that the nearest of all tokens reaches by chance: 95 of 100 directions that are
    drawn at random, all alike likely, have no token that is nearer.

    A maximum over the vocabulary: a single cosine this high would be far rarer. The directions are
    the same in every run.
    """
    drawn = np.random.default_rng(0).standard_normal((DIRECTIONS, vocabulary.size(-1)))
    directions = torch.from_numpy(drawn.astype(np.float32)).to(vocabulary.device)
    directions = torch.nn.functional.normalize(directions, dim=-1).T  # (d, directions)
    best = [(part @ directions).amax(dim=0) for part in _own_directions(vocabulary)]
    return float(torch.stack(best).amax(dim=0).double().quantile(OFTEN))


def _own_directions(vocabulary: Tensor) -> Iterator[Tensor]:
    """The output vectors (V, d) without their mean, at length 1, some rows at a time."""
    mean = vocabulary.mean(dim=0, dtype=torch.float32)
    for part in torch.split(vocabulary, VOCABULARY_ROWS):
        yield torch.nn.functional.normalize(part.float() - mean, dim=-1)


def _labelled(scores: Tensor, tokenizer: TextTokenizer) -> tuple[Predicted, ...]:
    """The tokens of the highest scores (V)."""
    top = scores.topk(min(LABELLED, scores.numel()))
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return tuple(
        Predicted(tokenizer.label(id_), score, tokenizer.exact(id_)) for id_, score in pairs
    )
