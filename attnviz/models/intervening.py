"""Interventions: a model run with some of its vectors replaced, or some links removed.

Many interventions run in a batch; everything that they do not name is computed as the model does.
Letters in the shape comments:

    B interventions in the batch   n tokens   h heads   d_v width of a head's values
    d width of the stream   V vocabulary
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from attnviz.models.attention import dot_products, masked
from attnviz.models.tokenizer import TextTokenizer
from attnviz.records.capture import Capture, FloatArray
from attnviz.records.heads import Head
from attnviz.records.interventions import CutLink, Edit, Intervention, Site, SourceRun
from attnviz.records.trace import HeadTrace, Kinds, Predicted, Projection

T = TypeVar("T", Edit, CutLink)
Taken: TypeAlias = dict[tuple[str, Site], Tensor]
"""What takes the place of a site's vectors, by ("mean" or "source", site)."""


@dataclass(frozen=True)
class Batch:
    """The interventions of a batch, each with its place in it.

    `tokens`: n. `taken`: what takes the place of vectors: those of another run (n, width), already
    in the order of this text's positions, or their mean in the text's own run (1, width).
    """

    interventions: Sequence[Intervention]
    tokens: int
    taken: Taken

    def edits(self, kind: str, layer: int) -> list[tuple[int, Edit]]:
        """The edits of one kind of site in a layer, each with the place of its run."""
        found = self._of(Edit)
        return [(i, e) for i, e in found if e.site.kind == kind and e.site.layer == layer]

    def cuts(self, layer: int) -> dict[tuple[int, int], list[CutLink]]:
        """The links that are removed in a layer, by (place of the run, query)."""
        rows: dict[tuple[int, int], list[CutLink]] = {}
        for i, cut in self._of(CutLink):
            if cut.head.layer == layer:
                rows.setdefault((i, cut.query), []).append(cut)
        return rows

    def layers_of_cuts(self) -> set[int]:
        """The layers in which links are removed."""
        return {cut.layer for _, cut in self._of(CutLink)}

    def _of(self, kind: type[T]) -> Iterator[tuple[int, T]]:
        for i, changes in enumerate(self.interventions):
            yield from ((i, change) for change in changes if isinstance(change, kind))

    def changed(self, values: Tensor, edits: Iterable[tuple[int, Edit]]) -> Tensor:
        """The vectors of sites (B, n, d), or of a layer's heads (B, h, n, d_v), some replaced."""
        changed = values.clone()
        for run, edit in edits:
            at = run if edit.site.head is None else (run, edit.site.head)
            after = changed[at]  # (n, width), a view
            places = slice(None) if edit.positions is None else list(edit.positions)
            if edit.by == "zero":
                after[places] = 0.0
            else:
                found = self.taken[edit.by, edit.site]
                after[places] = (found[places] if edit.by == "source" else found).to(after)
        return changed


class TakeFrom(Protocol):
    """Runs a text once, unchanged, and gives what sites are there at its places (places, width).

    `mean`: the mean over all positions (1, width), in place of that.
    """

    def __call__(self, source: SourceRun, sites: set[Site], *, mean: bool) -> dict[Site, Tensor]:
        """The vectors by site."""


def take(
    from_run: TakeFrom,
    ids: Sequence[int],
    interventions: Iterable[Intervention],
    source: SourceRun | None,
) -> Taken:
    """What edits put in the place of vectors: of the source, and means of the text `ids` itself.

    A mean is that of the unchanged run, also where an earlier edit of the same intervention changes
    what arrives there.
    """
    every = (change for changes in interventions for change in changes)
    sites: dict[str, set[Site]] = {"mean": set(), "source": set()}
    for edit in every:
        if isinstance(edit, Edit) and edit.by in sites:
            sites[edit.by].add(edit.site)
    runs = {"mean": SourceRun(ids, (0,)), "source": source}
    return {
        (by, site): vectors
        for by, run in runs.items()
        if run is not None and sites[by]
        for site, vectors in from_run(run, sites[by], mean=by == "mean").items()
    }


def batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """The items in order, `size` at a time."""
    for first in range(0, len(items), size):
        yield items[first : first + size]


