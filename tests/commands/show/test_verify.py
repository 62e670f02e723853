"""--verify: how exact a capture is, and what is said where it is not."""

import math
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPTJConfig, GPTJForCausalLM, LlamaConfig, LlamaForCausalLM

from attnviz.errors import ExitStatus
from attnviz.models.huggingface.call import AttentionCall
from attnviz.records.capture import KeepEverything, PatternBlock
from attnviz.records.trace import EXACT, FromExact, Verified
from tests.builtin import FOLDER as BUILTIN
from tests.conftest import Run, bytes_tokenizer

ROOT = Path(__file__).parents[3]
LLAMA = {
    "vocab_size": 257,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**LLAMA)).save_pretrained(tmp_path)
    bytes_tokenizer().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_it_compares_outputs_and_weights_and_then_shows(run: Run, llama: Path) -> None:
    ended = run("show", "a fluffy creature", "--model", str(llama), "--verify", "--head", "L0H1")
    assert ended.status is ExitStatus.OK
    said = re.search(
        r"largest difference (\S+); weights and\s+\S+ eager attention: (\S+) ", ended.err
    )
    assert said is not None
    assert float(said[1]) < 1e-6  # without capture the weights are never written out
    assert float(said[2]) < 1e-6
    assert "(float32)" in ended.err
    assert ended.out.startswith("L0H1")


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_both_engines_are_compared_with_eager_attention(run: Run, engine: str) -> None:
    ended = run("show", "a blue creature", "--engine", engine, "--verify")
    assert ended.status is ExitStatus.OK
    assert "transformers' eager attention" in ended.err


def test_a_model_whose_modules_return_attention_is_compared_too(run: Run, tmp_path: Path) -> None:
    config = GPTJConfig(vocab_size=257, n_embd=24, n_layer=1, n_head=2, rotary_dim=4)
    GPTJForCausalLM(config).save_pretrained(tmp_path)
    bytes_tokenizer().save(str(tmp_path / "tokenizer.json"))
    ended = run("show", "abc", "--model", str(tmp_path), "--verify", "--head", "all")
    assert ended.status is ExitStatus.OK
    assert "0.0e+00" in ended.err


def test_a_capture_that_is_not_exact_ends_with_1_and_shows_nothing(
    run: Run, llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask is left away: each row then sees one token more than the model does."""
    monkeypatch.setattr("attnviz.models.huggingface.capture.fits", lambda *_: True)
    monkeypatch.setattr(AttentionCall, "is_plain", lambda _: False)
    monkeypatch.setattr(AttentionCall, "_additive", lambda *_: None)
    monkeypatch.setattr("attnviz.records.capture._looks_ahead", lambda _: False)
    model = "--model", str(llama), "--engine", "transformers"
    ended = run("show", "a fluffy creature", *model, "--verify")
    assert ended.status is ExitStatus.BUG
    assert ended.out == ""
    assert "largest difference" in ended.err
    assert "is a bug" in ended.err


@pytest.mark.parametrize("engine", ["native", "transformers"])
def test_what_float32_cannot_do_better_on_a_long_text_is_no_mistake(
    run: Run, engine: str, tmp_path: Path
) -> None:
    """Both runs round by more than 1e-5 at large scores; float64 tells that neither is wrong."""
    folder = Path(shutil.copytree(BUILTIN, tmp_path / "large"))
    weights = load_file(folder / "model.safetensors")
    for name in weights:
        if name.endswith("attn.c_attn.weight"):
            weights[name] = weights[name] * 4
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    words = (ROOT / "making" / "words" / "common.txt").read_text().split()
    text = " ".join(random.Random(5).choices(words, k=200))
    arguments = ("--model", str(folder), "--engine", engine, "--truncate", "right", "--top", "1")
    ended = run("show", text, "--verify", *arguments)
    assert ended.status is ExitStatus.OK
    differences = re.search(r"attention: (\S+) \(from float64: (\S+) and (\S+)\)", ended.err)
    assert differences
    apart, ours, theirs = map(float, differences.groups())
    assert apart > EXACT
    assert 0 < ours < 2 * theirs < 1e-3


def test_a_small_mistake_is_told_from_rounding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(self: KeepEverything, block: PatternBlock) -> None:
        weights = block.weights.copy()
        weights[:, -1, :2] += np.array([1e-4, -1e-4], np.float32)
        original(self, replace(block, weights=weights))

    original = KeepEverything.__call__
    monkeypatch.setattr(KeepEverything, "__call__", moved)
    ended = run("show", "a blue creature", "--verify", "--head", "L0H0")
    assert ended.status is ExitStatus.BUG
    assert "from float64: 1.0e-04" in ended.err


def test_both_as_far_from_float64_is_rounding_and_farther_is_not() -> None:
    assert FromExact(2e-5, 2.6e-5).alike
    assert not FromExact(1e-4, 2.6e-5).alike
    for number in (math.nan, math.inf):
        assert not FromExact(number, 2.6e-5).alike
    assert Verified(0.0, 1.6e-5, "float32", None, FromExact(2.6e-5, 2.6e-5)).exact
    assert not Verified(0.0, 1.6e-5, "float32", FromExact(0.0, 0.0)).exact


def test_a_model_that_transformers_does_not_have_is_refused(run: Run) -> None:
    ended = run("show", "a creature", "--model", "translator", "--verify")
    assert ended.status is ExitStatus.USAGE
    assert "does not have translator" in ended.err


def test_nothing_and_nan_are_not_exact() -> None:
    assert Verified(0.0, 0.0, "float32").exact
    for output, weights in ((math.nan, 0.0), (0.0, math.nan), (0.0, math.inf), (1e-4, 0.0)):
        assert not Verified(output, weights, "float32").exact


def test_a_layer_that_is_not_handed_over_is_a_difference(
    run: Run, llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_layer_only(self: KeepEverything, block: PatternBlock) -> None:
        if block.layer == 0:
            original(self, block)

    original = KeepEverything.__call__
    monkeypatch.setattr(KeepEverything, "__call__", first_layer_only)
    ended = run("show", "a fluffy creature", "--model", str(llama), "--verify", "--head", "L0H0")
    assert ended.status is ExitStatus.BUG
    assert "inf" in ended.err
