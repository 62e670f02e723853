"""CircuitsVis's heads of a saved capture, its code inlined: circuitsvis.py CAPTURE.npz PAGE.html"""

import sys
from pathlib import Path

sys.path.pop(0)  # this folder, whose files have the libraries' names

import numpy as np
from circuitsvis.attention import attention_heads

import attnviz

capture = attnviz.load(sys.argv[1])
weights = np.concatenate([layer.weights for layer in capture.record.layers])
tokens = [token.label for token in capture.tokens]
view = attention_heads(weights, tokens, attention_head_names=[str(h) for h in capture.heads])
Path(sys.argv[2]).write_text(f"<!doctype html><body>{view.local_src}</body>", encoding="utf-8")
