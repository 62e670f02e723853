"""The bundled translator's folder: read, written, and run as a loaded model."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import save_file
from tokenizers import Tokenizer

from attnviz.models.folder import CONFIG, TOKENIZER, WEIGHTS
from attnviz.models.seq2seq import Seq2Seq

MODEL_TYPE = "attnviz-seq2seq"


def save_translator(
    folder: Path, model: Seq2Seq, tokenizer: Tokenizer, card: Mapping[str, object]
) -> None:
    """Write the folder: config.json, model.safetensors, tokenizer.json, card.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": MODEL_TYPE, **asdict(model.config)}
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    tokenizer.save(str(folder / TOKENIZER))
    text = json.dumps(card, indent=2, ensure_ascii=False)
    (folder / "card.json").write_text(text + "\n", encoding="utf-8")
