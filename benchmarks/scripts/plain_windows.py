"""What one would use instead of a scan, over the same windows in the same batches: seconds, bytes.

python plain_windows.py FOLDER WINDOWS LENGTH forward   # the model's body alone, in SDPA mode
python plain_windows.py FOLDER WINDOWS LENGTH eager     # six metrics of each head from whole
                                                        # matrices, in a loop over heads
python plain_windows.py builtin DOCUMENTS world forward # the same over documents of its world;
                                                        # or, with `joined`, over long ones
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.resources import files

import torch
from eager import add_metrics, no_sums
from inside import report
from texts import CONTEXT, documents, is_of_world
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH = 4096
folder, windows, length, mode = sys.argv[1:]
torch.set_num_threads(1)
if folder == "builtin":
    folder = str(files("attnviz").joinpath("builtin", "gpt"))
tokenizer = AutoTokenizer.from_pretrained(folder)
attention = "sdpa" if mode == "forward" else "eager"
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation=attention).eval()
first = [tokenizer.bos_token_id] if is_of_world(length) else []
ids = [tokenizer(text)["input_ids"] for text in documents(int(windows), length)]
sums = no_sums()


def batches(some: Sequence[list[int]]) -> Iterator[Tensor]:
    """Windows of equal length, so many together that they have as many tokens as a scan's batch."""
    by_length: dict[int, list[list[int]]] = defaultdict(list)
    longest = CONTEXT - 1 if is_of_world(length) else int(length)
    for tokens in some:
        for at in range(0, len(tokens), longest):
            window = first + tokens[at : at + longest]
            by_length[len(window)].append(window)
    for size, windows in by_length.items():
        yield from torch.split(torch.tensor(windows), max(1, BATCH // size))


def work(n: int) -> None:
    some = ids[:1] if n == 16 else ids
    for batch in batches(some):
        if mode == "forward":
            model.base_model(batch, use_cache=False)
        else:
            found = model(batch, output_attentions=True, use_cache=False)
            add_metrics(sums, batch, found.attentions)


with torch.inference_mode():
    report(work, len(ids) + 16)
