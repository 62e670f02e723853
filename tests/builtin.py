"""What the built-in model's own files say of it, so that tests hold for any weights."""

import json
from pathlib import Path

import attnviz
from attnviz.records.heads import Head, every_head

FOLDER = Path(attnviz.__file__).parent / "builtin" / "gpt"
_CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
LAYERS: int = _CONFIG["n_layer"]
HEADS: tuple[Head, ...] = every_head((_CONFIG["n_head"],) * LAYERS)
NAMED: dict[str, str] = {
    named["behaviour"]: named["head"]
    for named in reversed(json.loads((FOLDER / "card.json").read_text(encoding="utf-8"))["heads"])
}
"""The head that the card names first for each behaviour, such as `L2H3`."""
