"""BertViz's head view of a saved capture, with one head shown: bertviz.py CAPTURE.npz PAGE.html"""

import sys
from pathlib import Path

sys.path.pop(0)  # this folder, whose files have the libraries' names

import torch
from bertviz import head_view

import attnviz

capture = attnviz.load(sys.argv[1])
layers = [torch.tensor(layer.weights)[None] for layer in capture.record.layers]
tokens = [token.label for token in capture.tokens]
view = head_view(layers, tokens, heads=[0], html_action="return")
Path(sys.argv[2]).write_text(f"<!doctype html><body>{view.data}</body>", encoding="utf-8")
