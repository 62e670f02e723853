"""A sparse autoencoder of the built-in model's stream, for `why --features` and `predict`.

    python -m benchmarks.dictionary FOLDER [--layer 4] [--minutes 15]

It has the layout of sae-lens: top-k (Gao et al. 2024, arXiv 2406.04093), 1,024 features of which 8
are active, trained on the texts that the model was trained on, and measured on held-out ones.
Features that have not been active for a while are given the worst errors as their directions.
"""

import argparse
import json
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

import attnviz
from attnviz.models.frozen.features import SETTINGS, WEIGHTS
from attnviz.records.interventions import Site
from making.world.texts import texts

FEATURES, ACTIVE, TOKENS, BUFFER = 1024, 8, 1024, 64 * 1024
IDLE = 200  # steps
RATE = 2e-3


def main() -> None:
    """Train, save and measure one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layer", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=15)
    given = parser.parse_args()
    torch.manual_seed(0)
    held_out = next(_streams(given.layer, 32 * 1024, held_out=True))
    weights = _train(_streams(given.layer, BUFFER), 60 * given.minutes)
    given.folder.mkdir(parents=True, exist_ok=True)
    save_file({name: each.contiguous() for name, each in weights.items()}, given.folder / WEIGHTS)
    hook = {"hook_name": f"blocks.{given.layer}.hook_resid_pre", "model_name": "builtin"}
    sizes = {"architecture": "topk", "k": ACTIVE, "d_in": held_out.size(1), "d_sae": FEATURES}
    settings = {**sizes, "apply_b_dec_to_input": True, "metadata": hook}
    (given.folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
    codes, made = _coded(held_out, weights)
    explained = 1 - (held_out - made).square().sum() / (held_out - held_out.mean(0)).square().sum()
    used = int((codes > 0).any(dim=0).sum())
    print(f"held out: {float(explained):.3f} of the variance, {used} of {FEATURES} features used")


def _streams(layer: int, size: int, *, held_out: bool = False) -> Iterator[Tensor]:
    """Streams (tokens, d) that arrive at a layer, in an order drawn at random; without BOS."""
    model, every = attnviz.load_model()._loaded, texts("dictionary", held_out=held_out, done=1.0)
    site = Site("residual", layer)
    while True:
        rows, n = list[Tensor](), 0
        while n < size:
            for text in islice(every, 64):
                ids = [model.tokenizer.bos_id, *model.tokenizer.ids(text.source)][
                    : model.tokenizer.context
                ]
                rows.append(torch.from_numpy(model.site_vectors(ids, [site])[site])[1:])
                n += len(rows[-1])
        whole = torch.cat(rows)
        yield whole[torch.randperm(len(whole))]


def _coded(x: Tensor, weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """How active each feature is, and what they add up to."""
    top = ((x - weights["b_dec"]) @ weights["W_enc"] + weights["b_enc"]).topk(ACTIVE, dim=-1)
    codes = torch.zeros(len(x), FEATURES).scatter(1, top.indices, torch.relu(top.values))
    return codes, codes @ weights["W_dec"] + weights["b_dec"]


def _train(streams: Iterator[Tensor], seconds: float) -> dict[str, Tensor]:
    whole = next(streams)
    first = torch.nn.functional.normalize(torch.randn(FEATURES, whole.size(1)), dim=1)
    start = {"W_dec": first, "W_enc": first.T.clone(), "b_enc": torch.zeros(FEATURES)}
    weights = {name: each.requires_grad_() for name, each in start.items()}
    weights["b_dec"] = whole.mean(dim=0).requires_grad_()
    optimizer = torch.optim.Adam(weights.values(), lr=RATE, betas=(0.9, 0.99))
    begun, step, last = time.monotonic(), 0, torch.zeros(FEATURES)
    while (done := (time.monotonic() - begun) / seconds) < 1:
        for x in torch.split(whole, TOKENS):
            step += 1
            optimizer.param_groups[0]["lr"] = RATE * min(1, 4 * (1 - min(done, 1)) + 0.02)
            codes, made = _coded(x, weights)
            loss = (x - made).square().sum() / (x - x.mean(0)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                weights["W_dec"].copy_(torch.nn.functional.normalize(weights["W_dec"], dim=1))
                last[(codes > 0).any(dim=0)] = step
                if step % IDLE == 0 and done < 0.7:
                    _revive(weights, (x - made).detach(), (step - last > IDLE).nonzero()[:, 0])
        whole = next(streams)
        print(f"{step} steps, {float(loss.detach()):.3f} not explained", flush=True)
    return {name: each.detach() for name, each in weights.items()}


def _revive(weights: dict[str, Tensor], errors: Tensor, idle: Tensor) -> None:
    """Give features that are never active the directions of the largest errors."""
    worst = errors.norm(dim=1).topk(min(len(idle), len(errors))).indices
    own = torch.nn.functional.normalize(errors[worst], dim=1)
    idle = idle[: len(own)]
    weights["W_dec"][idle] = own
    weights["W_enc"][:, idle] = own.T
    weights["b_enc"][idle] = 0


if __name__ == "__main__":
    main()
