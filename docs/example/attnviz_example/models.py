"""A scheme of models' names: `store:mine` is the folder `mine` in MODEL_STORE."""

import os
from pathlib import Path


def find(name: str) -> Path:
    """The folder of a model, or its GGUF file; `name`: what follows `store:`."""
    return Path(os.environ["MODEL_STORE"]) / name
