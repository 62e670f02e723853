"""What one would write for the probe of all heads: random tokens twice, in eager mode, one batch.

python eager_probe.py FOLDER OUT.npz
"""

import sys

import numpy as np
import torch
from eager_scan import known_of, sums_of
from transformers import AutoModel, AutoTokenizer

LENGTH, SAMPLES = 50, 8
folder, out = sys.argv[1:]
torch.set_num_threads(1)
ordinary = len(AutoTokenizer.from_pretrained(folder))
model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
draw = np.random.default_rng(0)
once = torch.tensor(
    np.stack([draw.choice(ordinary, LENGTH, replace=False) for _ in range(SAMPLES)])
)
ids = torch.cat([once, once], dim=1)
known = known_of(ids, torch.ones_like(ids, dtype=torch.bool))
with torch.inference_mode():
    attentions = model(ids, output_attentions=True, use_cache=False).attentions
    np.savez(out, sums=torch.stack([sums_of(layer, known) for layer in attentions]).numpy())
