"""What one would use instead of a scan, over the same windows in the same batches: seconds, bytes.

python plain_windows.py FOLDER WINDOWS LENGTH forward   # the model's body alone, in SDPA mode
python plain_windows.py FOLDER WINDOWS LENGTH eager     # six metrics of each head from whole
                                                        # matrices, in a loop over heads
python plain_windows.py builtin DOCUMENTS world forward # the same over documents of its world
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.resources import files

import torch
from inside import report
from texts import LONGEST, WORLD, documents
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH = 4096
folder, windows, length, mode = sys.argv[1:]
torch.set_num_threads(1)
if folder == "builtin":
    folder = str(files("attnviz.models").joinpath(folder))
tokenizer = AutoTokenizer.from_pretrained(folder)
attention = "sdpa" if mode == "forward" else "eager"
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation=attention).eval()
first = [tokenizer.bos_token_id] if length == WORLD else []
ids = [first + tokenizer(text)["input_ids"] for text in documents(int(windows), length)]
sums: dict[tuple[int, int], Tensor] = defaultdict(lambda: torch.zeros(6))


def batches(some: Sequence[list[int]]) -> Iterator[Tensor]:
    """Windows of equal length, so many together that they have as many tokens as a scan's batch."""
    by_length: dict[int, list[list[int]]] = defaultdict(list)
    longest = LONGEST if length == WORLD else int(length) + 1
    for tokens in some:
        for at in range(0, len(tokens), longest):
            window = tokens[at : at + longest]
            by_length[len(window)].append(window)
    for size, windows in by_length.items():
        yield from torch.split(torch.tensor(windows), max(1, BATCH // size))


def followers(tokens: Sequence[int]) -> list[tuple[int, int]]:
    """Queries, and the keys that followed an earlier copy of their token."""
    seen: dict[int, list[int]] = defaultdict(list)
    found = []
    for query, token in enumerate(tokens):
        found += [(query, key + 1) for key in seen[token]]
        seen[token].append(query)
    return found


def metrics(batch: Tensor) -> None:
    """Self, previous token, entropy, distance, its square and induction of every head."""
    found = model(batch, output_attentions=True, use_cache=False).attentions
    n = batch.size(1)
    apart = (torch.arange(n)[:, None] - torch.arange(n)).abs().float()
    pairs = [tuple(zip(*followers(row), strict=True)) for row in batch.tolist()]
    padded = torch.zeros(len(batch), n, n, dtype=torch.bool)  # as texts of other lengths would be
    for layer, weights in enumerate(found):
        for head in range(weights.size(1)):
            own = weights[:, head].float()
            induction = sum(
                own[i, list(pair[0]), list(pair[1])].sum() for i, pair in enumerate(pairs) if pair
            )
            sums[layer, head] += torch.stack(
                [
                    own.diagonal(dim1=1, dim2=2).sum(),
                    own.diagonal(-1, dim1=1, dim2=2).sum(),
                    -(own * own.clamp_min(1e-38).log()).masked_fill(padded, 0).sum(),
                    own.masked_fill(padded, 0).mul(apart).sum(),
                    own.masked_fill(padded, 0).mul(apart.square()).sum(),
                    torch.as_tensor(induction),
                ]
            )


def work(n: int) -> None:
    some = ids[:1] if n == 16 else ids
    for batch in batches(some):
        if mode == "forward":
            model.base_model(batch, use_cache=False)
        else:
            metrics(batch)


with torch.inference_mode():
    report(work, len(ids) + 16)
