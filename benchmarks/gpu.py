"""The rows of docs/performance.md that need a graphics processor, one command of minutes.

    python -m benchmarks --gpu           # an 8B-sized Llama
    python -m benchmarks --gpu --tiny    # a model that any machine can run, to try the script

First, attention on the device is held to that on the processor: float32, TF32 off.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from attnviz.commands.show.outputs import Needs, Show
from attnviz.commands.show.run import show_text
from attnviz.kit.prepare import HeadOptions, TextOptions
from attnviz.models.catalog import Source, load
from attnviz.models.placement import BATCH_TOKENS, Placement
from attnviz.models.reducing import sum_windows
from attnviz.records.exhibit import Filters
from attnviz.records.heads import by_layer, every_head
from benchmarks.checkpoints import LLAMA, WORDS, save_tokenizer

LARGE = {
    **LLAMA,
    **{"hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32},
    **{"num_attention_heads": 32, "num_key_value_heads": 8},
}
ENGINES = (("native", "float32"), ("transformers", "float32"), ("transformers", "bfloat16"))
SHORT, LONG, WINDOWS, LENGTH = 14, 8192, 64, 2048
NEAR = 1e-4


def measure(*, tiny: bool) -> None:
    """Print a row for each job and engine; fail where the device computes otherwise."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    table = Table("job", "engine", "seconds", "GiB at most", title=_named(device))
    with TemporaryDirectory() as temporary:
        small = _saved(Path(temporary) / "small", LLAMA, "cpu")
        native, other = (_difference(small, each, device) for each in ("native", "transformers"))
        large = small if tiny else _saved(Path(temporary) / "large", LARGE, device)
        for engine, dtype in ENGINES:
            started = time.perf_counter()
            model = load(_source(large, engine, device, dtype))
            _add(table, "load", engine, dtype, time.perf_counter() - started)
            jobs = _jobs(model, tiny=tiny)
            jobs[0][1]()  # the first run of a process makes what all others use
            for job, work in jobs:
                _wait(afresh=True)
                started = time.perf_counter()
                work()
                _wait()
                _add(table, job, engine, dtype, time.perf_counter() - started)
            del model, jobs, work
    console = Console(width=120)
    console.print(table)
    console.print(f"rows differ from the CPU by {native:.1e} (native), {other:.1e} (transformers)")
    if max(native, other) > NEAR:
        raise SystemExit(1)


def _jobs(model: Any, *, tiny: bool) -> Sequence[tuple[str, Callable[[], object]]]:
    draw = torch.Generator().manual_seed(0)
    long, windows, length = (128, 4, 64) if tiny else (LONG, WINDOWS, LENGTH)
    ids = torch.randint(1, len(WORDS), (max(long, windows * length),), generator=draw).tolist()
    text = " ".join(WORDS[i] for i in ids[:long])
    first = " ".join(WORDS[i] for i in ids[:SHORT])
    heads = by_layer(every_head(model.identity.heads_per_layer))
    everything, strongest = HeadOptions(everything=True), Filters(top=5)
    links = Show(everything, filters=strongest, needs=Needs(links=5))
    read = torch.tensor(ids[: windows * length]).view(windows, length)
    batches = torch.split(read, max(1, BATCH_TOKENS // length))
    scanned = f"{windows} windows of {length:,}"

    def forward() -> None:
        with torch.inference_mode():
            for batch in batches:
                model.model.model(batch.to(model.model.device), use_cache=False)

    plain = ((f"plain SDPA forward, {scanned}", forward),)
    return (
        (f"first screen, {SHORT} tokens", lambda: show_text(model, first, TextOptions(), Show())),
        (f"links, {long:,} tokens", lambda: show_text(model, text, TextOptions(), links)),
        (
            f"scan, {scanned}",
            lambda: [sum_windows(model, batch.tolist(), heads) for batch in batches],
        ),
        *(plain if model.identity.engine == "transformers" else ()),
    )


def _wait(*, afresh: bool = False) -> None:
    """Wait until the device has done what it was given; count its memory anew."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        if afresh:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


def _difference(folder: Path, engine: Any, device: str) -> float:
    """How far the rows of a device are from those of the processor."""
    from attnviz import capture, load_model

    text = " ".join(WORDS[:200])
    here, there = (
        capture(text, load_model(folder, engine=engine, device=each, dtype="float32")).record.layers
        for each in ("cpu", device)
    )
    pairs = zip(here, there, strict=True)
    return max(float(np.abs(ours.weights - theirs.weights).max()) for ours, theirs in pairs)


def _saved(folder: Path, sizes: dict[str, Any], device: str) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
    with torch.device(device):
        model = LlamaForCausalLM(LlamaConfig(**sizes))
    torch.set_default_dtype(torch.float32)
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def _source(folder: Path, engine: Any, device: str, dtype: Any) -> Source:
    return Source(str(folder), engine=engine, placement=Placement(device, dtype, 1 << 40))


def _add(table: Table, job: str, engine: str, dtype: str, seconds: float) -> None:
    used = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    table.add_row(job, f"{engine}, {dtype}", f"{seconds:.2f}", f"{used:.1f}")


def _named(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "the processor"
