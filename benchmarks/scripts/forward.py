"""The plain forward pass of a model's body in SDPA mode: seconds, and bytes above the loaded model.

python forward.py FOLDER TEXT.txt
"""

import sys
from pathlib import Path

import torch
from inside import report
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, text = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()
ids = tokenizer(Path(text).read_text(), return_tensors="pt")["input_ids"]
with torch.inference_mode():
    report(lambda n: model.base_model(ids[:, :n], use_cache=False), ids.size(1))
