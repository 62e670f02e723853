"""What a model predicts, and what its last position attends to.

text ─► tokens ─► run ─► logits ─► candidates; the last position's rows ─► evidence
"""

from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING

from attnviz.analyses.predict import KeepNextTokens
from attnviz.data.head import every_head
from attnviz.data.predict import Evidence, Prediction
from attnviz.models.loaded import predicting
from attnviz.runs.options import TextOptions
from attnviz.runs.prepare import Prepared, prepare
from attnviz.transforms.keep import KeepLinks

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel


@dataclass(frozen=True)
class Reading:
    """What to read: the number of candidates; those after `each` position; the `lens`."""

    top: int = 10
    each: bool = False
    lens: bool = False


def predict_text(
    model: "LoadedModel", text: str, options: TextOptions, reading: Reading
) -> Prediction:
    """What the model says comes next, and the links by which its last position came by it.

    Raises:
        InputError: nothing but blanks, or longer than the model's context.
        UsageError: the model predicts no next token.
    """
    able = predicting(model)
    prepared = prepare(model, text, options)
    ids = prepared.ids
    # transformers makes the logits of every position at once
    prepared.budget.check(4 * len(ids) * model.tokenizer.vocab_size, "shorten the text")
    last = len(ids) - 1
    named = model.tokenizer.label, model.tokenizer.exact
    every, through = (KeepNextTokens(ids, reading.top, *named) for _ in "12")
    able.predict(ids, range(len(ids)) if reading.each else [last], every, lens=False)
    if reading.lens:
        able.predict(ids, [last], through, lens=True)
    return Prediction(
        capture=prepared.empty,
        last=every.next_tokens[-1],
        each=every.next_tokens[:-1] if reading.each else (),
        lens=through.next_tokens,
        evidence=_evidence(prepared, last),
    )


PER_LAYER, FAINT = 3, 0.1


def _evidence(prepared: Prepared, position: int) -> list[Evidence]:
    """The strongest links of a position, layer by layer; the first token, a sink, left out."""
    keys = range(1, position + 1)
    keep = KeepLinks(position + 1, keys, prepared.empty.causal, PER_LAYER, FAINT)
    heads = every_head(prepared.model.identity.heads_per_layer)
    prepared.run(heads, keep, (position,))
    evidence = [
        Evidence(head, int(key), float(weight))
        for head, head_map in zip(heads, keep.maps(), strict=True)
        for key, weight in zip(head_map.links.key, head_map.links.weight, strict=True)
    ]
    evidence.sort(key=lambda link: (link.head.layer, -link.weight))
    layers = groupby(evidence, key=lambda link: link.head.layer)
    return [link for _, links in layers for link in islice(links, PER_LAYER)]
