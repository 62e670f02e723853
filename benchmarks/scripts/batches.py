"""Plain forward passes to the logits, in batches.

python batches.py FOLDER TEXT.txt [COUNT]

COUNT is by default one for each head, and one more.
"""

import sys
from pathlib import Path

import torch
from inside import report
from transformers import AutoModelForCausalLM, AutoTokenizer

from attnviz.models.placement import BATCH_TOKENS

folder, text, *count = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()
ids = tokenizer(Path(text).read_text(), return_tensors="pt")["input_ids"]
passes = model.config.num_hidden_layers * model.config.num_attention_heads + 1
passes = int(count[0]) if count else passes


def forward(n: int) -> None:
    size = BATCH_TOKENS // n
    for first in range(0, passes, size):
        model(input_ids=ids[:, :n].expand(min(size, passes - first), -1), use_cache=False)


with torch.inference_mode():
    report(forward, ids.size(1))
