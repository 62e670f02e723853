"""What one would write for a scan: six statistics and the strongest links, from whole matrices.

python eager_links.py FOLDER TEXTS.jsonl OUT.npz

The body of the model runs one text after the other, on one thread.
"""

import json
import sys

import numpy as np
import torch
from eager import add_metrics, no_sums
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

LINKS, LEAST = 8, 0.005
"""The links of a row that are kept, and the least weight of a link."""
folder, texts, out = sys.argv[1:]
torch.set_num_threads(1)
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
sums = no_sums()
places: list[NDArray[np.int32]] = []  # text, layer, head, query and key of each link
links: list[NDArray[np.float32]] = []
with torch.inference_mode(), open(texts, encoding="utf-8") as lines:
    for text, line in enumerate(lines):
        ids = tokenizer(json.loads(line)["text"], return_tensors="pt")["input_ids"]
        attentions = model(ids, output_attentions=True, use_cache=False).attentions
        add_metrics(sums, ids, attentions)
        for layer, weights in enumerate(attentions):
            best, keys = weights[0].topk(min(LINKS, ids.size(1)), dim=-1)  # (heads, n, links)
            kept = (best >= LEAST).nonzero(as_tuple=True)
            head, query, _ = kept
            where = (torch.full_like(head, text), torch.full_like(head, layer), head, query)
            places.append(torch.stack([*where, keys[kept]]).to(torch.int32).numpy())
            links.append(best[kept].numpy())
np.savez(
    out,
    heads=np.array([*sums]),
    sums=torch.stack([*sums.values()]).numpy(),
    places=np.concatenate(places, axis=1),
    weights=np.concatenate(links),
)