# The record of one head in a run, completed to a trace by the code of `attention.py`.


MOST_LIKELY = NEAREST = 5


@dataclass(frozen=True)
class Recorded:
    """One head as a run recorded it, in tensors.

    `weights`: w_q, w_k and w_v (d, d_k) of the head, each with its bias (d_k) or None. w_o
    (h, d_k, d) and z (h, n_q, d_k) are those of all heads; b_o (d). mask (n_q, n_k): True where the
    query may attend to the key. unembedding (V, d), where its width is that of the stream.
    `arrays`: every other array, under its name and with its shape in `HeadTrace`.
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


def present(**arrays: Tensor | None) -> dict[str, Tensor]:
    """Those of the arrays that a model has."""
    return {name: array for name, array in arrays.items() if array is not None}


@torch.inference_mode()
def head_trace(recorded: Recorded, blank: Capture, tokenizer: TextTokenizer) -> HeadTrace:
    """Complete a record to a trace: compute the scores and the heads' outputs, all as numpy.

    Args:
        recorded: one head.
        blank: the run without its patterns: model, text, and the tokens of rows and columns.
        tokenizer: that of the model.
    """
    r, arrays, (layer, head) = recorded, dict(recorded.arrays), recorded.head
    arrays["products"] = dot_products(arrays["q"], arrays["k"])  # (n_q, n_k)
    arrays["scaled"] = scores = arrays["products"] * r.scale
    scores = scores + arrays["bias"] if "bias" in arrays else scores
    arrays["scores"] = masked(scores, r.mask)
    arrays["z"] = r.z[head]
    outputs = r.kinds.factor * (r.z[:, r.query, None] @ r.w_o).squeeze(1)  # (h, d)
    arrays["head_outputs"] = outputs
    matrices = {**r.weights, "w_o": (r.w_o[head], r.b_o)}
    made: dict[str, Any] = {name: numbers(array) for name, array in arrays.items()}
    for name, (weight, bias) in matrices.items():
        made[name] = Projection(numbers(weight), None if bias is None else numbers(bias))
    return HeadTrace(
        text=blank.text,
        target=blank.target,
        kind=blank.kind,
        unknown_words=blank.unknown_words,
        query_tokens=blank.query_tokens,
        key_tokens=blank.key_tokens,
        model=blank.model,
        versions=blank.versions,
        layer=layer,
        head=head,
        query=r.query,
        kinds=r.kinds,
        scale=r.scale,
        next_tokens=_most_likely(arrays.get("logits"), tokenizer),
        nearest=_nearest(outputs[head], r.unembedding, tokenizer),
        **made,
    )


def numbers(tensor: Tensor) -> FloatArray:
    """A tensor as float32 numpy."""
    return np.asarray(tensor.detach().float().cpu().numpy(), dtype=np.float32)


def _most_likely(logits: Tensor | None, tokenizer: TextTokenizer) -> tuple[Predicted, ...]:
    """The likeliest next tokens; none where the model has no logits."""
    if logits is None:
        return ()
    top = torch.softmax(logits.float(), dim=-1).topk(min(MOST_LIKELY, logits.numel()))
    return _labelled(top, tokenizer)


def _nearest(
    direction: Tensor, vocabulary: Tensor, tokenizer: TextTokenizer
) -> tuple[Predicted, ...]:
    """Tokens by the cosine between their output vector and a direction, highest first.

    No tokens where the widths of vocabulary (V, d') and direction (d) differ, as in models
    whose embedding is narrower than their layers (ALBERT), and where the direction is 0.
    """
    if vocabulary.size(-1) != direction.size(-1) or not direction.any():
        return ()
    cosines = torch.nn.functional.cosine_similarity(vocabulary, direction[None], dim=-1)  # (V)
    return _labelled(cosines.topk(min(NEAREST, cosines.numel())), tokenizer)


def _labelled(top: torch.return_types.topk, tokenizer: TextTokenizer) -> tuple[Predicted, ...]:
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return tuple(
        Predicted(tokenizer.label(id_), score, tokenizer.exact(id_)) for id_, score in pairs
    )
