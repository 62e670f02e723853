"""Path patching and attribution patching of every head, beside as many plain forward passes.

    python -m benchmarks.checkpoints FOLDER
    python -m benchmarks.paths FOLDER

A GPT-2 of random weights (12 layers of 12 heads) over pairs of 64 tokens, by both engines: the
paths of all 144 heads to the logits, and to the queries of a head, beside as many plain passes in
batches of the same size; and the gradient for all heads, beside one plain pass (the median of
five). Processor time. Ends with 1 where paths take more than 1.2 times as long as the passes, or
the gradient longer than four passes.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
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
from attnviz.records.paths import Paths, Receiver, SlopeOf

PAIRS, TOKENS, RUNS = 2, 64, 5
MOST, MOST_PASSES = 1.2, 4.0


def main() -> int:
    """Print the table; say whether it is within its bounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="the folder of benchmarks.checkpoints")
    folder = parser.parse_args().folder / "gpt2"
    draw = torch.Generator().manual_seed(0)
    pairs = torch.randint(900, (PAIRS, 2, TOKENS), generator=draw).tolist()
    plain = AutoModelForCausalLM.from_pretrained(folder).eval()
    native = _within(plain, folder, "native", pairs)
    return int(not (_within(plain, folder, "transformers", pairs) and native))


def _within(plain: Any, folder: Path, engine: Engine, pairs: Sequence[Any]) -> bool:
    """Print the rows of an engine; say whether they are within their bounds."""
    model, (ids, other) = load(Source(str(folder), engine=engine)), pairs[0]
    heads_per_layer = model.identity.heads_per_layer
    edits = [Edit(Site("head", *head), "source") for head in every_head(heads_per_layer)]
    number = len(pairs) * len(edits)
    passes, shares = _seconds(lambda: _passes(plain, ids, number), runs=1), list[float]()
    for to in ("logits", "L9H6.q"):
        receivers = receivers_of([to], heads_per_layer)

        def every_pair(receivers: Sequence[Receiver] = receivers) -> None:
            for ids, other in pairs:
                paths = Paths(edits, receivers, SourceRun(other, range(TOKENS)))
                model.paths(ids, paths, lambda *_: None)

        shares.append(_seconds(every_pair, runs=1) / passes)
        print(
            f"{engine}: {len(pairs)} pairs, {len(edits)} heads to {to}: {shares[-1]:.2f} x "
            f"{number} passes"
        )
    layers, source = range(len(heads_per_layer)), SourceRun(other, range(TOKENS))
    slope_of = SlopeOf([("head", layer) for layer in layers], source, lambda *_: (7, 9))
    one = _seconds(lambda: _passes(plain, ids, 1))
    took = _seconds(lambda: model.first_order(ids, slope_of)) / one
    print(f"{engine}: first order of all heads: {took:.2f} passes")
    return max(shares) <= MOST and took <= MOST_PASSES


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
