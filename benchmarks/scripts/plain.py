"""What a user writes today: transformers in eager mode, every matrix, and matplotlib.

python plain.py FOLDER TEXT.txt table|png|grid OUT
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, text, kind, out = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
inputs = tokenizer(Path(text).read_text(), return_tensors="pt")
with torch.no_grad():
    attentions = model(input_ids=inputs["input_ids"], output_attentions=True).attentions
tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
if kind == "table":
    pattern = attentions[5][0, 3]
    for query, row in zip(tokens, pattern, strict=True):
        weights, keys = row.topk(min(3, len(tokens)))
        print(query, *(f"{tokens[k]} {w:.2f}" for k, w in zip(keys, weights, strict=True)))
else:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if kind == "png":
        figure, axes = plt.subplots(figsize=(9, 9))
        axes.imshow(attentions[5][0, 3])
    else:
        figure, grid = plt.subplots(len(attentions), attentions[0].size(1), figsize=(14, 14))
        for layer, row in zip(attentions, grid, strict=True):
            for head, axes in zip(layer[0], row, strict=True):
                axes.imshow(head)
                axes.axis("off")
    figure.savefig(out, dpi=150)
