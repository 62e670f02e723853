"""What is exported under HeadVis's names is what its definitions say, from whole matrices."""

import json
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.commands.atlas.headvis import write_headvis
from attnviz.corpus.result import read_atlas, read_heads
from attnviz.records.heads import Head
from tests.architectures import gpt2_in_memory
from tests.commands.atlas.test_headvis import recomputed
from tests.commands.scan.oracle import Matrix, largest, over_tokens

NAMES = {
    "self_attention_score": "self",
    "prev_token_score": "previous",
    "pattern_entropy": "entropy",
    "qk_distance": "distance",
    "qk_distance_variance": "distance_variance",
    "induction_score": "strong_induction",
}
WORDS = (
    "the cat sat on the mat and the cat ran . the cat sat on the mat",
    *("a red fox", "the", "the the the cat cat sat", "fluffy blue creature . fluffy blue creature"),
    *("a", "a a", "the old house was near the old old house ."),
)
LETTERS = ("abcabcabdabc", "a", "aaab", "b", "xyz zyx xyz", "ab", "hello yellow hello")
Windows = Sequence[tuple[Mapping[Head, Matrix], Sequence[int]]]


def of_gpt2(folder: Path) -> Windows:
    """Scan letters with a GPT-2 whose weights are far from even, and run them through it."""
    raw, tokenizer = gpt2_in_memory(3)
    with torch.no_grad():
        for layer in raw.transformer.h:
            layer.attn.c_attn.weight.mul_(60)
    scan(folder, LETTERS, attnviz.load_model(raw, tokenizer))
    raw.set_attn_implementation("eager")
    windows = []
    for text in LETTERS:
        ids = tokenizer(text).input_ids
        with torch.inference_mode():
            found = raw(torch.tensor([ids]), output_attentions=True).attentions
        every = ((Head(i, h), w) for i, layer in enumerate(found) for h, w in enumerate(layer[0]))
        windows.append(({head: w.double().numpy() for head, w in every}, ids))
    return windows


def of_builtin(folder: Path) -> Windows:
    """Scan words with the built-in model, and capture each text, with BOS in front of both."""
    scan(folder, WORDS, attnviz.load_model())
    read = attnviz.load_model()._loaded.tokenizer
    windows = []
    for text in WORDS:
        whole = attnviz.capture(text)
        heads = [Head(layer, head) for layer in range(5) for head in range(4)]
        ids = [read.bos_id, *read.ids(text)]
        windows.append(({h: whole.pattern(*h).astype(np.float64) for h in heads}, ids))
    return windows


def scan(folder: Path, texts: Sequence[str], model: Any) -> None:
    lines = "".join(f"{json.dumps({'text': text})}\n" for text in texts)
    (folder / "texts.jsonl").write_text(lines)
    attnviz.scan(folder / "texts.jsonl", output=folder / "scanned", model=model)


@pytest.mark.parametrize("windows_of", [of_gpt2, of_builtin])
def test_every_field_of_headvis_has_its_definition(windows_of: Any, tmp_path: Path) -> None:
    windows = windows_of(tmp_path)
    atlas = read_atlas(tmp_path / "scanned")
    tree = write_headvis(tmp_path / "tree", atlas, read_heads(atlas))
    scores = json.loads((tree / "scatter_data.json").read_text())
    assert len(scores) == len(windows[0][0])
    for row in scores:
        head = Head(row["layer"], row["head"])
        own = [(matrices[head], ids) for matrices, ids in windows if len(ids) > 1]
        means = over_tokens(own)
        for name, ours in NAMES.items():
            # to the printed digit; a value at its edge may go to either side
            expected = None if isnan(means[ours]) else pytest.approx(means[ours], abs=5.5e-5)
            assert row[name] == expected, (head, name)
            assert row[name] is None or row[name] == round(row[name], 4)
        found = json.loads((tree / "heads" / f"{head}.json").read_text())
        most = [np.float32(largest(matrix)) for matrix, _ in own]
        bins = [min(49, int(each * np.float32(50))) for each in most]
        edges = np.linspace(0, 1, 51).round(4).tolist()
        assert found["histogram"] == {
            "bin_edges": edges,
            "bin_values": [bins.count(i) for i in range(50)],
        }
        mean = round(float(np.mean(most, dtype=np.float64)), 4)
        assert found["statistics"]["mean_max_activation"] == mean
        assert found["statistics"]["n_samples"] == len(found["sequences"]) > 0
        assert all(each["seq_len"] > 1 for each in found["sequences"])
        sums = recomputed(found)
        assert found["qk_distance_histogram"]["bin_values"] == sums["distances"]
        for name in ("top_query_tokens", "top_key_tokens"):
            assert {each["token"]: each["weight"] for each in found[name]} == sums[name]


def test_means_over_tokens_are_not_those_over_documents(tmp_path: Path) -> None:
    of_builtin(tmp_path)
    documents = attnviz.atlas(tmp_path / "scanned")
    tokens = attnviz.atlas(tmp_path / "scanned", mean="tokens")
    assert {row["mean_over"] for row in documents.rows} == {"documents"}
    assert {row["mean_over"] for row in tokens.rows} == {"tokens"}
    for first, second in zip(documents.rows, tokens.rows, strict=True):
        assert second["entropy"] == first["entropy_over_tokens"] != first["entropy"]
        assert first["entropy_error"] > 0
        assert second["entropy_error"] is None
        assert first["first_queries"] == first["tokens"]
