"""Path patching and attribution patching of every head, beside as many plain forward passes.

    python -m benchmarks.checkpoints FOLDER
    python -m benchmarks.paths FOLDER

A GPT-2 of random weights (12 layers of 12 heads) over 64 tokens, by both engines: the paths of all
144 heads to the logits and to a head's queries, keys and values, beside 144 plain passes in batches
of the same size; and the gradient for all heads, beside one plain pass (the median of five).
Processor time. Ends with 1 where the paths to the logits take more than 1.3 times as long as the
passes, or the gradient longer than four passes.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from attnviz.commands.patch.run import receivers_of
from attnviz.models.catalog import Source, load
from attnviz.models.placement import BATCH_TOKENS, Engine
from attnviz.records.heads import every_head
from attnviz.records.interventions import Edit, Site, SourceRun
from attnviz.records.paths import Paths, SlopeOf

TOKENS, RUNS = 64, 5
MOST, MOST_PASSES = 1.3, 4.0


def main() -> int:
    """Print the table; say whether it is within its bounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="the folder of benchmarks.checkpoints")
    folder = parser.parse_args().folder / "gpt2"
    draw = torch.Generator().manual_seed(0)
    ids, other = torch.randint(900, (2, TOKENS), generator=draw).tolist()
    plain = AutoModelForCausalLM.from_pretrained(folder).eval()
    native = _within(plain, folder, "native", ids, other)
    return int(not (_within(plain, folder, "transformers", ids, other) and native))


def _within(
    plain: Any, folder: Path, engine: Engine, ids: Sequence[int], other: Sequence[int]
) -> bool:
    """Print the rows of an engine; say whether they are within their bounds."""
    model = load(Source(str(folder), engine=engine))
    heads_per_layer = model.identity.heads_per_layer
    edits = [Edit(Site("head", *head), "source") for head in every_head(heads_per_layer)]
    passes = _seconds(lambda: _passes(plain, ids, len(edits)), runs=1)
    source, shares = SourceRun(other, range(TOKENS)), dict[str, float]()
    for to in ("logits", "L9H6"):
        paths = Paths(edits, receivers_of([to], heads_per_layer), source)
        run = partial(model.paths, ids, paths, lambda *_: None)
        shares[to] = _seconds(run, runs=1) / passes
        print(f"{engine}: {len(edits)} heads to {to}: {shares[to]:.2f} x {len(edits)} passes")
    layers = range(len(heads_per_layer))
    slope_of = SlopeOf([("head", layer) for layer in layers], source, lambda *_: (7, 9))
    one = _seconds(lambda: _passes(plain, ids, 1))
    took = _seconds(lambda: model.first_order(ids, slope_of)) / one
    print(f"{engine}: first order of all heads: {took:.2f} passes")
    return shares["logits"] <= MOST and took <= MOST_PASSES


def _seconds(run: Callable[[], Any], runs: int = RUNS) -> float:
    """The processor time of a run."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return median(times)


@torch.inference_mode()
def _passes(model: Any, ids: Sequence[int], runs: int) -> None:
    """Plain passes, as many at a time as attnviz runs."""
    for first in range(0, runs, BATCH_TOKENS // len(ids)):
        some = min(runs - first, BATCH_TOKENS // len(ids))
        model(input_ids=torch.tensor([list(ids)]).expand(some, -1), use_cache=False)


if __name__ == "__main__":
    sys.exit(main())
