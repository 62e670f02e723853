"""The from-scratch decoder against transformers' GPT-2, on the same weights."""

from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from attnviz.models.attention import Hook, attached
from attnviz.models.catalog import Source, tokenizer_of
from attnviz.models.folder.config import GPTConfig
from attnviz.models.folder.files import bundled_folder
from attnviz.models.scratch.gpt import GPT, from_gpt2, to_gpt2
from attnviz.models.scratch.native import load_checkpoint, save_checkpoint
from tests.conftest import bytes_tokenizer

SAMPLES = Path(__file__).parents[2] / "sample_texts"

SIZES = [  # odd ones, so that a swapped axis cannot go unnoticed
    GPTConfig(vocab_size=101, n_positions=23, n_embd=21, n_layer=2, n_head=3),
    GPTConfig(vocab_size=53, n_positions=19, n_embd=35, n_layer=3, n_head=5, n_inner=29),
    GPTConfig(vocab_size=67, n_positions=17, n_embd=11, n_layer=1, n_head=1),
    GPTConfig(
        vocab_size=71, n_positions=31, n_embd=14, n_layer=4, n_head=7, layer_norm_epsilon=0.1
    ),
]


def _theirs(config: GPTConfig, seed: int) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    sizes = {name: value for name, value in vars(config).items() if value is not None}
    model = GPT2LMHeadModel(GPT2Config(**sizes, attn_implementation="eager"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def _patterns(model: GPT, ids: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits, and every layer's pattern as its hook point sees it."""
    seen: list[torch.Tensor] = []
    record: Hook = seen.append
    layers = range(model.config.n_layer)
    with torch.no_grad(), attached(model, {f"h.{n}.attn.pattern": record for n in layers}):
        return model(ids), seen


def _compare(ours: GPT, theirs: GPT2LMHeadModel, ids: torch.Tensor) -> None:
    logits, patterns = _patterns(ours, ids)
    with torch.no_grad():
        expected = theirs(ids, output_attentions=True)
    torch.testing.assert_close(logits, expected.logits, atol=1e-5, rtol=1e-5)
    assert len(patterns) == len(expected.attentions) == ours.config.n_layer
    for pattern, attention in zip(patterns, expected.attentions, strict=True):
        torch.testing.assert_close(pattern, attention, atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("config", SIZES, ids=lambda c: f"{c.n_layer}x{c.n_head}x{c.n_embd}")
def test_logits_and_every_layers_attention_agree_with_transformers(
    config: GPTConfig, seed: int
) -> None:
    theirs = _theirs(config, seed)
    ours = GPT(config)
    ours.load_state_dict(from_gpt2(theirs.state_dict()))
    ids = torch.randint(config.vocab_size, (2, config.n_positions))
    _compare(ours.eval(), theirs, ids)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_built_in_weights_agree_with_transformers(dtype: torch.dtype) -> None:
    """On a real text. Its logits go up to 25, so float32 leaves some 1e-5 of the largest."""
    theirs = GPT2LMHeadModel.from_pretrained(bundled_folder("builtin"), attn_implementation="eager")
    ours, theirs = load_checkpoint(bundled_folder("builtin")).to(dtype), theirs.eval().to(dtype)
    text = (SAMPLES / "mystery.txt").read_text(encoding="utf-8")
    tokens = tokenizer_of(Source()).encode(text, bos=True, special=False)
    ids = torch.tensor([[token.id for token in tokens]])
    logits, patterns = _patterns(ours, ids)
    with torch.no_grad():
        expected = theirs(ids, output_attentions=True)
    tolerance = 1e-5 if dtype is torch.float32 else 1e-10
    largest = float(expected.logits.abs().max())
    torch.testing.assert_close(logits, expected.logits, atol=tolerance * largest, rtol=0)
    for pattern, attention in zip(patterns, expected.attentions, strict=True):
        torch.testing.assert_close(pattern, attention, atol=tolerance, rtol=0)


def test_a_written_checkpoint_is_read_the_same_by_both(tmp_path: Path) -> None:
    theirs = _theirs(GPTConfig(257, 13, 15, 2, 3), 4)
    ours = GPT(GPTConfig(257, 13, 15, 2, 3))
    ours.load_state_dict(from_gpt2(theirs.state_dict()))
    save_checkpoint(tmp_path, ours, bytes_tokenizer())
    read = GPT2LMHeadModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    ids = torch.randint(257, (1, 13))
    _compare(load_checkpoint(tmp_path), read, ids)
    _compare(ours.eval(), theirs, ids)


def test_gpt2s_names_and_ours_are_each_others_inverse() -> None:
    ours = GPT(SIZES[1]).state_dict()
    back = from_gpt2(to_gpt2(ours))
    assert back.keys() == ours.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(back[name], tensor, atol=0, rtol=0)


def test_only_the_layers_asked_for_are_run() -> None:
    model = GPT(SIZES[1]).eval()
    with attached(model, {"h.2.resid_pre": lambda _: pytest.fail("layer 2 was run")}):
        model.hidden(torch.zeros(1, 4, dtype=torch.long), n_layer=2)


def test_a_replaced_residual_stream_changes_what_follows() -> None:
    model = GPT(SIZES[0]).eval()
    ids = torch.randint(101, (1, 9))
    with torch.no_grad():
        plain = model(ids)
        with attached(model, {"h.1.resid_pre": torch.zeros_like}):
            changed = model(ids)
    assert (plain - changed).abs().max() > 1e-3
