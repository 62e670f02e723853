"""transformers' own `generate`: seconds, and bytes above the loaded model.

python plain_generate.py FOLDER TEXT.txt NEW sdpa|eager

In eager mode with every attention matrix, as a user would ask for what an answer looked at.
"""

import sys
from pathlib import Path

import torch
from inside import report
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, text, new, mode = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation=mode).eval()
ids = tokenizer(Path(text).read_text(), return_tensors="pt")["input_ids"]


def generate(n: int) -> None:
    with torch.inference_mode():
        written = model.generate(
            ids[:, :n],
            attention_mask=torch.ones_like(ids[:, :n]),
            do_sample=False,
            max_new_tokens=int(new),
            eos_token_id=None,
            output_attentions=mode == "eager",
            return_dict_in_generate=True,
        )
    assert written.sequences.shape[1] == n + int(new)


report(generate, ids.size(1))
