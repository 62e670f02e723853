"""A plain forward pass over an image and a question: FOLDER IMAGE TEXT."""

import sys

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

from tests.vision.zoo import processed, processor

folder, image, text = sys.argv[1:]
model = AutoModelForImageTextToText.from_pretrained(folder).eval()
inputs = processed(processor(folder), text, Image.open(image))
with torch.inference_mode():
    print(model(**inputs, use_cache=False, logits_to_keep=1).logits.shape)
