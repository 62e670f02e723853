"""Interventions: attnviz, by both engines, beside TransformerLens (extra bench).

    python -m benchmarks.interventions

The built-in checkpoint through all three: heads, MLPs and layers taken away, vectors of another
text, links that are cut, a vector added to the stream or projected out of it, several of these
together, paths from each head to each kind of receiver, and the first order of each head's patch.
All compute in float64, where a difference is no rounding. Prints the largest one of the
log-probabilities after the last token (of a first order: of its effect); ends with 1 where it is
above 1e-5.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoTokenizer, GPT2LMHeadModel

from attnviz.commands.patch.run import receivers_of
from attnviz.models.catalog import Source, load
from attnviz.records.heads import Head, every_head
from attnviz.records.interventions import (
    ChangedRun,
    CutLink,
    Edit,
    Intervention,
    Interventions,
    Site,
    SiteKind,
    SourceRun,
)
from attnviz.records.paths import MlpsOnPaths, Paths, Receiver, SlopeOf

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
INPUTS = {letter: f"blocks.{{}}.attn.hook_{letter}" for letter in ("q", "k", "v")}
ENGINES = "native", "transformers"
TOLD_APART = 7, 9
"""Tokens whose logits are compared in a gradient."""
DIRECTION = np.random.default_rng(0).standard_normal((1, 128)).astype(np.float32)
"""A vector of the stream."""
AS_SOURCE = "all of the stream patched, which is the source"

Hook = Callable[[Tensor, object], Tensor | None]


def main() -> int:
    """Compare every run of every kind, engine by engine."""
    folder = str(files("attnviz").joinpath("builtin", "gpt"))
    engines = {engine: load(Source(folder, engine=engine)) for engine in ENGINES}
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
    given = {Site("residual", layer): DIRECTION for layer in range(5)}
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
            model.intervene(ids, Interventions(runs, source=taken, given=given), keep)
            ours = np.stack([kept[i] for i in range(len(runs))])
            found.append(float(np.abs(ours - theirs).max()))
        worst = max(worst, *found)
        _tell(name, len(runs), found, moved)
    taken = SourceRun(source, range(len(ids)))
    for name, (found, moved, runs) in _along(lens, engines.values(), ids, taken).items():
        worst = max(worst, *found)
        _tell(name, runs, found, moved)
    print(f"largest difference {worst:.1e}, at most {MOST:.0e}")
    return int(worst > MOST)


def _tell(name: str, runs: int, found: Sequence[float], moved: float) -> None:
    each = ", ".join(f"{e} {d:.1e}" for e, d in zip(ENGINES, found, strict=True))
    print(f"  {name}: {runs} runs, {each}; the runs change one by up to {moved:.2f}")


def _along(
    lens: "_Lens", engines: Iterable[Any], ids: Sequence[int], source: SourceRun
) -> dict[str, tuple[list[float], float, int]]:
    """Paths, and first orders: the largest difference of each engine, and how much they change."""
    engines = list(engines)
    heads_per_layer = engines[0].identity.heads_per_layer
    edits = [Edit(Site("head", *head), "source") for head in every_head(heads_per_layer)]
    receivers = receivers_of(["logits", "L4H0", "L3.mlp"], heads_per_layer)
    plain, results = lens.after(()), dict[str, tuple[list[float], float, int]]()
    for mlps in get_args(MlpsOnPaths):
        paths = Paths(edits, receivers, source, mlps)
        theirs = {
            (i, to): lens.along(edit, to, mlps)
            for i, edit in enumerate(edits)
            for to in receivers
            if to.follows(edit.site)
        }
        found = []
        for model in engines:
            ours = dict[tuple[int, Receiver], NDArray[np.float32]]()

            def keep(i: int, to: Receiver, last: Any, ours: dict[Any, Any] = ours) -> None:
                ours[i, to] = _logs(torch.tensor(last))

            model.paths(ids, paths, keep)
            if ours.keys() != theirs.keys():
                raise SystemExit("a path is missing")
            found.append(max(float(np.abs(ours[path] - theirs[path]).max()) for path in ours))
        moved = max(float(np.abs(each - plain).max()) for each in theirs.values())
        results[f"a path, MLPs: {mlps}"] = found, moved, len(theirs)
    exact = lens.slopes(*TOLD_APART)
    layers = range(len(heads_per_layer))
    slope_of = SlopeOf([("head", layer) for layer in layers], source, lambda *_: TOLD_APART)
    firsts = [model.first_order(ids, slope_of) for model in engines]
    apart = [max(abs(each.of(e) - exact[e.site]) for e in edits) for each in firsts]
    results["the first order of a head"] = apart, max(map(abs, exact.values())), len(exact)
    return results


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
        "a vector added to the stream": [(Edit(Site("residual", at), "added"),) for at in layers],
        "a direction projected out": [(Edit(Site("residual", at), "projected"),) for at in layers],
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
            _, self._text = self._bridge.run_with_cache(self._ids)
        self._after_source = _logs(logits[0, -1])

    def of_source(self) -> NDArray[np.float32]:
        """The log-probabilities (V) after the last token of the source."""
        return self._after_source

    @torch.no_grad()
    def after(self, changes: Intervention) -> NDArray[np.float32]:
        """The log-probabilities (V) after the last token."""
        hooks = [self._hook(change) for change in changes]
        return _logs(self._bridge.run_with_hooks(self._ids, fwd_hooks=hooks)[0, -1])

    @torch.no_grad()
    def along(self, sender: Edit, to: Receiver, mlps: MlpsOnPaths) -> NDArray[np.float32]:
        """The log-probabilities (V) after the last token where one path is patched."""
        layers, arrived = range(self._bridge.cfg.n_layers), dict[str, Tensor]()
        kinds: list[SiteKind] = ["head", "mlp"] if mlps == "freeze" else ["head"]
        names = [HOOKS[kind].format(layer) for kind in kinds for layer in layers]
        name = HOOKS["mlp" if to.head is None else "head"].format(to.layer)
        if to.letter:
            name = INPUTS[to.letter].format(to.layer)

        def keep(vectors: Tensor, hook: object) -> None:
            arrived[name] = vectors.clone()

        def instead(vectors: Tensor, hook: object) -> Tensor:
            at = slice(None) if to.head is None else (0, slice(None), to.head)
            vectors[at] = arrived[name][at]
            return vectors

        at = HOOKS[sender.site.kind].format(sender.layer)
        hooks: list[tuple[str, Hook]] = [(name, keep)] if to.layer is not None else []
        hooks += [(each, lambda vectors, hook, n=each: self._text[n].clone()) for each in names]
        hooks += [(at, _edited(sender, self._source[at], self._text[at]))]
        logits = self._bridge.run_with_hooks(self._ids, fwd_hooks=hooks)
        if to.layer is not None:
            logits = self._bridge.run_with_hooks(self._ids, fwd_hooks=[(name, instead)])
        return _logs(logits[0, -1])

    def slopes(self, answer: int, versus: int) -> dict[Site, float]:
        """The gradient of a difference of logits times that of both texts' vectors, by head."""
        names = [HOOKS["head"].format(layer) for layer in range(self._bridge.cfg.n_layers)]
        kept = dict[str, Tensor]()
        hooks = [(n, lambda z, hook, n=n: kept.setdefault(n, z.clone())) for n in names]
        last = self._bridge.run_with_hooks(self._ids, fwd_hooks=hooks)[0, -1]
        slopes = torch.autograd.grad(last[answer] - last[versus], [kept[n] for n in names])
        effects = dict[Site, float]()
        for layer, (name, slope) in enumerate(zip(names, slopes, strict=True)):
            products = (slope * (self._source[name] - kept[name])).sum(dim=(0, 1, 3))
            for head, effect in enumerate(products.tolist()):
                effects[Site("head", layer, head)] = effect
        return effects

    def _hook(self, change: Edit | CutLink) -> tuple[str, Hook]:
        if isinstance(change, CutLink):
            point = SCORES if change.renormalise else PATTERN
            return point.format(change.layer), _without(change)
        name = HOOKS[change.site.kind].format(change.layer)
        return name, _edited(change, self._source[name], self._text[name])


def _without(cut: CutLink) -> Hook:
    def hook(rows: Tensor, hook: object) -> Tensor:  # (1, h, n, n)
        rows[:, cut.head.head, cut.query, cut.key] = -torch.inf if cut.renormalise else 0
        return rows

    return hook


def _edited(edit: Edit, source: Tensor, text: Tensor) -> Hook:
    """An edit by the vectors of the source, or by the mean of those of the unchanged text."""
    places = slice(None) if edit.positions is None else list(edit.positions)

    def hook(vectors: Tensor, hook: object) -> Tensor:  # (1, n, d) or (1, n, h, d_v)
        at = (0, places) if edit.site.head is None else (0, places, edit.site.head)
        if edit.by == "added":
            vectors[at] += torch.from_numpy(DIRECTION)
        elif edit.by == "projected":
            unit = torch.from_numpy(DIRECTION[0]).double() / np.linalg.norm(
                DIRECTION[0].astype(float)
            )
            vectors[at] -= torch.outer(vectors[at] @ unit, unit)
        elif edit.by == "mean":
            of_site = at[0], slice(None), *at[2:]
            vectors[at] = text[of_site].mean(dim=0)
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
