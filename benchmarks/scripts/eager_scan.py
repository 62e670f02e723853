"""What one would write for a scan of short texts: all statistics and links, from whole matrices.

python eager_scan.py FOLDER TEXTS.jsonl OUT.npz

The body of the model runs in eager mode on one thread, in batches of texts of about one length,
padded to the longest. Every statistic is taken of all heads of a layer at once.
"""

import json
import sys

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

BATCH = 512
"""The most tokens of a batch."""
LINKS, LEAST, STRONG = 8, 0.005, 0.5
"""The links of a row that are kept, their least weight, and what makes a weight a strong one."""
BINS = 41
"""Of distances and of positions, each twice as wide as the one before."""


def batches(texts: list[list[int]]) -> list[list[int]]:
    """The numbers of texts that run together; the shortest first."""
    every: list[list[int]] = [[]]
    for number in sorted(range(len(texts)), key=lambda i: len(texts[i])):
        if len(texts[number]) * (len(every[-1]) + 1) > BATCH:
            every.append([])
        every[-1].append(number)
    return every


def known_of(ids: Tensor, seen: Tensor) -> dict[str, Tensor]:
    """What is the same in every layer of a batch (B, n): masks and factors."""
    n = ids.size(1)
    place = torch.arange(n)
    apart = (place[:, None] - place).clamp_min(0)
    copies = (ids[:, :, None] == ids[:, None, :]) & (apart > 0)
    after = torch.zeros_like(copies)
    after[:, :, 1:] = copies[:, :, :-1]
    bins = torch.log2(apart.float() + 1).ceil().long()
    return {
        "rows": seen[:, None, :, None].float(),
        "several": (1 / (place + 1.0).log()).nan_to_num(posinf=0.0),
        "apart": torch.stack([apart.float(), apart.float().square()]).flatten(1).T,
        "copies": copies[:, None].float(),
        "after": (after & (apart > 0))[:, None].float(),
        "strong": after[:, None].float(),
        "distance": torch.nn.functional.one_hot(bins, BINS).float().flatten(0, 1),
        "position": torch.nn.functional.one_hot(bins[:, 0], BINS).float(),
        "others": ((apart > 0) & (place > 0)).float(),
    }


def sums_of(weights: Tensor, known: dict[str, Tensor]) -> Tensor:
    """All sums (h, K) of a layer's weights (B, h, n, n)."""
    own = weights * known["rows"]
    entropy = -(own * own.clamp_min(1e-38).log()).sum(dim=-1)
    strong = torch.where(own >= STRONG, own, 0.0)
    one_each = (
        entropy.sum(dim=-1),
        entropy @ known["several"],
        own.diagonal(dim1=2, dim2=3).sum(dim=-1),
        own.diagonal(-1, dim1=2, dim2=3).sum(dim=-1),
        own[..., 0].sum(dim=-1),
        (own * known["copies"]).sum(dim=(2, 3)),
        (own * known["after"]).sum(dim=(2, 3)),
        (strong * known["strong"]).sum(dim=(2, 3)),
        own.amax(dim=(2, 3)),
        (own * known["others"]).amax(dim=(2, 3)),
    )
    flat = own.flatten(2)
    several = (flat @ known["apart"], flat @ known["distance"], own.sum(dim=2) @ known["position"])
    return torch.cat([torch.stack(one_each, dim=-1), *several], dim=-1).sum(dim=0)


def main(folder: str, texts: str, out: str) -> None:
    """Scan the texts, and write sums and links into one file."""
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with open(texts, encoding="utf-8") as lines:
        ids = [tokenizer(json.loads(line)["text"])["input_ids"] for line in lines]
    sums: dict[int, Tensor] = {}
    places: list[NDArray[np.int32]] = []  # text, layer, head, query and key of each link
    links: list[NDArray[np.float32]] = []
    for numbers in batches(ids):
        some = [torch.tensor(ids[number]) for number in numbers]
        batch = torch.nn.utils.rnn.pad_sequence(some, batch_first=True)
        lengths = torch.tensor([len(each) for each in some])
        seen = torch.arange(batch.size(1)) < lengths[:, None]
        known, number = known_of(batch, seen), torch.tensor(numbers)
        found = model(batch, attention_mask=seen.long(), output_attentions=True, use_cache=False)
        for layer, weights in enumerate(found.attentions):
            sums[layer] = sums.get(layer, torch.tensor(0.0)) + sums_of(weights, known)
            best, keys = weights.topk(min(LINKS, batch.size(1)), dim=-1)  # (B, h, n, links)
            kept = ((best >= LEAST) & seen[:, None, :, None]).nonzero(as_tuple=True)
            text, head, query, _ = kept
            where = (number[text], torch.full_like(head, layer), head, query, keys[kept])
            places.append(torch.stack(where).to(torch.int32).numpy())
            links.append(best[kept].numpy())
    np.savez(
        out,
        sums=torch.stack([*sums.values()]).numpy(),
        places=np.concatenate(places, axis=1),
        weights=np.concatenate(links),
    )


if __name__ == "__main__":
    with torch.inference_mode():
        main(*sys.argv[1:])
