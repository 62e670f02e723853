"""Interventions: attnviz, by both engines, beside TransformerLens (extra bench).

    python -m benchmarks.interventions

The built-in checkpoint through all three: heads, MLPs and layers taken away, vectors of another
text, links that are cut, and several of these together. All compute in float64, where a difference
is no rounding. Prints the largest one of the log-probabilities after the last token; ends with 1
where it is above 1e-5.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.resources import files

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoTokenizer, GPT2LMHeadModel

from attnviz.models.catalog import Source, load
from attnviz.records.heads import Head
from attnviz.records.predict import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    Interventions,
    Site,
    SiteKind,
    SourceRun,
)

TEXT = "a fluffy blue creature roamed . the creature was"
SOURCE = "a fluffy red creature roamed . the creature was"
MOST = 1e-5
HOOKS: dict[SiteKind, str] = {
    "head": "blocks.{}.attn.hook_z",
    "attention": "blocks.{}.hook_attn_out",
    "mlp": "blocks.{}.hook_mlp_out",
    "residual": "blocks.{}.hook_resid_pre",
}
PATTERN, SCORES = "blocks.{}.attn.hook_pattern", "blocks.{}.attn.hook_attn_scores"
AS_SOURCE = "all of the stream patched, which is the source"

Hook = Callable[[Tensor, object], Tensor]


def main() -> int:
    """Compare every run of every kind, engine by engine."""
    folder = str(files("attnviz").joinpath("builtin", "gpt"))
    engines = {engine: load(Source(folder, engine=engine)) for engine in ("native", "transformers")}
    encode = engines["native"].tokenizer.encode
    ids, source = (
        [token.id for token in encode(text, bos=True, special=False)] for text in (TEXT, SOURCE)
    )
    if len(ids) != len(source):
        raise SystemExit("the two texts have to be of one length")
    for model in engines.values():
        model.model.double()
    lens = _Lens(folder, ids, source)
    worst = 0.0
    print(f"{len(ids)} tokens; largest difference of a log-probability after the last:")
    for name, runs in _runs(engines["native"].identity.heads_per_layer, len(ids)).items():
        theirs = np.stack(
            [lens.of_source() if name == AS_SOURCE else lens.after(run) for run in runs]
        )
        moved = float(np.abs(theirs - lens.after(())).max())
        found = []
        for model in engines.values():
            kept: dict[int, NDArray[np.float32]] = {}

            def keep(run: ChangedRun, kept: dict[int, NDArray[np.float32]] = kept) -> None:
                kept[run.index] = _logs(torch.tensor(run.last))

            taken = SourceRun(source, range(len(ids)))
            model.intervene(ids, Interventions(runs, source=taken), keep)
            ours = np.stack([kept[i] for i in range(len(runs))])
            found.append(float(np.abs(ours - theirs).max()))
        worst = max(worst, *found)
        each = ", ".join(f"{e} {d:.1e}" for e, d in zip(engines, found, strict=True))
        print(f"  {name}: {len(runs)} runs, {each}; the runs change one by up to {moved:.2f}")
    print(f"largest difference {worst:.1e}, at most {MOST:.0e}")
    return int(worst > MOST)


def _runs(heads_per_layer: Sequence[int], n: int) -> dict[str, list[Intervention]]:
    """The interventions, by what they are."""
    heads = [Head(layer, h) for layer, count in enumerate(heads_per_layer) for h in range(count)]
    layers = range(len(heads_per_layer))

    def patched(kind: SiteKind) -> list[Intervention]:
        return [(Edit(Site(kind, at), "source", (place,)),) for at in layers for place in range(n)]

    def cut(*, renormalise: bool) -> list[Intervention]:
        return [
            (CutLink(head, query, key, renormalise),)
            for head in heads
            for query in (n // 2, n - 1)
            for key in range(query + 1)
        ]

    return {
        "a head at zero": [(Edit(Site("head", *head), "zero"),) for head in heads],
        "an MLP at zero": [(Edit(Site("mlp", layer), "zero"),) for layer in layers],
        "a head at its mean": [(Edit(Site("head", *head), "mean"),) for head in heads],
        "an MLP at its mean": [(Edit(Site("mlp", layer), "mean"),) for layer in layers],
        "a layer at zero": [
            (Edit(Site("attention", at), "zero"), Edit(Site("mlp", at), "zero")) for at in layers
        ],
        "a head patched": [(Edit(Site("head", *head), "source"),) for head in heads],
        "attention patched at a position": patched("attention"),
        "an MLP patched at a position": patched("mlp"),
        "the stream patched at a position": patched("residual"),
        AS_SOURCE: [(Edit(Site("residual", layer), "source"),) for layer in layers],
        "a link cut": cut(renormalise=False),
        "a link cut, the row renormalised": cut(renormalise=True),
        "several together": _together(heads, n),
    }


def _together(heads: Sequence[Head], n: int) -> list[Intervention]:
    """Changes of all kinds in one run, in every layer."""
    last = max(head.layer for head in heads)
    rows = [CutLink(head, n - 1, head.head + 1, renormalise=True) for head in heads]
    columns = [CutLink(head, query, 0) for head in heads for query in range(1, n)]
    patched = [Edit(Site("head", *head), "source") for head in heads]
    mixed = [
        Edit(Site("residual", 0), "source", (3,)),
        Edit(Site("head", 0, 1), "mean", (2, 5)),
        Edit(Site("attention", last), "source", (n - 1,)),
        Edit(Site("mlp", 0), "mean"),
        Edit(Site("mlp", last), "zero", (n - 1,)),
    ]
    every = [Edit(Site("head", *head), "zero") for head in heads[:-1]]
    return [tuple(each) for each in (rows, columns, patched, every, mixed, [*mixed, *rows])]


class _Lens:
    """TransformerLens on the same checkpoint, one run at a time."""

    def __init__(self, folder: str, ids: Sequence[int], source: Sequence[int]) -> None:
        plain = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").double()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        boot = TransformerBridge.boot_transformers
        self._bridge = boot(folder, hf_model=plain.eval(), dtype=torch.float64, tokenizer=tokenizer)
        self._ids = torch.tensor([list(ids)])
        with torch.no_grad():
            logits, self._source = self._bridge.run_with_cache(torch.tensor([list(source)]))
        self._after_source = _logs(logits[0, -1])

    def of_source(self) -> NDArray[np.float32]:
        """The log-probabilities (V) after the last token of the source."""
        return self._after_source

    @torch.no_grad()
    def after(self, changes: Intervention) -> NDArray[np.float32]:
        """The log-probabilities (V) after the last token."""
        hooks = [self._hook(change) for change in changes]
        return _logs(self._bridge.run_with_hooks(self._ids, fwd_hooks=hooks)[0, -1])

    def _hook(self, change: Edit | CutLink) -> tuple[str, Hook]:
        if isinstance(change, CutLink):
            point = SCORES if change.renormalise else PATTERN
            return point.format(change.layer), _without(change)
        name = HOOKS[change.site.kind].format(change.layer)
        return name, _edited(change, self._source[name])


def _without(cut: CutLink) -> Hook:
    def hook(rows: Tensor, hook: object) -> Tensor:  # (1, h, n, n)
        rows[:, cut.head.head, cut.query, cut.key] = -torch.inf if cut.renormalise else 0
        return rows

    return hook


def _edited(edit: Edit, source: Tensor) -> Hook:
    places = slice(None) if edit.positions is None else list(edit.positions)

    def hook(vectors: Tensor, hook: object) -> Tensor:  # (1, n, d) or (1, n, h, d_v)
        at = (0, places) if edit.site.head is None else (0, places, edit.site.head)
        if edit.by == "mean":
            of_site = at[0], slice(None), *at[2:]
            vectors[at] = vectors[of_site].mean(dim=0)
        else:
            vectors[at] = source[at] if edit.by == "source" else 0
        return vectors

    return hook


def _logs(logits: Tensor) -> NDArray[np.float32]:
    """Log-probabilities (V)."""
    found: NDArray[np.float32] = logits.double().log_softmax(-1).float().numpy()
    return found


if __name__ == "__main__":
    sys.exit(main())
