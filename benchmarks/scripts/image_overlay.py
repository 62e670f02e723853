"""The usual overlay: all attentions of an eager pass, and matplotlib: FOLDER IMAGE TEXT OUTPUT.

It knows no crops and no tiles: the last square of image tokens is laid over the whole image.
"""

import sys
from math import isqrt

import matplotlib
import numpy as np
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

from tests.vision.zoo import processed, processor

matplotlib.use("Agg")
from matplotlib import pyplot as plt

folder, image, text, output = sys.argv[1:]
model = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager").eval()
picture = Image.open(image)
inputs = processed(processor(folder), text, picture)
with torch.inference_mode():
    attentions = model(**inputs, use_cache=False, output_attentions=True).attentions
own = (inputs["input_ids"][0] == model.config.image_token_id).nonzero()[:, 0]
row = attentions[-1][0, 1, -1, own].numpy()
side = isqrt(len(row))
heat = Image.fromarray(row[-side * side :].reshape(side, side) / row.max()).resize(picture.size)
plt.figure(figsize=(6, 6), dpi=150)
plt.imshow(picture)
plt.imshow(np.asarray(heat), alpha=0.5)
plt.axis("off")
plt.savefig(output)
