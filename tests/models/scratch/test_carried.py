"""The tokenizers that a page can carry: a byte-level BPE, and no step that it does not take."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnviz.models.catalog import Source, load
from attnviz.models.scratch.carried import Carried, carried

UNMARKED = {
    "id": 257,
    "content": "cat",
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": True,
    "special": False,
}
CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "letters made small": lambda saved: saved.update(normalizer={"type": "Lowercase"}),
    "merges left out at random": lambda saved: saved["model"].update(dropout=0.1),
    "a mark at the end of a word": lambda saved: saved["model"].update(end_of_word_suffix="</w>"),
    "an added word": lambda saved: saved["added_tokens"].append(UNMARKED),
}


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Carried | None:
    """A model of a folder with its tokenizer changed, as a page carries it."""
    file = folder / "tokenizer.json"
    saved = json.loads(file.read_text())
    saved["decoder"] = {
        "type": "ByteLevel",
        "add_prefix_space": True,
        "trim_offsets": True,
        "use_regex": True,
    }
    change(saved)
    file.write_text(json.dumps(saved))
    return carried(load(Source(str(folder), engine="native")))


def test_a_byte_level_tokenizer_is_carried(gpt2_copy: Path) -> None:
    assert changed(gpt2_copy, lambda _: None) is not None


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_tokenizer_with_another_step_is_left_to_python(
    gpt2_copy: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    """A page that left the step out would show tokens that the model never reads."""
    assert changed(gpt2_copy, change) is None
